//! The table of evasions, for the engine alone and for a real API server.

use serde_json::{Value, json};

/// The set, as text in which `ROOM` is replaced by its name and label.
pub const SET: &str = include_str!("set.yaml");
/// The security context of the set's container, and one that makes it a container for Windows.
pub const LINUX_LINE: &str = "    securityContext: {seLinuxOptions: {}}\n";
pub const WINDOWS_LINE: &str = "    securityContext: {windowsOptions: {runAsUserName: ContainerUser}}\n";
const TABLE: &str = include_str!("table.yaml");

/// What becomes of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Refused,
    Carried,
    Without,
}

/// The operating system of a set's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    Linux,
    Windows,
}

/// One attempt.
pub struct Row {
    pub name: String,
    /// It starts with the pod that injection made.
    pub from_carried: bool,
    pub outcome: Outcome,
    /// Part of the refusal.
    pub says: String,
    /// It can be seen only with a real API server.
    pub cluster_only: bool,
    /// It can be seen only without one.
    pub unit_only: bool,
    /// The set that it is tried on is for this.
    pub system: System,
    change: Value,
}

/// All attempts on the set of that name. `read` reads YAML.
pub fn rows(room: &str, read: impl Fn(&str) -> Value) -> Vec<Row> {
    let table = read(&TABLE.replace("ROOM", room));
    let rows: Vec<Row> = table.as_array().unwrap().iter().map(Row::of).collect();
    assert!(rows.len() >= 40, "the table is not what it was: {} rows", rows.len());
    rows
}

impl Row {
    fn of(row: &Value) -> Self {
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        assert!(!text("why").is_empty(), "{row}");
        Self {
            name: text("name"),
            from_carried: match row["from"].as_str().unwrap() {
                "carried" => true,
                "plain" => false,
                other => panic!("from: {other}"),
            },
            outcome: match row["outcome"].as_str().unwrap() {
                "refused" => Outcome::Refused,
                "carried" => Outcome::Carried,
                "without" => Outcome::Without,
                other => panic!("outcome: {other}"),
            },
            says: text("says"),
            cluster_only: row["cluster"] == true,
            unit_only: row["unit"] == true,
            system: if row["set"] == "windows" { System::Windows } else { System::Linux },
            change: row["change"].clone(),
        }
    }

    /// The pod with the change.
    pub fn tried_on(&self, pod: &Value) -> Value {
        let mut pod = pod.clone();
        for operation in self.change.as_array().unwrap() {
            let mut operation = operation.clone();
            operation["path"] = json!(pointer(operation["path"].as_str().unwrap(), &pod));
            let patch: json_patch::Patch = serde_json::from_value(json!([operation])).unwrap();
            json_patch::patch(&mut pod, &patch).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        }
        pod
    }
}

/// The path with the positions of named elements.
fn pointer(path: &str, pod: &Value) -> String {
    let mut resolved = String::new();
    for part in path.split('/').skip(1) {
        let part = match part.strip_prefix('[').and_then(|part| part.strip_suffix(']')) {
            Some(name) => {
                let list = pod.pointer(&resolved).and_then(Value::as_array);
                let list = list.unwrap_or_else(|| panic!("{path}: no list at {resolved}"));
                list.iter().position(|element| element["name"] == name).unwrap().to_string()
            }
            None => part.to_owned(),
        };
        resolved.push('/');
        resolved.push_str(&part);
    }
    resolved
}

/// A pod that the set selects.
pub fn plain(room: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "tried", "labels": {"app": room}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    })
}

/// What became of a pod that was created.
pub fn outcome(pod: &Value) -> Outcome {
    let has = |list: &str, name: &str| {
        pod["spec"][list].as_array().is_some_and(|list| list.iter().any(|element| element["name"] == name))
    };
    match (has("initContainers", "gate"), has("containers", "proxy")) {
        (true, true) => Outcome::Carried,
        (false, false) => Outcome::Without,
        _ => panic!("a part of the set: {pod}"),
    }
}
