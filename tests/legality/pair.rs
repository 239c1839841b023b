//! A pod and the sets for it, and ways to change them.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// Where a container of a set goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Init,
    Native,
}

pub const KINDS: [Kind; 3] = [Kind::Plain, Kind::Init, Kind::Native];

/// A pod and the sets that select it. The first set is the one that mutations change.
#[derive(Clone)]
pub struct Pair {
    pub pod: Value,
    pub sets: Vec<Value>,
    /// Unless they were written while the webhook was away.
    pub sets_are_judged: bool,
}

impl Pair {
    /// Legal, and the set fits.
    pub fn new() -> Self {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "app", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
        });
        Self { pod, sets: vec![set("logs")], sets_are_judged: true }
    }

    pub fn spec(&mut self) -> &mut Map<String, Value> {
        self.pod["spec"].as_object_mut().unwrap()
    }

    /// The pod's own container.
    pub fn app(&mut self) -> &mut Map<String, Value> {
        self.pod["spec"]["containers"][0].as_object_mut().unwrap()
    }

    pub fn annotate(&mut self, key: &str, value: &str) {
        self.pod["metadata"]["annotations"][key] = json!(value);
    }

    /// Adds to a list of the pod's spec.
    pub fn push(&mut self, list: &str, item: Value) {
        push(&mut self.pod["spec"][list], item);
    }

    /// Adds to a list of the set's spec.
    pub fn push_to_set(&mut self, list: &str, item: Value) {
        push(&mut self.sets[0]["spec"][list], item);
    }

    /// Gives the set a volume, in place of one of that name.
    pub fn give_set(&mut self, volume: Value) {
        if let Some(volumes) = self.sets[0]["spec"]["volumes"].as_array_mut() {
            volumes.retain(|other| other["name"] != volume["name"]);
        }
        self.push_to_set("volumes", volume);
    }

    /// The container of that kind in the set, made where there is none.
    pub fn sidecar(&mut self, kind: Kind) -> &mut Map<String, Value> {
        let (list, name) = match kind {
            Kind::Plain => ("containers", "sidecar"),
            Kind::Init => ("initContainers", "prepare"),
            Kind::Native => ("initContainers", "native"),
        };
        let has_name = |container: &Value| container["name"] == name;
        if !self.sets[0]["spec"][list].as_array().is_some_and(|list| list.iter().any(has_name)) {
            let mut container = json!({"name": name, "image": "registry.example/sidecar:1"});
            if kind == Kind::Native {
                container["restartPolicy"] = json!("Always");
            }
            self.push_to_set(list, container);
        }
        let list = self.sets[0]["spec"][list].as_array_mut().unwrap();
        list.iter_mut().find(|container| has_name(container)).unwrap().as_object_mut().unwrap()
    }

    /// A container of any kind.
    pub fn any_sidecar(&mut self, random: &mut Random) -> &mut Map<String, Value> {
        let kind = random.pick(&KINDS);
        self.sidecar(kind)
    }

    /// A container that goes on running.
    pub fn running_sidecar(&mut self, random: &mut Random) -> &mut Map<String, Value> {
        let kind = random.pick(&[Kind::Plain, Kind::Native]);
        self.sidecar(kind)
    }
}

/// A set with one container.
pub fn set(name: &str) -> Value {
    json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "containers": [{"name": "sidecar", "image": "registry.example/sidecar:1"}],
            // What is forced into a pod are the containers as written.
            "jobPods": "Inject",
        },
    })
}

/// Adds to the list in `place`, which may be null.
pub fn push(place: &mut Value, item: Value) {
    if place.is_null() {
        *place = json!([]);
    }
    place.as_array_mut().unwrap().push(item);
}

/// Sets a field under a path of maps, made where there are none.
pub fn put(map: &mut Map<String, Value>, path: &[&str], value: Value) {
    let (last, maps) = path.split_last().unwrap();
    let mut place = map;
    for step in maps {
        place = place.entry(*step).or_insert_with(|| json!({})).as_object_mut().unwrap();
    }
    place.insert((*last).to_owned(), value);
}

/// Adds to a list of a map.
pub fn push_in(map: &mut Map<String, Value>, list: &str, item: Value) {
    push(map.entry(list).or_insert(Value::Null), item);
}
