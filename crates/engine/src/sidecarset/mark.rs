//! The variable that marks injected containers. It is `OpenKruise`'s convention, by which other tools distinguish sidecars from
//! the pod's own containers.

use admission::raw::{each_element, member};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::sidecarset::api::RawObject;

/// Name of the variable.
pub(crate) const NAME: &str = "IS_INJECTED";
const VALUE: &str = "true";

/// Adds the mark, unless the container has a variable of that name.
pub(super) fn mark(container: &mut RawObject) {
    let env = container.entry("env").or_insert(Value::Null);
    if env.is_null() {
        *env = json!([]);
    }
    if let Value::Array(list) = env
        && !list.iter().any(is_of_that_name)
    {
        list.push(json!({"name": NAME, "value": VALUE}));
    }
}

/// Whether a container carries the mark. Of a variable that is there twice the last counts, as for the kubelet.
pub(crate) fn is_marked(container: &RawObject) -> bool {
    let env = container.get("env").and_then(Value::as_array);
    env.into_iter().flatten().rev().find_map(says).unwrap_or_default()
}

/// The same of a container as it is in a body: no other variables than those that may be the mark are decoded.
pub(crate) fn is_marked_raw(container: &RawValue) -> bool {
    let Some(env) = member(container, "env") else { return false };
    let mut marked = false;
    each_element(env, |variable| marked = says_raw(variable).unwrap_or(marked));
    marked
}

/// Longest text of a variable that can be the mark.
const LONGEST: usize = 256;

/// As [`says`], of a variable as it is in a body.
pub(crate) fn says_raw(variable: &RawValue) -> Option<bool> {
    let text = variable.get();
    let may_be = text.len() <= LONGEST && text.contains(NAME);
    if may_be { says(&serde_json::from_str(text).ok()?) } else { None }
}

/// Whether a variable says that its container was injected; `None` for a variable of another name.
pub(crate) fn says(variable: &Value) -> Option<bool> {
    is_of_that_name(variable).then(|| variable.get("value").is_some_and(|value| value == VALUE))
}

fn is_of_that_name(variable: &Value) -> bool {
    variable.get("name").is_some_and(|name| name == NAME)
}
