//! One mutation for each rule by which a set can make a pod illegal. Each keeps the pod legal by itself.

use serde_json::{Value, json};

use crate::pair::{KINDS, Kind, Pair, push, push_in, put, set};
use crate::random::Random;
use crate::resources::{huge_pages, pod_limits_alone, pod_resources};

/// Changes a pair.
pub type Mutation = fn(&mut Random, &mut Pair);

/// Every mutation, by the rule that it is aimed at.
pub const MUTATIONS: &[(&str, Mutation)] = &[
    ("container names", container_names),
    ("host ports", host_ports),
    ("host network", host_network),
    ("mapped ports", mapped_ports),
    ("volumes", volumes),
    ("claims for volumes", claims_for_volumes),
    ("missing volumes", missing_volumes),
    ("variables from files", variables_from_files),
    ("devices and users", devices_and_users),
    ("procMount", proc_mount),
    ("resource claims", resource_claims),
    ("sleep and grace", sleep_and_grace),
    ("restart on resize", restart_on_resize),
    ("pod resources", pod_resources),
    ("pod limits alone", pod_limits_alone),
    ("huge pages", huge_pages),
    ("seccomp", seccomp),
    ("stop signals", stop_signals),
    ("windows", windows),
    ("host process", host_process),
    ("annotation size", annotation_size),
    ("pull secrets", pull_secrets),
    ("tokens", tokens),
    ("carried already", carried_already),
    ("two sets", two_sets),
    ("harmless fields", harmless_fields),
    ("restart rules", restart_rules),
];

fn container_names(random: &mut Random, pair: &mut Pair) {
    if random.once_in(2) {
        pair.push("initContainers", json!({"name": "setup", "image": "registry.example/setup:1"}));
    }
    let name = random.pick(&["app", "setup", "free"]);
    let sidecar = pair.any_sidecar(random);
    sidecar.insert("name".to_owned(), json!(name));
    sidecar
        .insert("podInjectPolicy".to_owned(), random.pick(&[json!("BeforeAppContainer"), json!("AfterAppContainer")]));
}

fn port(random: &mut Random, host_ports: &[u16]) -> Value {
    let number = random.pick(&[80_u16, 81]);
    let mut port = json!({"containerPort": number});
    let host_port = random.pick(host_ports);
    if host_port != 0 {
        port["hostPort"] = json!(host_port);
        if random.once_in(3) {
            port["hostIP"] = random.pick(&[json!("127.0.0.1"), json!("0.0.0.0"), json!("192.0.2.1")]);
        }
    }
    if random.once_in(3) {
        port["protocol"] = random.pick(&[json!("TCP"), json!("UDP")]);
    }
    port
}

fn host_ports(random: &mut Random, pair: &mut Pair) {
    let theirs = port(random, &[0, 8080]);
    push_in(pair.app(), "ports", theirs);
    let ours = port(random, &[0, 8080, 8081]);
    push_in(pair.any_sidecar(random), "ports", ours);
}

fn host_network(random: &mut Random, pair: &mut Pair) {
    pair.spec().insert("hostNetwork".to_owned(), json!(true));
    if random.once_in(2) {
        push_in(pair.app(), "ports", json!({"containerPort": 80}));
    }
    let sidecar = pair.any_sidecar(random);
    push_in(sidecar, "ports", json!({"containerPort": random.pick(&[80, 81, 82])}));
    match random.pick(&[0, 1]) {
        0 => push_in(sidecar, "ports", json!({"containerPort": random.pick(&[82, 83]), "name": "second"})),
        _ => push_in(pair.sidecar(Kind::Plain), "ports", json!({"containerPort": random.pick(&[81, 82])})),
    }
}

fn mapped_ports(random: &mut Random, pair: &mut Pair) {
    pair.spec().insert("hostNetwork".to_owned(), json!(true));
    let mapped = json!({"containerPort": 84, "hostPort": random.pick(&[84, 85])});
    push_in(pair.any_sidecar(random), "ports", mapped);
}

