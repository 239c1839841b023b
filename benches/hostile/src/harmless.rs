//! Ordinary bodies, as large as hostile ones.

use crate::bodies::{
    Body, CONVERT, CRON_JOBS, DEFAULTS, MUTATE_SET, Plugins, Policies, VALIDATE_SET, joined, pod, set,
};
use crate::further;

/// Containers of a harmless pod, at most.
const CONTAINERS: usize = 250;
/// Variables of a container, where there are several.
const VARIABLES: usize = 10;

/// An ordinary body for the same path and in the same world, but for its sets, filled to the size of a hostile one with variables.
pub fn harmless(hostile: &Body) -> Body {
    let path = hostile.path;
    let several = hostile.plugins != Plugins::None || hostile.policies == Policies::Ranges;
    let with = |variables: usize| {
        let containers = |image: &str| containers(image, variables, several);
        if further::is_of_changes(path) {
            further::harmless_change(path, containers)
        } else if path == CRON_JOBS || path == CONVERT {
            further::harmless_cron_job(path, &env(variables))
        } else if path == MUTATE_SET || path == VALIDATE_SET {
            set(path, &containers("app:1"))
        } else {
            Body { path, ..pod("", &containers("app:1"), "") }
        }
    };
    let size = |variables: usize| with(variables).text.len();
    let (bytes, empty) = (hostile.text.len().saturating_sub(size(0)), size(0));
    let mut variables = 1000;
    // The second time as there are no more containers from some size on.
    for _ in 0..2 {
        variables = bytes * variables / (size(variables.max(1)) - empty).max(1);
    }
    Body { plugins: hostile.plugins, policies: hostile.policies, ..with(variables) }
}

/// One container with all the variables. Where something is decided on each container, whatever the pod, several, as in pods that are not
/// hostile.
fn containers(image: &str, variables: usize, several: bool) -> String {
    let count = if several { (variables / VARIABLES).clamp(1, CONTAINERS) } else { 1 };
    let env = env(variables / count);
    joined(count, |i| format!(r#"{{"name":"app-{i}","image":"{image}","env":[{env}],{DEFAULTS}}}"#))
}

fn env(variables: usize) -> String {
    joined(variables, |i| format!(r#"{{"name":"VARIABLE_{i}","value":"the value of variable {i}"}}"#))
}
