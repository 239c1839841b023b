//! Validation of a user's pod template, by the rules for a set's own containers.
//!
//! Once a sidecar is in a template, what the API server says about the rest of it comes later and elsewhere: offline it is said before.

use std::collections::HashSet;

use admission::field::{Error, ErrorKind, ErrorList, Path};
use admission::format::Quantity;
use admission::patch::PatchBuilder;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::node::Node;
use super::{names, pod};
use crate::sidecarset::defaults;
use crate::sidecarset::size::{MAX_VALUES, count_values};

/// What is wrong with a pod's `spec`, which is at `path`. `volumes` are names of volumes that others add to it. `is_whole` is false
/// for a template that some controller completes: nothing that is missing there is a fault.
pub fn faults<'v>(spec: &Value, path: &Path, volumes: impl Iterator<Item = &'v str>, is_whole: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let values = count_values(spec);
    if values > MAX_VALUES {
        errors.push(Error::too_many(path, values, MAX_VALUES));
        return errors;
    }
    let mut judged = Map::new();
    for field in ["initContainers", "containers", "volumes"] {
        judged.insert(field.to_owned(), spec.get(field).cloned().unwrap_or(Value::Null));
    }
    if let Some(volumes) = with_volumes(judged.get("volumes"), volumes) {
        judged.insert("volumes".to_owned(), volumes);
    }
    let mut filled = PatchBuilder::new(&json!({"spec": judged}));
    // Where it cannot be filled the shape is wrong, which is named elsewhere.
    let _ = defaults::fill(&mut filled);
    let node = Node { value: filled.document().get("spec").unwrap_or(&Value::Null), path: path.clone() };
    let mut found = ErrorList::new();
    pod::check(&node, &mut found);
    names::check_unique(&node, &mut found);
    if node.child("containers").items().next().is_none()
        && matches!(node.child("containers").value, Value::Null | Value::Array(_))
    {
        found.push(Error::required(&path.child("containers"), ""));
    }
    errors.extend(found.into_iter().filter(|error| is_whole || !says_missing(error)));
    check_amounts(&Node { value: spec, path: path.clone() }, &mut errors);
    errors
}

/// A list of volumes with more names in it; absent where there is no list to add to.
fn with_volumes<'v>(list: Option<&Value>, names: impl Iterator<Item = &'v str>) -> Option<Value> {
    let mut list = match list {
        Some(Value::Array(list)) => list.clone(),
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return None,
    };
    let known: HashSet<String> =
        list.iter().filter_map(|volume| volume.get("name")?.as_str().map(str::to_owned)).collect();
    let more = names.filter(|name| !known.contains(*name)).map(|name| json!({"name": name, "emptyDir": {}}));
    list.extend(more);
    Some(list.into())
}

const fn says_missing(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Required | ErrorKind::NotFound)
}

/// The amounts of the pod as a whole.
fn check_amounts(spec: &Node<'_>, errors: &mut ErrorList) {
    let resources = spec.child("resources");
    for list in [resources.child("limits"), resources.child("requests"), spec.child("overhead")] {
        for (_, amount) in list.entries().filter(|(_, amount)| amount.value.is_string() || amount.value.is_number()) {
            if let Err(error) = Quantity::deserialize(amount.value) {
                errors.push(Error::invalid(&amount.path, amount.value, error.to_string()));
            }
        }
    }
}
