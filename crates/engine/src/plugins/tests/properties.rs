//! Of every pod: mutators that run twice change nothing more, and their twins accept the result, with sidecars and without.

use admission::Decision;
use serde_json::{Value, json};

use super::{namespace, plugin};
use crate::testing::{Cluster, review, set};

/// A sequence with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap() % below
    }

    fn pick<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }

    fn container(&mut self, name: String) -> Value {
        let resources =
            [json!({}), json!({"requests": {"cpu": "1", "a.com/b": "1"}}), json!({"limits": {"memory": "0"}})];
        let policy = self.pick(&[json!("Always"), json!("IfNotPresent"), json!(null)]).clone();
        json!({"name": name, "image": "i", "imagePullPolicy": policy, "resources": self.pick(&resources)})
    }

    fn toleration(&mut self) -> Value {
        let key = *self.pick(&["a", "b", "node.kubernetes.io/not-ready", "a.com/b", ""]);
        let effect = *self.pick(&["", "NoExecute", "NoSchedule"]);
        let seconds =
            if effect == "NoExecute" { self.pick(&[json!(300), json!(5), json!(null)]).clone() } else { json!(null) };
        let operator = if key.is_empty() { "Exists" } else { *self.pick(&["Exists", "Equal"]) };
        json!({"key": key, "operator": operator, "effect": effect, "tolerationSeconds": seconds})
    }

    fn pod(&mut self) -> Value {
        let list = |count: usize| 0..count;
        let containers: Vec<Value> = list(1 + self.below(3)).map(|at| self.container(format!("c{at}"))).collect();
        let init: Vec<Value> = list(self.below(2)).map(|at| self.container(format!("i{at}"))).collect();
        let tolerations: Vec<Value> = list(self.below(5)).map(|_| self.toleration()).collect();
        let selector = self.pick(&[json!(null), json!({}), json!({"pool": "a"}), json!({"disk": "ssd"})]).clone();
        let volumes = self.pick(&[json!(null), json!([{"name": "v", "image": {"reference": "r"}}])]).clone();
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": self.pick(&["web", "other"])}},
            "spec": {"containers": containers, "initContainers": init, "tolerations": tolerations, "nodeSelector": selector,
                "volumes": volumes},
        })
    }
}

fn sidecar() -> Value {
    set(
        "log",
        json!({
            "containers": [{"name": "log", "image": "log:1", "podInjectPolicy": "BeforeAppContainer",
                "resources": {"requests": {"c.com/d": "1"}}}],
            "initContainers": [{"name": "first", "image": "first:1"}],
            "volumes": [{"name": "w", "emptyDir": {}}],
        }),
    )
}

fn mutators() -> [Value; 5] {
    let section = json!({"default": [{"key": "a", "operator": "Exists"}, {"key": "team", "operator": "Exists"}]});
    [
        plugin("pull", json!({"plugin": "AlwaysPullImages"})),
        plugin(
            "node",
            json!({"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": "pool=a"}}),
        ),
        plugin(
            "seconds",
            json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": {"notReadySeconds": 30}}),
        ),
        plugin("tolerate", json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": section})),
        plugin("extended", json!({"plugin": "ExtendedResourceToleration"})),
    ]
}

/// The patches of a second and a third call, with a judgement of each result in between.
fn again(cluster: &Cluster, pod: &Value, round: usize) -> [Option<Value>; 2] {
    let first = cluster.mutate(pod);
    assert_ne!(first.decision, Decision::Denied, "round {round}: {}", first.message);
    let second = cluster.mutate(&first.pod);
    for result in [&first.pod, &second.pod] {
        let judged = cluster.validate(result);
        assert_eq!(judged.decision, Decision::Allowed, "round {round}: {}", judged.message);
    }
    let third = cluster.mutate(&second.pod);
    [second.patch, third.patch]
}

#[test]
fn a_mutator_that_runs_twice_changes_nothing_more_and_its_twin_accepts_the_result() {
    let mut random = Random(7);
    for mutator in mutators() {
        let cluster = Cluster::from_objects(&[sidecar(), mutator.clone(), namespace(json!({}))]);
        for round in 0..100 {
            let pod = random.pod();
            assert_eq!(again(&cluster, &pod, round), [None, None], "round {round}: {mutator} {pod}");
        }
    }
}

