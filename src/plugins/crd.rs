//! The `CustomResourceDefinition`, written from code so that it cannot lag behind the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, ValidationRule,
};

use crate::crd::schema::{
    Field, atomic_list, column, condition_column, default, flag, int64, label_selector, map_of, object, requiring,
    root, short_text, status_of_conditions, text, word,
};
use crate::crd::{Definition, Scope};
use engine::plugins::Plugin;
use engine::plugins::api::{DAEMON_SET_PODS, GROUP, KIND, PLURAL, VERSION};
use engine::plugins::compiled::{MAX_ENTRIES, MAX_PULL_SECRETS, Mode};
use engine::plugins::placement::{MAX_DEFAULT_TOLERATIONS, MAX_TOLERATIONS};

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
    let sections = Plugin::ALL.map(|plugin| (plugin.section(), section(plugin)));
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

fn section(plugin: Plugin) -> JSONSchemaProps {
    let fields: Vec<Field> = match plugin {
        Plugin::AlwaysPullImages => vec![
            (
                "exemptImages",
                texts("An image; * is any text.", "Images that are left alone, such as registry.example/*@sha256:*."),
            ),
            (
                "includeEphemeralContainers",
                flag(
                    "Whether ephemeral containers that are added to a pod are covered, which the API server's own plugin does not do. Default: false.",
                ),
            ),
        ],
        Plugin::PodNodeSelector => vec![
            (
                "clusterDefaultNodeSelector",
                text(
                    "Node selector of namespaces without the annotation scheduler.alpha.kubernetes.io/node-selector, as key=value,…",
                ),
            ),
            (
                "namespaceAllowLists",
                map_of(
                    text("Labels as key=value,…"),
                    "By namespace, the labels that its pods may select; all where there is no entry.",
                ),
            ),
            (
                "daemonSetPods",
                word(
                    &DAEMON_SET_PODS,
                    "Whether the pods of DaemonSets get the selector: Apply (default), as the API server's own plugin does, or Skip. They are known by who creates them.",
                ),
            ),
        ],
        Plugin::PodTolerationRestriction => vec![
            (
                "default",
                tolerations(
                    MAX_DEFAULT_TOLERATIONS,
                    "Tolerations of pods in namespaces without the annotation scheduler.alpha.kubernetes.io/defaultTolerations.",
                ),
            ),
            (
                "whitelist",
                tolerations(
                    MAX_TOLERATIONS,
                    "What pods may tolerate in namespaces without the annotation scheduler.alpha.kubernetes.io/tolerationsWhitelist; everything where empty.",
                ),
            ),
            (
                "alwaysAllowBuiltin",
                flag(
                    "Whether tolerations that Kubernetes itself adds are always allowed, which the API server's own plugin does not do. Default: true.",
                ),
            ),
            ("annotationsAllowed", flag("Whether annotations of namespaces are read. Default: true.")),
        ],
        Plugin::DefaultTolerationSeconds => vec![
            ("notReadySeconds", int64("Seconds that pods stay on a node that is not ready. Default: 300.")),
            ("unreachableSeconds", int64("Seconds that pods stay on a node that cannot be reached. Default: 300.")),
        ],
        Plugin::ExtendedResourceToleration
        | Plugin::StorageObjectInUseProtection
        | Plugin::PersistentVolumeClaimResize
        | Plugin::TaintNodesByCondition => vec![],
        Plugin::LimitPodHardAntiAffinityTopology => vec![(
            "allowedTopologyKeys",
            texts(
                "A label key.",
                "Topology keys that required anti-affinity may have. Default: kubernetes.io/hostname.",
            ),
        )],
        Plugin::DenyServiceExternalIPs => {
            vec![(
                "allowedCIDRs",
                texts("A range such as 192.0.2.0/24.", "Ranges whose addresses are allowed. Default: none."),
            )]
        }
        Plugin::NamespaceLifecycle => vec![
            (
                "protectedNamespaces",
                texts("Name of a namespace; * is any text.", "Names of namespaces that may not be deleted."),
            ),
            ("protectedLabelSelector", label_selector("Namespaces that may not be deleted, by their labels.")),
            (
                "breakGlassAnnotation",
                text(
                    "Annotation that allows the deletion of a namespace that has it with the value true. Default: none.",
                ),
            ),
        ],
        Plugin::PodSecurity => vec![("defaults", pod_security())],
        Plugin::OwnerReferencesPermissionEnforcement => vec![(
            "resources",
            texts(
                "A resource such as pods, or with its group such as deployments.apps.",
                "Resources whose objects are covered. Default: all, except those that every request needs.",
            ),
        )],
        Plugin::ResourceQuota => vec![("limitedResources", limited_resources())],
        Plugin::ImagePolicyWebhook => image_policy_webhook(),
        Plugin::PodTopologyLabels => vec![
            ("nodeLabels", texts("Key of a label of nodes.", "Labels of nodes that their pods get; at most 32.")),
            ("target", text("Labels (default), Annotations or Both: what they become in the pod.")),
        ],
        Plugin::Priority => vec![
            ("priorityClassName", short_text(253, "The PriorityClass that pods get which name none.")),
            (
                "replacedClassNames",
                texts(
                    "Name of a PriorityClass.",
                    "PriorityClasses that are replaced as if the pod named none, such as the default of the cluster: the API server fills that in before a webhook is called. Default: none.",
                ),
            ),
        ],
        Plugin::NodeRestriction => vec![(
            "iUnderstandTheRisk",
            flag(
                "Must be true: kubelets wait for this plugin, and while no replica of Outrider answers, nothing is restricted.",
            ),
        )],
        Plugin::ServiceAccount => vec![
            (
                "limitSecretReferences",
                flag(
                    "Whether the pods of every account may use only the secrets that it names, as if it had the annotation kubernetes.io/enforce-mountable-secrets. Default: false.",
                ),
            ),
            ("imagePullSecrets", pull_secrets()),
        ],
        Plugin::RuntimeClass => {
            vec![("runtimeClassName", short_text(253, "The RuntimeClass that pods get which name none."))]
        }
        Plugin::DefaultStorageClass => vec![
            (
                "storageClassName",
                short_text(
                    253,
                    "The class that claims get which name none. Default: the default class of the cluster.",
                ),
            ),
            (
                "replaceClusterDefault",
                flag(
                    "Whether claims with the default class of the cluster get it as well: the API server fills that in before a webhook is called. Default: false.",
                ),
            ),
        ],
        Plugin::EventRateLimit => vec![
            ("limits", event_limits()),
            (
                "coverEventsV1",
                flag(
                    "Whether events of the group events.k8s.io are limited as well, which the API server's own plugin does not do. Default: false.",
                ),
            ),
        ],
    };
    object(&format!("Configuration of {plugin}."), fields)
}

