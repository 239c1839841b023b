//! The field of each plugin with its configuration.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::texts;
use crate::crd::schema::{
    FieldSchema, atomic_list, flag, int64, label_selector, map_of, object, short_text, text, word,
};
use engine::plugins::Plugin;
use engine::plugins::api::DAEMON_SET_PODS;
use engine::plugins::compiled::MAX_PULL_SECRETS;
use engine::plugins::placement::{MAX_DEFAULT_TOLERATIONS, MAX_TOLERATIONS};

/// The field of the spec with the configuration of a plugin.
pub(super) fn section(plugin: Plugin) -> JSONSchemaProps {
    let fields: Vec<FieldSchema> = match plugin {
        Plugin::AlwaysPullImages => always_pull_images(),
        Plugin::PodNodeSelector => pod_node_selector(),
        Plugin::PodTolerationRestriction => pod_toleration_restriction(),
        Plugin::DefaultTolerationSeconds => default_toleration_seconds(),
        Plugin::ExtendedResourceToleration
        | Plugin::StorageObjectInUseProtection
        | Plugin::PersistentVolumeClaimResize
        | Plugin::TaintNodesByCondition => vec![],
        Plugin::LimitPodHardAntiAffinityTopology => limit_pod_hard_anti_affinity_topology(),
        Plugin::DenyServiceExternalIPs => deny_service_external_ips(),
        Plugin::NamespaceLifecycle => namespace_lifecycle(),
        Plugin::PodSecurity => vec![("defaults", pod_security())],
        Plugin::OwnerReferencesPermissionEnforcement => owner_references_permission_enforcement(),
        Plugin::ResourceQuota => vec![("limitedResources", limited_resources())],
        Plugin::ImagePolicyWebhook => image_policy_webhook(),
        Plugin::PodTopologyLabels => pod_topology_labels(),
        Plugin::Priority => priority(),
        Plugin::NodeRestriction => node_restriction(),
        Plugin::ServiceAccount => service_account(),
        Plugin::RuntimeClass => runtime_class(),
        Plugin::DefaultStorageClass => default_storage_class(),
        Plugin::EventRateLimit => event_rate_limit(),
    };
    object(&format!("Configuration of {plugin}."), fields)
}

fn always_pull_images() -> Vec<FieldSchema> {
    vec![
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
    ]
}

fn pod_node_selector() -> Vec<FieldSchema> {
    vec![
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
    ]
}

fn pod_toleration_restriction() -> Vec<FieldSchema> {
    vec![
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
    ]
}

fn default_toleration_seconds() -> Vec<FieldSchema> {
    vec![
        ("notReadySeconds", int64("Seconds that pods stay on a node that is not ready. Default: 300.")),
        ("unreachableSeconds", int64("Seconds that pods stay on a node that cannot be reached. Default: 300.")),
    ]
}

fn limit_pod_hard_anti_affinity_topology() -> Vec<FieldSchema> {
    vec![(
        "allowedTopologyKeys",
        texts("A label key.", "Topology keys that required anti-affinity may have. Default: kubernetes.io/hostname."),
    )]
}

fn deny_service_external_ips() -> Vec<FieldSchema> {
    vec![("allowedCIDRs", texts("A range such as 192.0.2.0/24.", "Ranges whose addresses are allowed. Default: none."))]
}

fn namespace_lifecycle() -> Vec<FieldSchema> {
    vec![
        (
            "protectedNamespaces",
            texts("Name of a namespace; * is any text.", "Names of namespaces that may not be deleted."),
        ),
        ("protectedLabelSelector", label_selector("Namespaces that may not be deleted, by their labels.")),
        (
            "breakGlassAnnotation",
            text("Annotation that allows the deletion of a namespace that has it with the value true. Default: none."),
        ),
    ]
}

fn owner_references_permission_enforcement() -> Vec<FieldSchema> {
    vec![(
        "resources",
        texts(
            "A resource such as pods, or with its group such as deployments.apps.",
            "Resources whose objects are covered. Default: all, except those that every request needs.",
        ),
    )]
}

fn pod_topology_labels() -> Vec<FieldSchema> {
    vec![
        ("nodeLabels", texts("Key of a label of nodes.", "Labels of nodes that their pods get; at most 32.")),
        ("target", text("Labels (default), Annotations or Both: what they become in the pod.")),
    ]
}

fn priority() -> Vec<FieldSchema> {
    vec![
        ("priorityClassName", short_text(253, "The PriorityClass that pods get which name none.")),
        (
            "replacedClassNames",
            texts(
                "Name of a PriorityClass.",
                "PriorityClasses that are replaced as if the pod named none, such as the default of the cluster: the API server fills that in before a webhook is called. Default: none.",
            ),
        ),
    ]
}

fn node_restriction() -> Vec<FieldSchema> {
    vec![(
        "iUnderstandTheRisk",
        flag(
            "Must be true: kubelets wait for this plugin, and while no replica of Outrider answers, nothing is restricted.",
        ),
    )]
}

fn service_account() -> Vec<FieldSchema> {
    vec![
        (
            "limitSecretReferences",
            flag(
                "Whether the pods of every account may use only the secrets that it names, as if it had the annotation kubernetes.io/enforce-mountable-secrets. Default: false.",
            ),
        ),
        ("imagePullSecrets", pull_secrets()),
    ]
}

fn runtime_class() -> Vec<FieldSchema> {
    vec![("runtimeClassName", short_text(253, "The RuntimeClass that pods get which name none."))]
}

fn default_storage_class() -> Vec<FieldSchema> {
    vec![
        (
            "storageClassName",
            short_text(253, "The class that claims get which name none. Default: the default class of the cluster."),
        ),
        (
            "replaceClusterDefault",
            flag(
                "Whether claims with the default class of the cluster get it as well: the API server fills that in before a webhook is called. Default: false.",
            ),
        ),
    ]
}

fn event_rate_limit() -> Vec<FieldSchema> {
    vec![
        ("limits", event_limits()),
        (
            "coverEventsV1",
            flag(
                "Whether events of the group events.k8s.io are limited as well, which the API server's own plugin does not do. Default: false.",
            ),
        ),
    ]
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

fn image_policy_webhook() -> Vec<FieldSchema> {
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
