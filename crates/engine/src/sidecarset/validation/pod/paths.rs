//! File paths that must stay inside a volume.

use admission::field::{Error, ErrorList};

use super::Node;

/// The path at field `name` is relative and stays below where it starts.
pub fn check_descending(node: &Node<'_>, name: &'static str, errors: &mut ErrorList) {
    let text = node.text(name);
    if text.starts_with('/') {
        errors.push(Error::invalid(&node.path.child(name), text, "must be a relative path"));
    }
    check_no_backsteps(node, name, errors);
}

/// The path at field `name` has no `..` in it.
pub fn check_no_backsteps(node: &Node<'_>, name: &'static str, errors: &mut ErrorList) {
    let text = node.text(name);
    if text.split('/').any(|part| part == "..") {
        errors.push(Error::invalid(&node.path.child(name), text, "must not contain '..'"));
    }
}

/// The path at field `name` is descending and does not begin with the two dots that the kubelet's own files begin with.
pub fn check_not_reserved(node: &Node<'_>, name: &'static str, errors: &mut ErrorList) {
    check_descending(node, name, errors);
    let text = node.text(name);
    if text.starts_with("..") && !text.starts_with("../") && text != ".." {
        errors.push(Error::invalid(&node.path.child(name), text, "must not start with '..'"));
    }
}
