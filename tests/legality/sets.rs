//! Sets that are as free as pods: any value in any place.

use serde_json::{Value, json};

use crate::examples::{CONTAINER_EXAMPLES, VOLUME_EXAMPLES, places};
use crate::pair::{KINDS, Kind, Pair, push_in};
use crate::random::Random;

/// What is written in place of what is there: right in some places and wrong in others, by type and by form.
const VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "1",
    "-1",
    "1.5",
    "511",
    "512",
    "3599",
    "86401",
    "65536",
    "4294967296",
    r#""""#,
    r#"" ""#,
    r#""x""#,
    r#""Upper""#,
    r#""a b""#,
    r#""a/b""#,
    r#""a:b""#,
    r#""a.b:c:d""#,
    r#""../x""#,
    r#""..x""#,
    r#""..""#,
    r#""/abs""#,
    r#""a.b/c""#,
    r#""a.b/C""#,
    r#""a/b/c""#,
    r#""kubernetes.io/c""#,
    r#""1Gi""#,
    r#""-1""#,
    r#""0""#,
    r#""1.5""#,
    r#""é""#,
    r#""iqn.2020-01.example:z""#,
    r#""eui.0123456789abcdef""#,
    r#""naa.0""#,
    r#""h:1""#,
    r#""[::1]:1""#,
    r#""h:1:2""#,
    r#""ReadWriteOncePod""#,
    r#""Block""#,
    r#""Exists""#,
    r#""PersistentVolumeClaim""#,
    r#""Managed""#,
    r#""v1""#,
    r#""metadata.name""#,
    r#""Always""#,
    "[]",
    "[null]",
    r#"["x"]"#,
    "{}",
];

/// Maps in place of one whose keys are the user's own.
const MAPS: &[&str] = &[
    r#"{"a": null}"#,
    r#"{"a": "b", "A b": "c"}"#,
    r#"{"kubernetes.io/x": "y"}"#,
    r#"{"a.k8s.io/x": "y"}"#,
    r#"{"storage": "1", "cpu": "1"}"#,
    r#"{"storage": null}"#,
    r#"{"storage": "0"}"#,
    r#"{"storage": "-1"}"#,
    r#"{"cpu": 0.5}"#,
    r#"{"memory": "1.5"}"#,
];

/// Fields that hold such maps.
const FREE: &[&str] =
    &["annotations", "labels", "limits", "matchLabels", "options", "requests", "userAnnotations", "volumeAttributes"];

/// A pair whose set has a few values replaced, and words for that.
pub fn free_set(seed: u64) -> (String, Pair) {
    let mut random = Random::new(seed ^ 0x5e7);
    let of_volume = random.once_in(2);
    let mut part = random.pick(if of_volume { &VOLUME_EXAMPLES } else { &CONTAINER_EXAMPLES });
    let mut words = vec![if of_volume { "volume" } else { "container" }.to_owned()];
    loop {
        let place = random.pick(&places(&part));
        let value = value_for(&mut random, &place);
        words.push(format!("{place}: {value}"));
        *part.pointer_mut(&place).unwrap() = value;
        if !random.once_in(4) {
            break;
        }
    }
    (
        format!("set {seed} ({})", words.join(", ")),
        if of_volume { with_volume(part) } else { with_container(&mut random, &part) },
    )
}

/// Every example as it is, a container in each place.
pub fn examples() -> impl Iterator<Item = (String, Pair)> {
    let of_volumes = VOLUME_EXAMPLES.iter().map(|volume| (volume.to_string(), with_volume(volume.clone())));
    let of_containers = CONTAINER_EXAMPLES.iter().map(|part| (part.to_string(), with_container_of(Kind::Native, part)));
    of_volumes.chain(of_containers)
}

fn value_for(random: &mut Random, place: &str) -> Value {
    let is_free = FREE.iter().any(|field| place.ends_with(&format!("/{field}")));
    let text = match random.pick(&[0, 1, 2, 3, 4, 5]) {
        0 if !is_free => return json!("x".repeat(random.pick(&[63, 64, 65, 254]))),
        0..=3 if is_free => random.pick(MAPS),
        _ => random.pick(VALUES),
    };
    serde_json::from_str(text).unwrap()
}

fn with_volume(volume: Value) -> Pair {
    let mut pair = Pair::new();
    push_in(pair.sidecar(Kind::Plain), "volumeMounts", json!({"name": volume["name"], "mountPath": "/v"}));
    pair.give_set(volume);
    pair
}

fn with_container(random: &mut Random, part: &Value) -> Pair {
    with_container_of(random.pick(&KINDS), part)
}

fn with_container_of(kind: Kind, part: &Value) -> Pair {
    let mut pair = Pair::new();
    pair.sidecar(kind).extend(part.as_object().unwrap().clone());
    pair.give_set(json!({"name": "scratch", "emptyDir": {}}));
    pair.give_set(json!({"name": "block", "persistentVolumeClaim": {"claimName": "block"}}));
    if part["securityContext"]["windowsOptions"].is_object() {
        pair.spec().insert("nodeSelector".to_owned(), json!({"kubernetes.io/os": "windows"}));
    }
    pair
}

/// The pod with what the set says in it, whatever we think of that.
pub fn forced(pair: &Pair) -> Value {
    let (mut pod, spec) = (pair.pod.clone(), &pair.sets[0]["spec"]);
    for list in ["initContainers", "containers", "volumes"] {
        let ours = spec[list].as_array().into_iter().flatten();
        let theirs = pod["spec"][list].as_array().into_iter().flatten();
        let all: Vec<Value> = ours.chain(theirs).cloned().collect();
        if !all.is_empty() {
            pod["spec"][list] = json!(all);
        }
    }
    pod
}
