//! Capabilities of containers.

use std::collections::BTreeSet;

use admission::field::{Error, ErrorList, Path, quote};
use serde_json::Value;

use super::api::ProfileSpec;
use super::compiled::{Least, bounded};
use super::context::{Context, elements, map, member};
use super::faults::{NIL, ProfileFaults, listed};

/// What containers may add and must drop.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Capabilities {
    default_add: BTreeSet<String>,
    required_drop: Vec<String>,
    allowed: BTreeSet<String>,
}

/// The word for any.
const ANY: &str = "*";

type Names<'v> = BTreeSet<&'v str>;

fn names<'v>(capabilities: Option<&'v Value>, list: &str) -> Names<'v> {
    elements(capabilities, list).iter().filter_map(Value::as_str).collect()
}

impl Capabilities {
    /// What a profile says, and what is wrong with it.
    pub fn read(spec: &ProfileSpec, path: &Path, errors: &mut ErrorList) -> Self {
        let drops = &spec.required_drop_capabilities;
        let lists = [
            ("requiredDropCapabilities", drops),
            ("defaultAddCapabilities", &spec.default_add_capabilities),
            ("allowedCapabilities", &spec.allowed_capabilities),
        ];
        for (field, list) in lists {
            bounded(list, &path.child(field), Least::OneCharacter, errors);
        }
        if !drops.is_empty() && spec.allowed_capabilities.iter().any(|one| one == ANY) {
            let detail = "must be empty when all capabilities are allowed by a wildcard";
            let value = Value::from(drops.clone());
            errors.push(Error::invalid(&path.child("requiredDropCapabilities"), &value, detail));
        }
        let dropped: BTreeSet<&String> = drops.iter().collect();
        for (field, list) in lists.into_iter().skip(1) {
            for one in list.iter().filter(|one| dropped.contains(one)) {
                let detail = format!("capability is listed in {field} and requiredDropCapabilities");
                errors.push(Error::invalid(&path.child(field), one, detail));
            }
        }
        Self {
            default_add: spec.default_add_capabilities.iter().cloned().collect(),
            required_drop: drops.clone(),
            allowed: spec.allowed_capabilities.iter().cloned().collect(),
        }
    }

    /// Fills in what a container adds and drops.
    pub fn fill(&self, container: &mut Context<'_>) {
        let filled = {
            let found = container.get("capabilities");
            let (adds, drops) = (names(found, "add"), names(found, "drop"));
            let missing = self.default_add.iter().map(String::as_str).filter(|one| !drops.contains(one));
            let all_adds: Names<'_> = adds.iter().copied().chain(missing).collect();
            let required = self.required_drop.iter().map(String::as_str);
            let all_drops: Names<'_> = drops.iter().copied().chain(required).collect();
            if all_adds.len() == adds.len() && all_drops.len() == drops.len() {
                return;
            }
            let list = |names: Names<'_>| {
                if names.is_empty() { Value::Null } else { Value::from(names.into_iter().collect::<Vec<_>>()) }
            };
            let mut filled = map([("add", list(all_adds)), ("drop", list(all_drops))]);
            if let Value::Object(lists) = &mut filled {
                lists.retain(|_, list| !list.is_null());
            }
            filled
        };
        container.fill("capabilities", filled);
    }

    /// Checks what a container adds and drops.
    pub fn check(&self, container: &Context<'_>, path: &Path, faults: &mut ProfileFaults) {
        let found = container.get("capabilities");
        if found.is_none() {
            if !self.default_add.is_empty() || !self.required_drop.is_empty() {
                let detail = "required capabilities are not set on the securityContext";
                faults.add(|| Error::invalid(path, NIL, detail));
            }
            return;
        }
        if self.allowed.contains(ANY) {
            return;
        }
        for one in elements(found, "add").iter().filter_map(Value::as_str) {
            if !self.default_add.contains(one) && !self.allowed.contains(one) {
                faults.add(|| Error::invalid(&path.child("add"), one, "capability may not be added"));
            }
        }
        let drops = names(found, "drop");
        for one in self.required_drop.iter().filter(|one| !drops.contains(one.as_str())) {
            faults.add(|| {
                let list = member(found, "drop").and_then(Value::as_array);
                let shown = list.map(|list| list.iter().map(|one| quote(one.as_str().unwrap_or_default())));
                let detail = format!("{one} is required to be dropped but was not found");
                super::faults::invalid_as(&path.child("drop"), listed("core.Capability", shown), detail)
            });
        }
    }
}
