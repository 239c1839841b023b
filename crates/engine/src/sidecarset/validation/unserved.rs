//! Values that would change the injected pod in a way that this build cannot: refused by name, never ignored.

use admission::field::{Error, ErrorList, Path};

use super::node::Node;

/// Refuses what is asked for and not served. Defaults and values that turn a thing off are accepted.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    let recreate = spec.child("updateStrategy").child("recreate");
    if recreate.value.as_bool() == Some(true) {
        forbid(&recreate.path, "eviction of pods that cannot be updated in place", errors);
    }
}

fn forbid(path: &Path, what: &str, errors: &mut ErrorList) {
    errors.push(Error::forbidden(path, format!("{what} is not served by this build; remove it")));
}