fn volumes(random: &mut Random, pair: &mut Pair) {
    let sources = [
        json!({"emptyDir": {}}),
        json!({"emptyDir": {"medium": "Memory"}}),
        json!({"configMap": {"name": "settings"}}),
        json!({"configMap": {"name": "settings", "defaultMode": 420}}),
        json!({"secret": {"secretName": "settings"}}),
        json!({"hostPath": {"path": "/var/log"}}),
        json!({"hostPath": {"path": "/var/log", "type": ""}}),
        json!({"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}),
    ];
    let volume = |name: &str, source: Value| {
        let mut volume = source;
        volume["name"] = json!(name);
        volume
    };
    let names = ["data", "cache"];
    pair.push("volumes", volume(random.pick(&names), random.pick(&sources)));
    let name = random.pick(&names);
    pair.give_set(volume(name, random.pick(&sources)));
    push_in(pair.any_sidecar(random), "volumeMounts", json!({"name": name, "mountPath": "/data"}));
}

fn claims_for_volumes(random: &mut Random, pair: &mut Pair) {
    let ephemeral = |name: &str| {
        let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        json!({"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": claim}}})
    };
    let claim = |name: &str, of: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": of}});
    let name = random.pick(&["app-scratch", "app-kept", "other-scratch"]);
    let (theirs, ours) = match random.pick(&[0, 1, 2]) {
        0 => (ephemeral("scratch"), claim("kept", name)),
        1 => (claim("kept", name), ephemeral("scratch")),
        _ => (json!({"name": "plain"}), ephemeral("scratch")),
    };
    if random.once_in(4) {
        pair.give_set(claim("second", name));
        push_in(pair.sidecar(Kind::Plain), "volumeMounts", json!({"name": "second", "mountPath": "/second"}));
    }
    push_in(pair.any_sidecar(random), "volumeMounts", json!({"name": ours["name"], "mountPath": "/claimed"}));
    pair.push("volumes", theirs);
    pair.give_set(ours);
    if random.once_in(4) {
        let metadata = pair.pod["metadata"].as_object_mut().unwrap();
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), json!("app-"));
    }
}

/// A set may be stored without having been judged, while the webhook was away.
fn missing_volumes(random: &mut Random, pair: &mut Pair) {
    pair.sets_are_judged = false;
    let name = random.pick(&["absent", "theirs"]);
    pair.push("volumes", json!({"name": "theirs", "emptyDir": {}}));
    push_in(pair.any_sidecar(random), "volumeMounts", json!({"name": name, "mountPath": "/absent"}));
}

/// Unjudged for the same reason.
fn variables_from_files(random: &mut Random, pair: &mut Pair) {
    pair.sets_are_judged = false;
    let volume = random.pick(&[
        json!({"name": "variables", "emptyDir": {}}),
        json!({"name": "variables", "configMap": {"name": "variables"}}),
        json!({"name": "other", "emptyDir": {}}),
    ]);
    if random.once_in(2) {
        pair.push("volumes", volume.clone());
    }
    if random.once_in(2) {
        pair.give_set(volume.clone());
        let mount = json!({"name": volume["name"], "mountPath": "/variables"});
        push_in(pair.sidecar(Kind::Init), "volumeMounts", mount);
    }
    let from = json!({"fileKeyRef": {"volumeName": "variables", "path": "file.env", "key": "LEVEL"}});
    push_in(pair.sidecar(Kind::Plain), "env", json!({"name": "LEVEL", "valueFrom": from}));
}

