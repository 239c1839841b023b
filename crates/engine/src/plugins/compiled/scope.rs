//! Which requests an `AdmissionPlugin` is about.

use std::collections::BTreeSet;

use admission::field::{Error, ErrorList, Path};
use admission::format::names::{dns1123_label, dns1123_subdomain};
use admission::format::selector::{LabelSelector, Selector};

use super::MAX_ENTRIES;
use crate::plugins::api::Scope;

/// The namespaces by their labels; none where all are selected.
pub(super) fn selector(scope: &Scope, path: &Path, errors: &mut ErrorList) -> Option<Selector> {
    let compiled = compiled(scope.namespace_selector.as_ref()?, &path.child("namespaceSelector"), errors);
    compiled.filter(|selector| !selector.is_everything())
}

/// A selector without faults.
pub(super) fn compiled(selector: &LabelSelector, path: &Path, errors: &mut ErrorList) -> Option<Selector> {
    let before = errors.len();
    selector.validate(path, errors);
    if errors.len() > before { None } else { selector.compile().ok() }
}

/// Checks names of namespaces, users, groups and accounts.
pub(super) fn check(scope: &Scope, path: &Path, errors: &mut ErrorList) {
    let lists = [
        ("excludeNamespaces", &scope.exclude_namespaces),
        ("excludeUsers", &scope.exclude_users),
        ("excludeGroups", &scope.exclude_groups),
        ("excludeServiceAccounts", &scope.exclude_service_accounts),
    ];
    for (field, list) in lists {
        let path = path.child(field);
        if list.len() > usize::from(MAX_ENTRIES) {
            errors.push(Error::too_many(&path, list.len(), usize::from(MAX_ENTRIES)));
            continue;
        }
        for (index, text) in list.iter().enumerate() {
            let path = path.index(index);
            match field {
                _ if text.is_empty() => errors.push(Error::required(&path, "")),
                "excludeNamespaces" => {
                    for fault in dns1123_label(text) {
                        errors.push(Error::invalid(&path, text.as_str(), fault));
                    }
                }
                "excludeServiceAccounts" if !is_service_account(text) => {
                    errors.push(Error::invalid(&path, text.as_str(), "must be namespace/name"));
                }
                _ => {}
            }
        }
    }
}

/// Refuses what would choose among namespaces where there are none.
pub(super) fn refuse_namespaces(scope: &Scope, path: &Path, errors: &mut ErrorList) {
    let fields = [
        ("namespaceSelector", scope.namespace_selector.is_some()),
        ("excludeNamespaces", !scope.exclude_namespaces.is_empty()),
    ];
    for (field, _) in fields.into_iter().filter(|(_, is_set)| *is_set) {
        errors.push(Error::forbidden(&path.child(field), "nodes are in no namespace"));
    }
}

/// Whether it is `namespace/name`.
fn is_service_account(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(namespace, name)| dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty())
}

/// Names of users, those of service accounts among them.
pub(super) fn users(scope: &Scope) -> BTreeSet<String> {
    let accounts = scope.exclude_service_accounts.iter().filter_map(|account| account.split_once('/'));
    let accounts = accounts.map(|(namespace, name)| format!("system:serviceaccount:{namespace}:{name}"));
    scope.exclude_users.iter().cloned().chain(accounts).collect()
}
