//! Which pods a set can reach: its selectors.

use admission::field::{Error, ErrorList, Path};
use admission::format::Selector;
use admission::format::selector::LabelSelector;

use crate::sidecarset::api::SidecarSetSpec;

/// The label that every namespace carries with its own name.
pub const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Which namespaces a set reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceScope {
    /// Every namespace.
    All,
    /// The namespace of this name.
    Named(String),
    /// Namespaces by label.
    Selected {
        /// The selector.
        selector: Selector,
        /// Whether every condition is about the namespace's name, which is known without having seen the namespace.
        by_name_alone: bool,
    },
}

/// The selector, or none for one that is malformed.
pub(super) fn compile_selector(selector: Option<&LabelSelector>, errors: &mut ErrorList) -> Selector {
    match selector.map(LabelSelector::compile) {
        Some(Ok(selector)) => selector,
        Some(Err(found)) => {
            errors.extend(found);
            Selector::default()
        }
        None => Selector::default(),
    }
}

/// The namespaces that a set reaches.
pub(super) fn scope(spec: &SidecarSetSpec, errors: &mut ErrorList) -> NamespaceScope {
    match (&spec.namespace, &spec.namespace_selector) {
        (Some(name), _) if !name.is_empty() => NamespaceScope::Named(name.clone()),
        (_, Some(selector)) => {
            let selector = compile_selector(Some(selector), errors);
            let by_name_alone = selector.requirements().iter().all(|term| term.key() == NAMESPACE_NAME_LABEL);
            NamespaceScope::Selected { selector, by_name_alone }
        }
        _ => NamespaceScope::All,
    }
}

/// A set never reaches every pod of the cluster: `spec.selector`, `spec.namespace` or `spec.namespaceSelector` narrows it.
pub(super) fn check_reach(spec: &SidecarSetSpec, path: &Path, errors: &mut ErrorList) {
    let selects_all = |selector: &Option<LabelSelector>| selector.as_ref().is_none_or(LabelSelector::is_empty);
    let has_namespace = spec.namespace.as_ref().is_some_and(|name| !name.is_empty());
    if selects_all(&spec.selector) && selects_all(&spec.namespace_selector) && !has_namespace {
        let detail = "an empty selector needs a namespace or a namespaceSelector beside it";
        errors.push(Error::required(&path.child("selector"), detail));
    }
    if has_namespace && spec.namespace_selector.is_some() {
        errors.push(Error::forbidden(&path.child("namespace"), "may not be specified together with namespaceSelector"));
    }
}
