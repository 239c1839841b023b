//! Labels of SELinux.

use admission::field::{Error, ErrorList, Path};
use serde_json::{Map, Value};

use super::api::{MUST_RUN_AS, RUN_AS_ANY, SeLinuxOptions, SeLinuxStrategy};
use super::context::text;
use super::faults::ProfileFaults;

const RULES: [&str; 2] = [MUST_RUN_AS, RUN_AS_ANY];

/// The label that pods and containers must have; none where they may have any.
pub fn read(strategy: &SeLinuxStrategy, path: &Path, errors: &mut ErrorList) -> Option<SeLinuxOptions> {
    if !RULES.contains(&strategy.rule.as_str()) {
        errors.push(Error::not_supported(&path.child("rule"), strategy.rule.as_str(), &RULES));
        return None;
    }
    if strategy.rule == RUN_AS_ANY {
        return None;
    }
    if strategy.se_linux_options.is_none() {
        errors.push(Error::required(&path.child("seLinuxOptions"), "MustRunAs requires SELinuxOptions"));
    }
    strategy.se_linux_options.clone()
}

/// The label as a pod has it.
pub fn as_value(label: &SeLinuxOptions) -> Value {
    let parts = [("level", &label.level), ("role", &label.role), ("type", &label.type_), ("user", &label.user)];
    let written = parts.into_iter().filter(|(_, part)| !part.is_empty());
    Value::Object(written.map(|(name, part)| (name.to_owned(), part.as_str().into())).collect::<Map<_, _>>())
}

/// Checks a label of a pod or a container.
pub fn check(required: &SeLinuxOptions, found: Option<&Value>, path: &Path, faults: &mut ProfileFaults) {
    if found.is_none() {
        return faults.add(|| Error::required(path, ""));
    }
    let part = |name: &str| text(found, name).unwrap_or_default();
    let level = part("level");
    if !are_equal_levels(&required.level, level) {
        faults.add(|| Error::invalid(&path.child("level"), level, format!("must be {}", required.level)));
    }
    for (name, wanted) in [("role", &required.role), ("type", &required.type_), ("user", &required.user)] {
        let found = part(name);
        if found != wanted {
            faults.add(|| Error::invalid(&path.child(name), found, format!("must be {wanted}")));
        }
    }
}

/// Whether two levels are one: `s0:c6,c0` is `s0:c0,c6`.
fn are_equal_levels(one: &str, other: &str) -> bool {
    let categories = |text: &str| {
        let mut all: Vec<String> = text.split(',').map(str::to_owned).collect();
        all.sort();
        all
    };
    let parts = || {
        let ((one, of_one), (other, of_other)) = (one.split_once(':')?, other.split_once(':')?);
        Some(one == other && of_one.len() == of_other.len() && categories(of_one) == categories(of_other))
    };
    one == other || parts().unwrap_or(false)
}
