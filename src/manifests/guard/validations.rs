//! What the service account may write in webhook configurations and definitions, as CEL.

use k8s_openapi::api::admissionregistration::v1::{Validation, Variable};

use super::cel::{field, list, same_but, text};
use super::{ALL_RESOURCES_VARIABLE, ON_DEMAND};
use crate::certs::ca_bundle::object::RETIRING;
use crate::kinds::Kinds;
use crate::names::{BREAK_GLASS, FAIL_OPEN, NARROW, ON_DEMAND_VALIDATING, SERVICE};
use crate::server::webhooks::CONVERT_PATH;

/// Fields of metadata that the API server keeps, and annotations, which have a rule of their own.
const FREE_METADATA: [&str; 4] = ["annotations", "generation", "managedFields", "resourceVersion"];

/// What an entry of an on-demand configuration may be about. Nothing here holds a secret of others.
pub const RESOURCES: [&str; 11] = [
    "events",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "pods/binding",
    "pods/ephemeralcontainers",
    "pods/resize",
    "services",
    "volumeattributesclasses",
];
/// Events are served in two groups; classes of attributes are in one of their own.
pub const GROUPS: [&str; 3] = ["", "events.k8s.io", "storage.k8s.io"];

/// Expressions of a policy.
pub struct PolicyRules {
    /// In the order in which they are used.
    pub variables: Vec<Variable>,
    /// All of them must hold.
    pub validations: Vec<Validation>,
}

/// Of mutating and validating webhook configurations.
pub fn of_webhooks() -> PolicyRules {
    let annotations = [BREAK_GLASS, RETIRING, FAIL_OPEN];
    let mut variables = annotation_variables(&annotations);
    variables.extend([
        variable("old", field("oldObject", "webhooks", "[]")),
        variable("new", field("object", "webhooks", "[]")),
        variable("freeOfEntry", list(&["clientConfig", "failurePolicy", "matchConditions"])),
        variable("onDemand", format!("request.name in {}", list(&ON_DEMAND))),
        variable("groups", list(&GROUPS)),
        variable("resources", list(&RESOURCES)),
        variable(ALL_RESOURCES_VARIABLE, "false".to_owned()),
    ]);
    let mut validations = common(&annotations, "webhooks");
    validations.extend([
        on_update(
            &format!("variables.onDemand || (variables.new.map(n, n.name) == variables.old.map(o, o.name) && {})", entries()),
            "of an entry only caBundle, failurePolicy and the match condition outrider.dev/narrow may change, and no entry may \
             come or go",
        ),
        on_update(
            &format!("!variables.onDemand || variables.new.all(n, n in variables.old || ({}))", on_demand_entry("n")),
            &format!(
                "a new or changed on-demand entry calls the Service {SERVICE} and names resources of the list in this policy, or any \
                 where it validates and the variable {ALL_RESOURCES_VARIABLE} is true"
            ),
        ),
    ]);
    PolicyRules { variables, validations }
}

/// Every entry is as it was, but for what is ours to write.
fn entries() -> String {
    let conditions = |entry: &str| {
        let all = field(entry, "matchConditions", "[]");
        format!("{all}.filter(c, c.name != {})", text(NARROW))
    };
    let entry = same_but("n", "o", "variables.freeOfEntry");
    let client = same_but("n.clientConfig", "o.clientConfig", "['caBundle']");
    let (new, old) = (conditions("n"), conditions("o"));
    format!("variables.new.all(n, variables.old.exists(o, o.name == n.name && {entry} && {client} && {new} == {old}))")
}

fn on_demand_entry(entry: &str) -> String {
    let client = calls_us(&format!("{entry}.clientConfig"));
    let rules = field(entry, "rules", "[]");
    // What changes objects never concerns all of them: no plugin needs it, and it could give an account the rights of another.
    let all = format!(
        "(variables.{ALL_RESOURCES_VARIABLE} && request.resource.resource == 'validatingwebhookconfigurations' && request.name == {})",
        text(ON_DEMAND_VALIDATING)
    );
    let listed = "r.apiGroups.all(g, g in variables.groups) && r.resources.all(x, x in variables.resources)";
    format!("{client} && ({all} || {rules}.all(r, {listed}))")
}