#[test]
fn all_mutators_together_come_to_rest() {
    let cluster = Cluster::from_objects(&[&[sidecar(), namespace(json!({}))][..], &mutators()].concat());
    let mut random = Random(11);
    for round in 0..300 {
        let pod = random.pod();
        let [second, third] = again(&cluster, &pod, round);
        assert_eq!(third, None, "round {round}: {pod}");
        // In the order of the API server, a toleration of an extended resource comes after lists were merged. One of the pod's own that
        // it covers goes with the next merge, as in the API server.
        let may_be_covered = pod["spec"]["tolerations"].as_array().unwrap().iter().any(|one| one["key"] == "a.com/b");
        assert!(second.is_none() || may_be_covered, "round {round}: {pod}");
    }
}

/// Two objects of each mutator, with lists that refuse some pods, and a namespace whose annotations say more.
fn several() -> Vec<Value> {
    let key = |key: &str| json!({"key": key, "operator": "Exists"});
    let tolerate = |name: &str, given: &str, scope: Value| {
        let whitelist = json!([key("a"), key("b"), key("team"), key("node"), key("a.com/b"), key("c.com/d")]);
        let section = json!({"default": [key(given)], "whitelist": whitelist});
        plugin(name, json!({"plugin": "PodTolerationRestriction", "match": scope, "podTolerationRestriction": section}))
    };
    let node = |name: &str, selector: &str| {
        let lists = json!({"shop": "pool=a,disk=ssd,zone=z"});
        let section = json!({"clusterDefaultNodeSelector": selector, "namespaceAllowLists": lists});
        plugin(name, json!({"plugin": "PodNodeSelector", "podNodeSelector": section}))
    };
    let pull = |name: &str, image: &str| {
        plugin(name, json!({"plugin": "AlwaysPullImages", "alwaysPullImages": {"exemptImages": [image]}}))
    };
    let seconds = |name: &str, seconds: i64| {
        let section = json!({"notReadySeconds": seconds, "unreachableSeconds": 20});
        plugin(name, json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": section}))
    };
    let exempt = json!({"excludeUsers": ["root"]});
    vec![
        pull("pull", "i"),
        pull("pull-2", "log:*"),
        node("node", "pool=a"),
        node("node-2", "zone=z"),
        seconds("seconds", 30),
        seconds("seconds-2", 40),
        tolerate("tolerate", "team", json!({})),
        tolerate("tolerate-2", "node", exempt),
        plugin("extended", json!({"plugin": "ExtendedResourceToleration"})),
        plugin("extended-2", json!({"plugin": "ExtendedResourceToleration", "match": {"excludeUsers": ["root"]}})),
    ]
}

#[test]
fn several_objects_of_each_mutator_come_to_rest_and_their_twins_accept_the_result_whoever_asks() {
    let annotations = json!({
        "scheduler.alpha.kubernetes.io/node-selector": "disk=ssd",
        "scheduler.alpha.kubernetes.io/defaultTolerations": "[{\"Key\": \"b\", \"operator\": \"Exists\"}]",
    });
    for annotations in [json!({}), annotations] {
        let cluster = Cluster::from_objects(&[&[sidecar(), namespace(annotations)][..], &several()].concat());
        let (mut random, mut refused) = (Random(13), 0);
        for round in 0..300 {
            let pod = random.pod();
            let user = *random.pick(&["kim", "root"]);
            let asked = |path: &str, pod: &Value| {
                let mut review = review("shop", pod);
                review["request"]["userInfo"] = json!({"username": user});
                cluster.ask(path, &review).unwrap()
            };
            let first = asked("/mutate--v1-pod", &pod);
            if first.decision == Decision::Denied {
                refused += 1;
                continue;
            }
            let mut stored = first.pod;
            // A toleration that a later plugin added is merged in the second call: see above.
            for call in 0..2 {
                let judged = asked("/validate--v1-pod", &stored);
                assert_eq!(judged.decision, Decision::Allowed, "round {round}, call {call}: {}", judged.message);
                stored = asked("/mutate--v1-pod", &stored).pod;
            }
            assert_eq!(asked("/mutate--v1-pod", &stored).patch, None, "round {round}: {pod}");
        }
        assert!(refused > 20 && refused < 280, "the pods show little: {refused}");
    }
}
