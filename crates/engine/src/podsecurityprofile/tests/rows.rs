//! The rows of `rows.yaml`, and one for each type of volumes.

use admission::Decision;
use serde_json::{Value, json};

use super::{chosen, mutate, pod, profile, validate};
use crate::testing::Cluster;

const ROWS: &str = include_str!("rows.yaml");
const FIELDS: [&str; 10] =
    ["row", "profiles", "pod", "psc", "sc", "container", "annotations", "refused", "chosen", "gets"];

fn rows() -> Vec<Value> {
    let mut document = crate::yaml::read(ROWS).unwrap().remove(0).value;
    serde_json::from_value(document["rows"].take()).unwrap()
}

fn pod_of(row: &Value) -> Value {
    let mut found = pod(row["pod"].clone());
    let (psc, sc) = (&row["psc"], &row["sc"]);
    let mut merge = |place: &str, more: &Value| json_patch::merge(found.pointer_mut(place).unwrap(), more);
    if psc.is_object() {
        merge("/spec", &json!({"securityContext": psc}));
    }
    if sc.is_object() {
        merge("/spec/containers/0", &json!({"securityContext": sc}));
    }
    if row["container"].is_object() {
        merge("/spec/containers/0", &row["container"]);
    }
    if row["annotations"].is_object() {
        merge("/metadata", &json!({"annotations": row["annotations"]}));
    }
    found
}

#[test]
fn each_row_of_the_tables_comes_out_as_in_1_24_and_stays_so() {
    let rows = rows();
    assert!(rows.len() >= 130, "{}", rows.len());
    for row in &rows {
        let (name, none) = (&row["row"], json!({"p": {}}));
        assert!(row.as_object().unwrap().keys().all(|field| FIELDS.contains(&field.as_str())), "{row}");
        let profiles = row["profiles"].as_object().unwrap_or_else(|| none.as_object().unwrap());
        let profiles: Vec<Value> = profiles.iter().map(|(name, more)| profile(name, more)).collect();
        let (cluster, pod) = (Cluster::from_objects(&profiles), pod_of(row));
        let reply = mutate(&cluster, &pod, &["*"]);
        if let Some(expected) = row["refused"].as_str() {
            assert_eq!((reply.decision, reply.code), (Decision::Denied, Some(403)), "{name}");
            let (head, faults) = reply.message.split_once(": [").unwrap();
            assert_eq!(head, "pods \"p\" is forbidden: PodSecurityPolicy: unable to admit pod", "{name}");
            assert!(faults.contains(expected) && faults.ends_with(']'), "{name}: {faults}");
            let stored = validate(&cluster, &pod, &["*"]).message;
            assert!(
                stored.contains("PodSecurityPolicy: unable to validate pod: [") && stored.contains(expected),
                "{name}: {stored}"
            );
            continue;
        }
        assert_eq!(reply.message, "", "{name}");
        assert_eq!(chosen(&reply.pod), row["chosen"].as_str().unwrap_or("p"), "{name}");
        for (place, expected) in row["gets"].as_object().into_iter().flatten() {
            assert_eq!(reply.pod.pointer(place).unwrap_or(&Value::Null), expected, "{name}: {place}");
        }
        if !row["gets"].is_object() {
            let mut expected = pod.clone();
            expected["metadata"]["annotations"]["kubernetes.io/psp"] = chosen(&reply.pod).into();
            assert_eq!(reply.pod, expected, "{name}: nothing is filled in");
        }
        let again = mutate(&cluster, &reply.pod, &["*"]);
        assert_eq!(again.pod, reply.pod, "{name}: nothing more is filled in");
        assert_eq!(validate(&cluster, &reply.pod, &["*"]).message, "", "{name}: what is stored is allowed");
    }
}

#[test]
fn each_type_of_volumes_is_allowed_where_it_is_listed_or_all_are() {
    let types = [
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "hostPath",
        "image",
        "iscsi",
        "nfs",
        "persistentVolumeClaim",
        "photonPersistentDisk",
        "portworxVolume",
        "projected",
        "quobyte",
        "rbd",
        "scaleIO",
        "secret",
        "storageos",
        "vsphereVolume",
    ];
    for type_ in types {
        // The one whose field has another name.
        let word = if type_ == "cephfs" { "cephFS" } else { type_ };
        let pod = pod(json!({"volumes": [{"name": "v", type_: {"sources": [{"secret": {}}]}}]}));
        for (volumes, is_allowed) in
            [(json!([]), false), (json!(["none-such"]), false), (json!([word]), true), (json!(["*"]), true)]
        {
            let more = json!({ "volumes": volumes });
            if volumes[0] == "none-such" {
                let faults =
                    crate::podsecurityprofile::validation::compile(&profile("p", &more)).unwrap_err().to_string();
                assert!(faults.contains("spec.volumes: Unsupported value: \"none-such\""), "{faults}");
                continue;
            }
            let reply = mutate(&Cluster::from_objects(&[profile("p", &more)]), &pod, &["*"]);
            assert_eq!(reply.decision != Decision::Denied, is_allowed, "{type_} {volumes} {}", reply.message);
            let why = format!("spec.volumes[0]: Invalid value: \"{word}\": {word} volumes are not allowed to be used");
            assert!(is_allowed || reply.message.contains(&why), "{}", reply.message);
        }
    }
}
