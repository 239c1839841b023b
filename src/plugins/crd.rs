//! The `CustomResourceDefinition`, written from code so that it cannot lag behind the types.

mod sections;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, ValidationRule,
};

use crate::crd::schema::{
    atomic_list, column, condition_column, default, int64, label_selector, object, requiring, root, short_text,
    status_of_conditions, text,
};
use crate::crd::{Definition, Scope};
use engine::plugins::Plugin;
use engine::plugins::api::{GROUP, KIND, PLURAL, VERSION};
use engine::plugins::compiled::{MAX_ENTRIES, Mode};

const DESCRIPTION: &str =
    "AdmissionPlugin switches on an admission plugin of the API server, for clusters whose flags cannot be set.";

/// Where an object says why it is called for, or is not.
const REASON: &str = ".status.conditions[?(@.type==\"Programmed\")].reason";

/// The definition of the resource `admissionplugins`.
pub fn admission_plugin() -> CustomResourceDefinition {
    let definition = Definition {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        plural: PLURAL,
        scope: Scope::Cluster,
        schema: object_schema(),
        columns: vec![
            column("Plugin", "string", ".spec.plugin", "The plugin."),
            column("Mode", "string", ".spec.mode", "What becomes of its decisions."),
            condition_column("Accepted", "Whether the object can be used."),
            condition_column("Programmed", "Whether the API server calls for it."),
            column("Reason", "string", REASON, "Why it is programmed or not; the message of the condition says more."),
        ],
        scale: None,
    };
    definition.into_crd()
}

/// The schema of the whole object.
pub fn object_schema() -> JSONSchemaProps {
    let status = status_of_conditions("Accepted, Programmed and Conflict.");
    requiring(&["spec"], root(DESCRIPTION, spec(), status))
}

/// A rule in CEL, with the message for the user.
fn cel(rule: String, message: String) -> ValidationRule {
    ValidationRule { rule, message: Some(message), ..ValidationRule::default() }
}

/// Words and numbers are judged by the webhook, which reports everything that is wrong at once, and why a plugin is not served.
fn spec() -> JSONSchemaProps {
    let plugin = JSONSchemaProps {
        x_kubernetes_validations: Some(vec![cel(
            "self == oldSelf".to_owned(),
            "field is immutable; write another AdmissionPlugin".to_owned(),
        )]),
        ..short_text(
            253,
            "Name of the plugin, as --enable-admission-plugins has it. It cannot be changed. `outrider plugins` lists those that are served.",
        )
    };
    let general = [
        ("plugin", plugin),
        (
            "mode",
            default(
                Mode::Enforce.name().into(),
                text(
                    "Enforce (default): decisions are carried out. Warn: the user is warned of what would be done. Audit: the audit log has what would be done. Off: nothing.",
                ),
            ),
        ),
        ("match", scope()),
        (
            "failurePolicy",
            text(
                "What happens to a request if the webhook does not answer: Fail (default) or Ignore. Not for plugins of pods, which share the entries of pods. OwnerReferencesPermissionEnforcement and StorageObjectInUseProtection: Ignore by default. EventRateLimit, PodTopologyLabels and plugins of nodes: always Ignore.",
            ),
        ),
        (
            "timeoutSeconds",
            int64(
                "How long the API server waits, from 1 to 10 seconds. Default: 10. Not for plugins of pods. EventRateLimit and PodTopologyLabels: 1 (default) or 2. Plugins of nodes: 1 or 2 (default).",
            ),
        ),
        ("backend", text("Not served yet. An object that has it is refused.")),
    ];
    let sections = Plugin::ALL.map(|plugin| (plugin.section(), sections::section(plugin)));
    let only = Plugin::ALL.map(|plugin| {
        let (name, section) = (plugin.name(), plugin.section());
        cel(format!("!has(self.{section}) || self.plugin == '{name}'"), format!("{section} is only for plugin: {name}"))
    });
    let fields = general.into_iter().chain(sections);
    let spec = requiring(&["plugin"], object("Which plugin, for which requests, with which configuration.", fields));
    let never_fails = Plugin::ALL.into_iter().filter(|plugin| plugin.never_fails()).map(|plugin| {
        cel(
            format!("self.plugin != '{plugin}' || !has(self.failurePolicy) || self.failurePolicy != 'Fail'"),
            format!("failurePolicy must be Ignore for plugin: {plugin}"),
        )
    });
    let rules = [known_beside_a_section()].into_iter().chain(only).chain(never_fails).collect();
    JSONSchemaProps { x_kubernetes_validations: Some(rules), ..spec }
}

/// A section is judged by its plugin before the webhook is called, which says what is wrong with a name that is none.
fn known_beside_a_section() -> ValidationRule {
    let names = Plugin::ALL.map(Plugin::name);
    let quoted = names.map(|name| format!("'{name}'")).join(", ");
    let sections = Plugin::ALL.map(|plugin| format!("has(self.{})", plugin.section())).join(" || ");
    let served = format!("Outrider serves {}", names.join(", "));
    ValidationRule {
        message_expression: Some(format!("'plugin ' + self.plugin + ' is not served: {served}'")),
        ..cel(format!("self.plugin in [{quoted}] || !({sections})"), format!("plugin is not served: {served}"))
    }
}

fn texts(item: &str, description: &str) -> JSONSchemaProps {
    JSONSchemaProps { max_items: Some(MAX_ENTRIES.into()), ..atomic_list(short_text(1024, item), description) }
}

fn scope() -> JSONSchemaProps {
    object(
        "Which requests the plugin is about. Namespaces that Outrider leaves alone are never among them.",
        [
            ("namespaceSelector", label_selector("Namespaces, by their labels. Default: all.")),
            ("excludeNamespaces", texts("Name of a namespace.", "Namespaces that are left alone as well.")),
            ("excludeUsers", texts("Name of a user.", "Users who are exempt.")),
            ("excludeGroups", texts("Name of a group.", "Groups whose members are exempt.")),
            ("excludeServiceAccounts", texts("namespace/name.", "Service accounts that are exempt.")),
        ],
    )
}
