//! What gives containers the identity of a workload.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::{Around, CompiledAllowedChanges};
use super::{Case, container, form, with_env, with_mounts};

/// The sources of the volume that the plugin `ServiceAccount` adds.
pub fn token_sources() -> [Value; 3] {
    let namespace = json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    [
        json!({"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}),
        json!({"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}),
        json!({"downwardAPI": {"items": [namespace]}}),
    ]
}

#[test]
fn the_token_of_the_service_account_is_known_by_its_volume() {
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    let mount = json!({"name": "kube-api-access-x", "mountPath": path, "readOnly": true});
    let volume =
        |sources: Value| json!({"name": "kube-api-access-x", "projected": {"defaultMode": 420, "sources": sources}});
    let [token, root, namespace] = token_sources();
    let mine = json!({"configMap": {"name": "mine"}});
    let of_openshift = json!({"configMap": {
        "name": "openshift-service-ca.crt", "items": [{"key": "service-ca.crt", "path": "service-ca.crt"}],
    }});
    let with = |source: &Value, change: Value| {
        let mut source = source.clone();
        json_patch::merge(&mut source, &change);
        source
    };
    let shorter = with(&token, json!({"serviceAccountToken": {"expirationSeconds": 600}}));
    let default = with(&token, json!({"serviceAccountToken": {"expirationSeconds": null}}));
    let for_mine = with(&token, json!({"serviceAccountToken": {"audience": "mine"}}));
    let optional = with(&root, json!({"configMap": {"optional": true}}));
    let private = json!({
        "name": "kube-api-access-x", "projected": {"defaultMode": 256, "sources": [token, root, namespace]},
    });
    for (volumes, is_same) in [
        (vec![volume(json!([token, root, namespace]))], true),
        (vec![volume(json!([token, root, namespace, of_openshift]))], true),
        (vec![volume(json!([root, namespace]))], false),
        (vec![volume(json!([token]))], false),
        (vec![volume(json!([token, namespace]))], false),
        (vec![volume(json!([token, root]))], false),
        (vec![volume(json!([token, optional, namespace]))], false),
        (vec![volume(json!([shorter, root, namespace]))], false),
        (vec![volume(json!([default, root, namespace]))], false),
        (vec![volume(json!([for_mine, root, namespace]))], false),
        (vec![volume(json!([root, token, namespace]))], false),
        (vec![volume(json!([token, root, namespace, of_openshift, of_openshift]))], false),
        (vec![volume(json!([token, root, of_openshift, namespace]))], false),
        (vec![private], false),
        (vec![volume(json!([token, root, namespace, mine]))], false),
        (vec![volume(json!([{"serviceAccountToken": {"path": "token", "audience": "mine"}}]))], false),
        (vec![json!({"name": "kube-api-access-x", "emptyDir": {}})], false),
        (vec![], false),
    ] {
        let case = Case { volumes, ..Case::default() };
        assert_eq!(case.with(with_mounts(mount.clone())).is_none(), is_same, "{:?}", case.volumes);
    }
    let case = Case { volumes: vec![volume(json!([token, root, namespace]))], ..Case::default() };
    assert_eq!(case.with(with_mounts(mount.clone())), None);
    for change in [json!({"subPath": "token"}), json!({"readOnly": null}), json!({"mountPath": "/usr/bin"})] {
        let mut mount = mount.clone();
        json_patch::merge(&mut mount, &change);
        assert!(case.with(with_mounts(mount)).is_some(), "{change}");
    }
}

#[test]
fn volumes_are_read_once_a_review_however_many_containers_mount_them() {
    let path = |at: usize| ["/var/run/secrets/kubernetes.io/serviceaccount", "/var/run/secrets/azure/tokens"][at % 2];
    let token = json!({"sources": token_sources()});
    let volumes: Vec<_> = (0..500)
        .map(|at| json!({"name": format!("v{at}"), "projected": token}).to_string().replace("name", r"n\u0061me"))
        .map(|volume| RawValue::from_string(volume).unwrap())
        .collect();
    let volumes: Vec<&RawValue> = volumes.iter().map(AsRef::as_ref).collect();
    let around = Around::new(false, &volumes);
    let form = form(&container());
    for at in 0..2_000 {
        let mut found = container();
        let mount = json!({"name": format!("v{}", at % 500), "mountPath": path(at), "readOnly": true});
        json_patch::merge(&mut found, &with_mounts(mount));
        let found = RawValue::from_string(found.to_string()).unwrap();
        let difference = form.difference(Some(&found), &CompiledAllowedChanges::default(), &around);
        assert_eq!(difference.is_none(), at % 2 == 0, "{difference:?}");
    }
    assert_eq!(around.volumes.names_read(), 500);
    assert_eq!(around.tokens.borrow().len(), 500);
}

#[test]
fn the_identities_of_clouds_bring_their_variables_once() {
    let identity = |name: &str, path: &str, audience: &str, file: &str| {
        let mount = json!({"name": name, "mountPath": path, "readOnly": true});
        let token = json!({"audience": audience, "expirationSeconds": 86400, "path": file});
        (mount, json!({"name": name, "projected": {"sources": [{"serviceAccountToken": token}]}}))
    };
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let eks = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount";
    let azure = "/var/run/secrets/azure/tokens";
    let uuid = "00000000-1111-2222-3333-444444444444";
    for ((mount, volume), variables) in [
        (
            identity("eks-pod-identity-token", eks, "pods.eks.amazonaws.com", "eks-pod-identity-token"),
            vec![
                variable("AWS_STS_REGIONAL_ENDPOINTS", "regional"),
                variable("AWS_DEFAULT_REGION", "eu-west-1"),
                variable("AWS_REGION", "eu-west-1"),
                variable("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"),
                variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &format!("{eks}/eks-pod-identity-token")),
            ],
        ),
        (
            identity("azure-identity-token", azure, "api://AzureADTokenExchange", "azure-identity-token"),
            vec![
                variable("AZURE_CLIENT_ID", uuid),
                variable("AZURE_TENANT_ID", uuid),
                variable("AZURE_FEDERATED_TOKEN_FILE", &format!("{azure}/azure-identity-token")),
                variable("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com/"),
            ],
        ),
    ] {
        let case = Case { volumes: vec![volume], ..Case::default() };
        let with = |variables: &[Value]| {
            let mut change = with_env(variables);
            json_patch::merge(&mut change, &with_mounts(mount.clone()));
            case.with(change)
        };
        assert_eq!(with(&variables), None);
        for (at, variable) in variables.iter().enumerate() {
            let mut changed = variables.clone();
            changed[at]["value"] = json!("/mine");
            assert!(with(&changed).is_some(), "{variable} with another value");
            let mut twice = variables.clone();
            twice.push(variable.clone());
            assert!(with(&twice).is_some(), "{variable} twice");
            assert!(case.with(with_env(std::slice::from_ref(variable))).is_some(), "{variable} without its mount");
        }
    }
}

#[test]
fn the_token_of_a_cloud_is_alone_in_its_volume() {
    let token =
        json!({"serviceAccountToken": {"audience": "sts.amazonaws.com", "expirationSeconds": 86400, "path": "token"}});
    let [service_account, root, _] = token_sources();
    let mount = json!({"name": "t", "mountPath": EKS, "readOnly": true});
    for (sources, is_same) in [
        (json!([token]), true),
        (json!([token, token]), false),
        (json!([token, root]), false),
        (json!([service_account, token]), false),
        (json!([service_account]), false),
        (json!([]), false),
        (
            json!([{"serviceAccountToken": {"audience": "sts.amazonaws.com", "path": "token", "expirationSeconds": "1"}}]),
            false,
        ),
        (json!([{"serviceAccountToken": {"path": "token", "expirationSeconds": 86400}}]), false),
        (json!({"serviceAccountToken": {}}), false),
    ] {
        let volumes = vec![json!({"name": "t", "projected": {"sources": sources}})];
        let case = Case { volumes, ..Case::default() };
        assert_eq!(case.with(with_mounts(mount.clone())).is_none(), is_same, "{sources}");
    }
}

const EKS: &str = "/var/run/secrets/eks.amazonaws.com/serviceaccount";

/// What the webhook of EKS adds to a container, with a variable of this value.
fn with_role(ours: &Value, name: &str, value: &str) -> Option<String> {
    let volume = json!({"name": "t", "projected": {"sources": [
        {"serviceAccountToken": {"audience": "sts.amazonaws.com", "expirationSeconds": 86400, "path": "token"}},
    ]}});
    let case = Case { ours: ours.clone(), volumes: vec![volume], ..Case::default() };
    let mut found = ours.clone();
    for (list, more) in [
        ("volumeMounts", json!({"name": "t", "mountPath": EKS, "readOnly": true})),
        ("env", json!({"name": name, "value": value})),
    ] {
        if found[list].is_null() {
            found[list] = json!([]);
        }
        found[list].as_array_mut().unwrap().insert(0, more);
    }
    case.of(&found)
}

#[test]
fn variables_of_an_identity_do_not_change_what_the_set_says() {
    let with = |change: Value| {
        let mut ours = container();
        json_patch::merge(&mut ours, &change);
        with_role(&ours, "AWS_REGION", "eu-west-1")
    };
    assert_eq!(with(json!({})), None);
    for harmless in
        [json!({"args": ["--bucket=$(AWS_REGION_2)"]}), json!({"args": ["AWS_REGION"]}), json!({"envFrom": []})]
    {
        assert_eq!(with(harmless.clone()), None, "{harmless}");
    }
    for change in [
        json!({"envFrom": [{"configMapRef": {"name": "agent"}}]}),
        json!({"args": ["--bucket=$(AWS_REGION)"]}),
        json!({"command": ["a", "$(AWS_REGION)"]}),
        json!({"env": [{"name": "MODE", "value": "x$(AWS_REGION)"}]}),
        json!({"volumeMounts": [{"name": "data", "mountPath": "/data", "subPathExpr": "$(AWS_REGION)"}]}),
        json!({"livenessProbe": {"exec": {"command": ["$(AWS_REGION)"]}}}),
    ] {
        assert!(with(change.clone()).is_some_and(|field| field.starts_with("env[")), "{change}");
    }
}

#[test]
fn variables_of_identities_have_their_form() {
    let role = "arn:aws:iam::111122223333:role/path/my.role_@x";
    for (name, value, is_same) in [
        ("AWS_ROLE_ARN", role, true),
        ("AWS_ROLE_ARN", "arn:aws-us-gov:iam::111122223333:role/a", true),
        ("AWS_ROLE_ARN", &format!("{role} $(HOSTNAME)"), false),
        ("AWS_ROLE_ARN", &format!("{role}\n"), false),
        ("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/", false),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/a", false),
        ("AWS_ROLE_ARN", "arn:awsX:iam::111122223333:role/a", false),
        ("AWS_ROLE_ARN", "arn:aws:s3::111122223333:role/a", false),
        ("AWS_REGION", "eu-west-1", true),
        ("AWS_REGION", "eu-west-1/", false),
        ("AWS_REGION", &"a".repeat(100), false),
    ] {
        assert_eq!(with_role(&container(), name, value).is_none(), is_same, "{name} {value:?}");
    }
    let path = "/var/run/secrets/azure/tokens";
    let token =
        json!({"serviceAccountToken": {"audience": "api://AzureADTokenExchange", "path": "azure-identity-token"}});
    let volume = json!({"name": "azure", "projected": {"sources": [token]}});
    let case = Case { volumes: vec![volume], ..Case::default() };
    for (name, value, is_same) in [
        ("AZURE_TENANT_ID", "00000000-1111-2222-3333-44444444444F", true),
        ("AZURE_CLIENT_ID", &"-".repeat(36), false),
        ("AZURE_CLIENT_ID", "000000001111222233334444444444440000", false),
        ("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us", true),
        ("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com//", false),
    ] {
        let mut change = with_env(&[json!({"name": name, "value": value})]);
        let mount = json!({"name": "azure", "mountPath": path, "readOnly": true});
        json_patch::merge(&mut change, &with_mounts(mount));
        assert_eq!(case.with(change).is_none(), is_same, "{name} {value:?}");
    }
}

#[test]
fn no_identity_is_mounted_over_what_the_set_mounts() {
    let service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
    for (token, audience, own, is_same) in [
        (EKS, "sts.amazonaws.com", "/data", true),
        // Where sets have an emptyDir for sockets, the webhooks put their tokens below it.
        (EKS, "sts.amazonaws.com", "/var/run", true),
        (EKS, "sts.amazonaws.com", "/run/", true),
        (EKS, "sts.amazonaws.com", "/var/run/secrets/eks.amazonaws.com/serviceaccount/", false),
        (EKS, "sts.amazonaws.com", "/run/secrets/eks.amazonaws.com/serviceaccount", false),
        (EKS, "sts.amazonaws.com", "/x/../var//run/./secrets/eks.amazonaws.com/serviceaccount", false),
        (EKS, "sts.amazonaws.com", r"C:\var\run\secrets\EKS.amazonaws.com\serviceaccount", false),
        (EKS, "sts.amazonaws.com", "/run/secrets/eks.amazonaws.com", false),
        (EKS, "sts.amazonaws.com", "/var/run/secrets/", false),
        (EKS, "sts.amazonaws.com", "/run/secrets/eks.amazonaws.com/serviceaccount/token", false),
        (service_account, "", "/data", true),
        // The API server puts its own there whatever is above or below.
        (service_account, "", "/var/run/secrets", true),
        (service_account, "", "/run/secrets/kubernetes.io/serviceaccount/mine", true),
        (service_account, "", "/var/run/secrets/kubernetes.io/serviceaccount/", false),
        (service_account, "", "/run/secrets/kubernetes.io/serviceaccount", false),
    ] {
        let own = json!({"name": "data", "mountPath": own});
        let ours = json!({"name": "a", "image": "a:1", "volumeMounts": [own]});
        let sources = match audience {
            "" => json!(token_sources()),
            _ => json!([{"serviceAccountToken": {"audience": audience, "path": "token"}}]),
        };
        let volumes = vec![json!({"name": "t", "projected": {"sources": sources}})];
        let case = Case { ours, volumes, ..Case::default() };
        let mount = json!({"name": "t", "mountPath": token, "readOnly": true});
        for mounts in [json!([own, mount]), json!([mount, own])] {
            assert_eq!(case.with(json!({"volumeMounts": mounts})).is_none(), is_same, "{mounts}");
        }
    }
}