/// Of custom resource definitions.
pub fn of_definitions() -> PolicyRules {
    let annotations = [RETIRING];
    let ours = Kinds::all().converted();
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let conversion = |object: &str| field(object, "spec.conversion", "{}");
    let mut variables = annotation_variables(&annotations);
    variables.extend([
        variable("old", conversion("oldObject")),
        variable("new", conversion("object")),
        variable("oldWebhook", field("variables.old", "webhook", "{}")),
        variable("newWebhook", field("variables.new", "webhook", "{}")),
        variable("oldClient", field("variables.oldWebhook", "clientConfig", "{}")),
        variable("newClient", field("variables.newWebhook", "clientConfig", "{}")),
    ]);
    let mut validations = common(&annotations, "spec");
    validations.extend([
        on_update(&format!("request.name in {}", list(&ours)), "it is none of the definitions that Outrider converts"),
        on_update(
            &same_but("object.spec", "oldObject.spec", "['conversion']"),
            "of a definition only spec.conversion may change",
        ),
        on_update(
            &conversion_rule(),
            &format!("conversion calls the Service {SERVICE}, or is as it was but for caBundle"),
        ),
    ]);
    PolicyRules { variables, validations }
}

/// A process outside the cluster may have left its address there, which is turned back to the Service.
fn conversion_rule() -> String {
    let outside = same_but("variables.new", "variables.old", "['webhook']");
    let webhook = same_but("variables.newWebhook", "variables.oldWebhook", "['clientConfig']");
    let client = same_but("variables.newClient", "variables.oldClient", "['caBundle']");
    let calls_us = calls_us("variables.newClient");
    let path = text(CONVERT_PATH);
    format!(
        "({outside} && {webhook} && {client}) || (variables.new.all(k, k in ['strategy', 'webhook']) && \
         variables.new.strategy == 'Webhook' && variables.newWebhook.all(k, k in ['clientConfig', 'conversionReviewVersions']) && \
         {calls_us} && variables.newClient.service.path == {path})"
    )
}

/// Whether a client configuration calls our Service, and names nothing else.
fn calls_us(client: &str) -> String {
    format!(
        "{client}.all(k, k in ['caBundle', 'service']) && has({client}.service) && {client}.service.name == {} && \
         {client}.service.namespace == variables.ownNamespace",
        text(SERVICE)
    )
}

fn annotation_variables(own: &[&str]) -> Vec<Variable> {
    let mut variables = metadata_variables();
    variables.push(variable("ownAnnotations", list(own)));
    variables
}

/// What every policy reads of metadata.
pub fn metadata_variables() -> Vec<Variable> {
    vec![
        variable("freeOfMetadata", list(&FREE_METADATA)),
        variable("oldAnnotations", field("oldObject", "metadata.annotations", "{}")),
        variable("newAnnotations", field("object", "metadata.annotations", "{}")),
    ]
}

/// What holds for every object: `content` is the field that further rules are about.
fn common(annotations: &[&str], content: &str) -> Vec<Validation> {
    let annotations = format!("of the annotations only {} may change", annotations.join(", "));
    vec![
        Validation {
            expression: "request.operation == 'UPDATE' && (!has(request.subResource) || request.subResource == '')"
                .to_owned(),
            message: Some(refusal(
                "it may be updated, and neither created nor deleted, and its status is the API server's",
            )),
            ..Validation::default()
        },
        on_update(&same_but("object", "oldObject", &list(&["metadata", content])), "no other field may change"),
        on_update(
            &same_but("object.metadata", "oldObject.metadata", "variables.freeOfMetadata"),
            "of its metadata only annotations may change",
        ),
        on_update(
            &same_but("variables.newAnnotations", "variables.oldAnnotations", "variables.ownAnnotations"),
            &annotations,
        ),
    ]
}

/// A rule for updates. Other operations are refused by a rule of their own, which then is the only one that speaks.
pub fn on_update(expression: &str, message: &str) -> Validation {
    Validation {
        expression: format!("request.operation != 'UPDATE' || ({expression})"),
        message: Some(refusal(message)),
        ..Validation::default()
    }
}

/// The message of a rule.
pub fn refusal(rule: &str) -> String {
    format!("Outrider's service account may not do this: {rule}")
}

/// A variable of a policy.
pub fn variable(name: &str, expression: String) -> Variable {
    Variable { name: name.to_owned(), expression }
}
