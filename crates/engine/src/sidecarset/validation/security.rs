//! `spec.platform`, `spec.podSecurity` and `spec.jobPods`. Words are checked with the schema.

use admission::field::{Error, ErrorList};
use serde_json::Value;

use super::node::Node;
use crate::sidecarset::vocabulary::{CLASH_REFUSE, JOB_SKIP, OPT_OUT_DENIED, PLATFORM_LINUX, SECURITY_COMPLETE};

/// Capabilities that the level restricted lets a container add.
const MAY_BE_ADDED: [&str; 1] = ["NET_BIND_SERVICE"];

/// Options for Windows are not for Linux.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    if spec.text("platform") != PLATFORM_LINUX {
        return;
    }
    for context in contexts(spec) {
        let options = context.child("windowsOptions");
        if options.value.is_object() {
            let detail = "may not be set with spec.platform linux; set it to windows";
            errors.push(Error::forbidden(&options.path, detail));
        }
    }
}

/// Warns of what completion does not change, and of a way around a must.
pub fn warn(spec: &Node<'_>, warnings: &mut Vec<String>) {
    if spec.text("podSecurity") == SECURITY_COMPLETE {
        for context in contexts(spec) {
            let fields = not_restricted(&context).into_iter();
            warnings.extend(fields.map(|field| {
                format!(
                    "{}: the level restricted does not allow this value; podSecurity Complete changes no value",
                    field.path
                )
            }));
        }
    }
    let is_must = spec.text("optOut") == OPT_OUT_DENIED && matches!(spec.text("clashPolicy"), "" | CLASH_REFUSE);
    if is_must && spec.text("jobPods") == JOB_SKIP {
        warnings.push(
            "spec.jobPods: with Skip every pod with restartPolicy Never or OnFailure goes without the set, though no pod may opt out"
                .to_owned(),
        );
    }
}

fn contexts<'a>(spec: &Node<'a>) -> Vec<Node<'a>> {
    let lists = ["initContainers", "containers"].map(|list| spec.child(list));
    let contexts = |list: &Node<'a>| list.items().map(|it| it.child("securityContext")).collect::<Vec<_>>();
    lists.iter().flat_map(contexts).collect()
}

/// Fields whose values the level does not allow.
fn not_restricted<'a>(context: &Node<'a>) -> Vec<Node<'a>> {
    let is = |field: &'static str, value: Value| Some(context.child(field)).filter(|node| *node.value == value);
    let mut fields: Vec<Node<'a>> = [
        is("privileged", true.into()),
        is("allowPrivilegeEscalation", true.into()),
        is("runAsNonRoot", false.into()),
        is("runAsUser", 0.into()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let seccomp = context.child("seccompProfile").child("type");
    if seccomp.value == "Unconfined" {
        fields.push(seccomp);
    }
    let capabilities = context.child("capabilities");
    let added = capabilities.child("add");
    if added.items().any(|added| added.value.as_str().is_some_and(|name| !MAY_BE_ADDED.contains(&name))) {
        fields.push(added);
    }
    let dropped = capabilities.child("drop");
    if dropped.is_there() && dropped.items().all(|dropped| dropped.value != "ALL") {
        fields.push(dropped);
    }
    fields
}