fn pod_security() -> JSONSchemaProps {
    let level = |what: &str| text(&format!("Level {what}: privileged, baseline or restricted."));
    let version = |what: &str| text(&format!("Version of the level {what}: latest, or v1.x."));
    let (enforce, audit, warn) = ("that pods are refused by", "that the audit log goes by", "that warnings go by");
    object(
        "Values of the labels pod-security.kubernetes.io/… that new namespaces without them get.",
        [
            ("enforce", level(enforce)),
            ("enforce-version", version(enforce)),
            ("audit", level(audit)),
            ("audit-version", version(audit)),
            ("warn", level(warn)),
            ("warn-version", version(warn)),
        ],
    )
}

fn image_policy_webhook() -> Vec<Field> {
    vec![
        (
            "kubeConfigKey",
            text(
                "Key of the Secret outrider-image-policy, in the namespace of Outrider, with the kubeconfig of the backend. Default: kubeconfig.",
            ),
        ),
        ("backendNamespace", text("Namespace that the backend runs in, which is left alone. Default: none.")),
        ("allowTTL", int64("Seconds for which a yes counts, up to 1800. Default: 300. -1: none.")),
        ("denyTTL", int64("Seconds for which a no counts, up to 1800. Default: 30. -1: none.")),
        ("retryBackoff", int64("Milliseconds before the second of five tries, up to 300000. Default: 500. -1: none.")),
        ("defaultAllow", flag("Whether images may run while the backend gives no verdict on them. Default: false.")),
    ]
}

fn event_limits() -> JSONSchemaProps {
    let limit = object(
        "A limit.",
        [
            (
                "type",
                text(
                    "What has a bucket of tokens of its own: Server (all events), Namespace, User or SourceAndObject.",
                ),
            ),
            ("qps", int64("Events in a second, on average, for each replica of Outrider.")),
            ("burst", int64("Events at once.")),
            ("cacheSize", int64("Buckets that are kept, up to 65536. Default: 4096. Not for Server.")),
        ],
    );
    JSONSchemaProps { max_items: Some(16), ..atomic_list(limit, "Limits, all of which an event must pass.") }
}

fn pull_secrets() -> JSONSchemaProps {
    let secret = object("A pull secret.", [("name", short_text(253, "Name of a Secret in the namespace of the pod."))]);
    let description = "Pull secrets of pods that have none, and whose account names none; at most 16. Default: none.";
    JSONSchemaProps { max_items: Some(MAX_PULL_SECRETS.into()), ..atomic_list(secret, description) }
}

fn limited_resources() -> JSONSchemaProps {
    let scope = object(
        "A scope of quotas, as scopeSelector.matchExpressions of a quota has it.",
        [
            ("scopeName", text("Name of the scope, such as PriorityClass.")),
            ("operator", text("In, NotIn, Exists or DoesNotExist.")),
            ("values", texts("A value.", "Values for In and NotIn.")),
        ],
    );
    let scopes = JSONSchemaProps {
        max_items: Some(64),
        ..atomic_list(
            scope,
            "Scopes: an object in one of them needs a quota with a scope of that name that selects it.",
        )
    };
    let limited = object(
        "Consumption that a quota must cover.",
        [
            ("apiGroup", text("API group of the resource: empty.")),
            ("resource", text("pods, persistentvolumeclaims or services.")),
            (
                "matchContains",
                texts(
                    "Part of a name, such as requests.nvidia.com/gpu.",
                    "What is consumed under a name that contains one of these texts needs a quota that limits that name.",
                ),
            ),
            ("matchScopes", scopes),
        ],
    );
    JSONSchemaProps {
        max_items: Some(64),
        ..atomic_list(limited, "What may be consumed only where a ResourceQuota of the namespace covers it.")
    }
}

fn tolerations(most: u16, description: &str) -> JSONSchemaProps {
    let toleration = object(
        "A toleration.",
        [
            ("key", text("Key of the taint; empty for any.")),
            ("operator", text("Exists or Equal. Default: Equal.")),
            ("value", text("Value of the taint.")),
            ("effect", text("NoSchedule, PreferNoSchedule or NoExecute; empty for any.")),
            ("tolerationSeconds", int64("How long a NoExecute taint is tolerated; for ever where absent.")),
        ],
    );
    JSONSchemaProps { max_items: Some(most.into()), ..atomic_list(toleration, description) }
}
