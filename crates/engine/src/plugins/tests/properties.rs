//! Of every pod: mutators that run twice change nothing more, and their twins accept the result, with sidecars and without.

use admission::Decision;
use serde_json::{Value, json};

use super::{namespace, plugin};
use crate::testing::{World, set};

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
fn again(world: &World, pod: &Value, round: usize) -> [Option<Value>; 2] {
    let first = world.mutate(pod);
    assert_ne!(first.decision, Decision::Denied, "round {round}: {}", first.message);
    let second = world.mutate(&first.pod);
    for result in [&first.pod, &second.pod] {
        let judged = world.validate(result);
        assert_eq!(judged.decision, Decision::Allowed, "round {round}: {}", judged.message);
    }
    let third = world.mutate(&second.pod);
    [second.patch, third.patch]
}

#[test]
fn a_mutator_that_runs_twice_changes_nothing_more_and_its_twin_accepts_the_result() {
    let mut random = Random(7);
    for mutator in mutators() {
        let world = World::from_objects(&[sidecar(), mutator.clone(), namespace(json!({}))]);
        for round in 0..100 {
            let pod = random.pod();
            assert_eq!(again(&world, &pod, round), [None, None], "round {round}: {mutator} {pod}");
        }
    }
}

#[test]
fn all_mutators_together_come_to_rest() {
    let world = World::from_objects(&[&[sidecar(), namespace(json!({}))][..], &mutators()].concat());
    let mut random = Random(11);
    for round in 0..300 {
        let pod = random.pod();
        let [second, third] = again(&world, &pod, round);
        assert_eq!(third, None, "round {round}: {pod}");
        // In the order of the API server, a toleration of an extended resource comes after lists were merged. One of the pod's own that
        // it covers goes with the next merge, as in the API server.
        let may_be_covered = pod["spec"]["tolerations"].as_array().unwrap().iter().any(|one| one["key"] == "a.com/b");
        assert!(second.is_none() || may_be_covered, "round {round}: {pod}");
    }
}