fn devices_and_users(random: &mut Random, pair: &mut Pair) {
    pair.give_set(json!({"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}));
    push_in(pair.any_sidecar(random), "volumeDevices", json!({"name": "disk", "devicePath": "/dev/xvda"}));
    host_users(random, pair);
}

fn host_users(random: &mut Random, pair: &mut Pair) {
    match random.pick(&[Some(true), Some(false), None]) {
        Some(value) => pair.spec().insert("hostUsers".to_owned(), json!(value)),
        None => pair.spec().remove("hostUsers"),
    };
}

fn proc_mount(random: &mut Random, pair: &mut Pair) {
    let mount = random.pick(&["Default", "Unmasked", "Unmasked"]);
    put(pair.any_sidecar(random), &["securityContext", "procMount"], json!(mount));
    host_users(random, pair);
}

fn resource_claims(random: &mut Random, pair: &mut Pair) {
    if random.once_in(2) {
        pair.push("resourceClaims", json!({"name": "gpu", "resourceClaimName": "gpu"}));
    }
    let name = random.pick(&["gpu", "nic"]);
    put(pair.any_sidecar(random), &["resources", "claims"], json!([{"name": name}]));
}

fn sleep_and_grace(random: &mut Random, pair: &mut Pair) {
    if let Some(grace) = random.pick(&[Some(-1), Some(0), Some(5), Some(60), None]) {
        pair.spec().insert("terminationGracePeriodSeconds".to_owned(), json!(grace));
    }
    let (hook, seconds) = (random.pick(&["preStop", "postStart"]), random.pick(&[0, 5, 30, 31]));
    if !random.once_in(4) {
        put(pair.running_sidecar(random), &["lifecycle", hook, "sleep"], json!({"seconds": seconds}));
    }
}

fn restart_on_resize(random: &mut Random, pair: &mut Pair) {
    pair.spec().insert("restartPolicy".to_owned(), json!(random.pick(&["Always", "OnFailure", "Never"])));
    let policy = random.pick(&["NotRequired", "RestartContainer"]);
    push_in(pair.running_sidecar(random), "resizePolicy", json!({"resourceName": "cpu", "restartPolicy": policy}));
}

fn seccomp(random: &mut Random, pair: &mut Pair) {
    let profile = random.pick(&[
        json!({"type": "Unconfined"}),
        json!({"type": "RuntimeDefault"}),
        json!({"type": "Localhost", "localhostProfile": "strict.json"}),
    ]);
    let kind = random.pick(&KINDS);
    put(pair.sidecar(kind), &["securityContext", "seccompProfile"], profile);
    let name = pair.sidecar(kind)["name"].as_str().unwrap().to_owned();
    let value = random.pick(&[
        "unconfined",
        "runtime/default",
        "docker/default",
        "localhost/strict.json",
        "localhost/lax.json",
    ]);
    pair.annotate(&format!("container.seccomp.security.alpha.kubernetes.io/{name}"), value);
}

fn stop_signals(random: &mut Random, pair: &mut Pair) {
    if random.once_in(2) {
        pair.spec().insert("os".to_owned(), json!({"name": "linux"}));
    }
    put(pair.running_sidecar(random), &["lifecycle", "stopSignal"], json!("SIGUSR1"));
}

/// A Windows pod, and a set for Windows.
fn windows(random: &mut Random, pair: &mut Pair) {
    if random.once_in(4) {
        pair.spec().insert("nodeSelector".to_owned(), json!({"kubernetes.io/os": "windows"}));
    } else {
        pair.spec().insert("os".to_owned(), json!({"name": "windows"}));
    }
    let sidecar = pair.running_sidecar(random);
    put(sidecar, &["securityContext", "windowsOptions"], json!({"runAsUserName": "ContainerUser"}));
    let (field, value) = random.pick(&[
        ("runAsUser", json!(1000)),
        ("capabilities", json!({"drop": ["ALL"]})),
        ("readOnlyRootFilesystem", json!(false)),
        ("allowPrivilegeEscalation", json!(false)),
        ("seLinuxOptions", json!({"level": "s0"})),
        ("runAsNonRoot", json!(true)),
    ]);
    if !random.once_in(3) {
        put(sidecar, &["securityContext", field], value);
    }
    if random.once_in(3) {
        put(sidecar, &["lifecycle", "stopSignal"], random.pick(&[json!("SIGTERM"), json!("SIGUSR1")]));
    }
}

fn host_process(random: &mut Random, pair: &mut Pair) {
    pair.spec().insert("nodeSelector".to_owned(), json!({"kubernetes.io/os": "windows"}));
    let host = random.once_in(2);
    if host {
        pair.spec().insert("hostNetwork".to_owned(), json!(true));
        if random.once_in(2) {
            put(pair.spec(), &["securityContext", "windowsOptions", "hostProcess"], json!(true));
        } else {
            put(pair.app(), &["securityContext", "windowsOptions", "hostProcess"], json!(true));
        }
    } else if random.once_in(3) {
        pair.spec().insert("hostNetwork".to_owned(), json!(true));
    }
    if random.once_in(5) {
        // To us a pod for Linux, with a set for Linux: the API server goes by the containers.
        pair.spec().remove("nodeSelector");
        return;
    }
    let options = random.pick(&[json!({}), json!({"hostProcess": true}), json!({"hostProcess": false})]);
    put(pair.any_sidecar(random), &["securityContext", "windowsOptions"], options.clone());
    put(pair.sidecar(Kind::Plain), &["securityContext", "windowsOptions"], options);
}

fn annotation_size(random: &mut Random, pair: &mut Pair) {
    // The record of a set with one container takes some 150 bytes.
    let free = random.pick(&[1_usize, 60, 100, 140, 150, 170, 400]);
    let key = "example.com/ballast";
    pair.annotate(key, "");
    let annotations = pair.pod["metadata"]["annotations"].as_object().unwrap();
    let taken: usize = annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap().len()).sum();
    pair.annotate(key, &"x".repeat(256 * 1024 - free - taken));
}

fn pull_secrets(random: &mut Random, pair: &mut Pair) {
    pair.push("imagePullSecrets", json!({"name": "registry"}));
    pair.push_to_set("imagePullSecrets", json!({"name": random.pick(&["registry", "mirror"])}));
}

fn tokens(random: &mut Random, pair: &mut Pair) {
    let token = json!({"serviceAccountToken": {"path": "token", "audience": "collector"}});
    pair.give_set(json!({"name": "token", "projected": {"sources": [token]}}));
    push_in(pair.any_sidecar(random), "volumeMounts", json!({"name": "token", "mountPath": "/token"}));
    match random.pick(&[0, 1, 2]) {
        0 => pair.spec().insert("serviceAccountName".to_owned(), json!("default")),
        1 => pair.spec().insert("automountServiceAccountToken".to_owned(), json!(false)),
        _ => None,
    };
}

/// A copy of an injected pod, whole or in part.
fn carried_already(random: &mut Random, pair: &mut Pair) {
    let lists = random.pick(&[json!(["sidecar"]), json!(["sidecar", "gone"]), json!([])]);
    let record = json!({"logs": {"hash": "v1:0", "containers": lists, "initContainers": []}});
    pair.annotate("outrider.dev/injected", &record.to_string());
    if random.once_in(2) {
        let mut container = json!({"name": "sidecar", "image": "registry.example/sidecar:0"});
        container["ports"] = json!([{"containerPort": 90, "hostPort": random.pick(&[8080, 8090])}]);
        pair.push("containers", container);
    }
    let host_port = random.pick(&[8080, 8090, 8091]);
    push_in(pair.sidecar(Kind::Native), "ports", json!({"containerPort": 90, "hostPort": host_port}));
    pair.sidecar(Kind::Plain);
}

fn two_sets(random: &mut Random, pair: &mut Pair) {
    let mut other = set(random.pick(&["agents", "metrics", "zone"]));
    let container = &mut other["spec"]["containers"][0];
    container["name"] = json!(random.pick(&["sidecar", "agent"]));
    push(&mut container["ports"], port(random, &[0, 8080]));
    push(&mut container["volumeMounts"], json!({"name": "shared", "mountPath": "/shared"}));
    let source = random.pick(&[json!({}), json!({"medium": "Memory"})]);
    other["spec"]["volumes"] = json!([{"name": "shared", "emptyDir": source}]);
    pair.sets.push(other);
    pair.give_set(json!({"name": "shared", "emptyDir": {}}));
    push_in(pair.sidecar(Kind::Plain), "volumeMounts", json!({"name": "shared", "mountPath": "/shared"}));
    let ours = port(random, &[0, 8080]);
    push_in(pair.sidecar(Kind::Plain), "ports", ours);
    if random.once_in(3) {
        pair.annotate("kruise.io/sidecarset-injected-list", "logs");
        pair.push("containers", json!({"name": "sidecar", "image": "registry.example/sidecar:0"}));
    }
}

/// What is legal in every pod.
fn harmless_fields(random: &mut Random, pair: &mut Pair) {
    let probe = json!({"httpGet": {"port": 80}, "periodSeconds": 5});
    pair.running_sidecar(random).insert("readinessProbe".to_owned(), probe);
    let (path, value): (&[&str], Value) = random.pick(&[
        (&["securityContext", "privileged"][..], json!(true)),
        (&["securityContext", "appArmorProfile"], json!({"type": "RuntimeDefault"})),
        (&["imagePullPolicy"], json!("Always")),
        (&["terminationMessagePolicy"], json!("FallbackToLogsOnError")),
        (&["env"], json!([{"name": "IS_INJECTED", "value": "no"}, {"name": "TWICE"}, {"name": "TWICE"}])),
        (&["env"], json!([{"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "containerName": "gone"}}}])),
        (&["envFrom"], json!([{"configMapRef": {"name": "all"}}])),
        (&["lifecycle"], json!({"preStop": {"exec": {"command": ["true"]}}})),
    ]);
    put(pair.running_sidecar(random), path, value);
}

fn restart_rules(random: &mut Random, pair: &mut Pair) {
    pair.spec().insert("restartPolicy".to_owned(), json!(random.pick(&["Always", "OnFailure", "Never"])));
    let exit_codes = json!({"operator": "In", "values": [42]});
    let action = random.pick(&["Restart", "RestartAllContainers"]);
    let sidecar = pair.sidecar(Kind::Plain);
    sidecar.insert("restartPolicy".to_owned(), json!(random.pick(&["Never", "OnFailure"])));
    sidecar.insert("restartPolicyRules".to_owned(), json!([{"action": action, "exitCodes": exit_codes}]));
}
