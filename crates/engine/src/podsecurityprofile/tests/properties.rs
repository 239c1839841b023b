//! Of every pod: what runs twice changes nothing more, and the twin accepts the result, with sidecars and without.

use admission::Decision;
use serde_json::{Value, json};

use super::{chosen, mutate, profile, validate};
use crate::testing::{Cluster, set};

/// A sequence with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap() % below
    }

    fn pick(&mut self, list: &[Value]) -> Value {
        list[self.below(list.len())].clone()
    }

    /// Some of these members.
    fn some(&mut self, members: &[(&str, &[Value])]) -> Value {
        let mut map = json!({});
        for (key, values) in members {
            if self.below(3) == 0 {
                map[*key] = self.pick(values);
            }
        }
        map
    }

    fn profile(&mut self, name: &str) -> Value {
        let range = json!([{"min": 5, "max": 9}]);
        let must = json!({"rule": "MustRunAs", "ranges": range});
        let may = json!({"rule": "MayRunAs", "ranges": range});
        let members: [(&str, &[Value]); 16] = [
            ("privileged", &[json!(true)]),
            ("runAsUser", &[must.clone(), json!({"rule": "MustRunAsNonRoot"})]),
            ("runAsGroup", &[must.clone(), may.clone()]),
            ("fsGroup", &[must.clone(), may.clone()]),
            ("supplementalGroups", &[must, may]),
            ("seLinux", &[json!({"rule": "MustRunAs", "seLinuxOptions": {"level": "s0"}})]),
            ("readOnlyRootFilesystem", &[json!(true)]),
            ("allowPrivilegeEscalation", &[json!(false)]),
            ("defaultAllowPrivilegeEscalation", &[json!(false)]),
            ("requiredDropCapabilities", &[json!(["X"]), json!(["X", "Y"])]),
            ("defaultAddCapabilities", &[json!(["Z"])]),
            ("allowedSeccompProfiles", &[json!(["*"]), json!(["runtime/default"])]),
            ("defaultSeccompProfile", &[json!("runtime/default")]),
            ("allowedAppArmorProfiles", &[json!(["runtime/default"])]),
            ("defaultAppArmorProfile", &[json!("runtime/default")]),
            ("runtimeClass", &[json!({"allowedRuntimeClassNames": ["a"], "defaultRuntimeClassName": "a"})]),
        ];
        profile(name, &self.some(&members))
    }

    fn context(&mut self) -> Value {
        self.some(&[
            ("privileged", &[json!(true), json!(false)]),
            ("runAsUser", &[json!(0), json!(5), json!(20)]),
            ("runAsGroup", &[json!(5), json!(20)]),
            ("runAsNonRoot", &[json!(true), json!(false)]),
            ("readOnlyRootFilesystem", &[json!(true), json!(false)]),
            ("allowPrivilegeEscalation", &[json!(true), json!(false)]),
            ("capabilities", &[json!({"drop": ["Y", "X"]}), json!({"add": ["Z"]}), json!({"add": []})]),
            ("seccompProfile", &[json!({"type": "RuntimeDefault"})]),
            ("appArmorProfile", &[json!({"type": "RuntimeDefault"})]),
        ])
    }

    fn pod(&mut self) -> Value {
        let containers: Vec<Value> = (0..=self.below(3))
            .map(|at| json!({"name": format!("c{at}"), "image": "i", "securityContext": self.context()}))
            .collect();
        let init: Vec<Value> = (0..self.below(2))
            .map(|at| json!({"name": format!("i{at}"), "image": "i", "securityContext": null}))
            .collect();
        let of_pod = self.some(&[
            ("runAsUser", &[json!(0), json!(5)]),
            ("fsGroup", &[json!(5), json!(20)]),
            ("supplementalGroups", &[json!([5]), json!([])]),
            ("seLinuxOptions", &[json!({"level": "s0"})]),
            ("seccompProfile", &[json!({"type": "RuntimeDefault"})]),
        ]);
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": self.pick(&[json!("web"), json!("other")])}},
            "spec": {"serviceAccountName": "runner", "containers": containers, "initContainers": init, "securityContext": of_pod},
        })
    }
}

fn sidecar() -> Value {
    let context = json!({"runAsUser": 5, "runAsGroup": 5, "runAsNonRoot": true, "readOnlyRootFilesystem": true,
        "allowPrivilegeEscalation": false, "capabilities": {"add": ["Z"], "drop": ["X", "Y"]},
        "appArmorProfile": {"type": "RuntimeDefault"}});
    let container = |name: &str| json!({"name": name, "image": "log:1", "securityContext": context});
    set("log", json!({"containers": [container("log")], "initContainers": [container("first")], "optOut": "Denied"}))
}

#[test]
fn twice_is_once_and_the_twin_agrees() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut allowed, mut refused, mut injected) = (0, 0, 0);
    for round in 0..1_500 {
        let profiles: Vec<Value> = (0..=random.below(3)).map(|at| random.profile(&format!("p{at}"))).collect();
        let is_alone = profiles.len() == 1;
        let mut objects = profiles.clone();
        if random.below(2) == 0 {
            objects.push(sidecar());
        }
        let (cluster, pod) = (Cluster::from_objects(&objects), random.pod());
        let once = mutate(&cluster, &pod, &["*"]);
        if once.decision == Decision::Denied {
            refused += 1;
            continue;
        }
        allowed += 1;
        injected += usize::from(once.pod["metadata"]["annotations"]["outrider.dev/injected"].is_string());
        let twice = mutate(&cluster, &once.pod, &["*"]);
        // What was filled in may suit a profile that goes before by name, as in 1.24: then the annotation names that one.
        let mut expected = once.pod.clone();
        if !is_alone {
            expected["metadata"]["annotations"]["kubernetes.io/psp"] = chosen(&twice.pod).into();
        }
        assert_eq!(twice.pod, expected, "{round}: {pod} {profiles:?}");
        assert!(twice.warnings.is_empty(), "{round}: {:?}", twice.warnings);
        for stored in [&once.pod, &twice.pod] {
            let reply = validate(&cluster, stored, &["*"]);
            assert_eq!((reply.message.as_str(), reply.warnings.len()), ("", 0), "{round}: {pod} {profiles:?}");
        }
    }
    assert!(allowed > 200 && refused > 200 && injected > 30, "{allowed} {refused} {injected}");
}
