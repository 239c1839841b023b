//! Every field of a `ProjectConfig`, in one list: the check, the schema and the documentation are made from it.

/// One field.
#[derive(Debug, Clone, Copy)]
pub struct ConfigField {
    /// Its path in the object, such as `metrics.bindAddress`.
    pub path: &'static str,
    /// Which values it may have.
    pub form: ValueForm,
    /// The flag that says the same, without `--`.
    pub flag: Option<&'static str>,
    /// What counts where the field is absent; empty where the flag's own default says it, or nothing does.
    pub default: &'static str,
    /// What it does, as a sentence or two.
    pub meaning: &'static str,
}

/// The values that a field may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// Any text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A duration as Go writes it.
    Duration,
    /// 0, or a duration of a second and more.
    Period,
    /// A duration that may be negative.
    Budget,
    /// Nanoseconds, as a number.
    Nanoseconds,
    /// A TCP port.
    Port,
    /// `:PORT`, `IP:PORT`, or `0` for nowhere.
    Address,
    /// An IP address, or `localhost`.
    Host,
    /// Path of a URL.
    Endpoint,
    /// Name of a namespace.
    Namespace,
    /// Name of an object.
    ObjectName,
    /// Where a lock is kept: only Leases are left.
    Lock,
    /// Numbers by `Kind.group`.
    Workers,
}

impl ValueForm {
    /// The word for it in documentation.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Flag => "true or false",
            Self::Duration | Self::Period => "duration",
            Self::Budget => "duration, may be negative",
            Self::Nanoseconds => "number of nanoseconds",
            Self::Port => "port",
            Self::Address => "address: `:PORT`, `IP:PORT` or `0`",
            Self::Host => "IP address or `localhost`",
            Self::Endpoint => "path of a URL",
            Self::Namespace => "name of a namespace",
            Self::ObjectName => "name of an object",
            Self::Lock => "`leases`",
            Self::Workers => "map of `Kind.group` to a number",
        }
    }
}

const fn field(path: &'static str, form: ValueForm, default: &'static str, meaning: &'static str) -> ConfigField {
    ConfigField { path, form, flag: None, default, meaning }
}

/// The default is the flag's, unless the field says it in other words.
const fn flag(path: &'static str, form: ValueForm, flag: &'static str, meaning: &'static str) -> ConfigField {
    ConfigField { path, form, flag: Some(flag), default: "", meaning }
}

/// Every field.
pub const FIELDS: [ConfigField; 21] = [
    field("clusterName", ValueForm::Text, "", "Name of the cluster, which is logged at start."),
    field(
        "syncPeriod",
        ValueForm::Period,
        "10h",
        "How often controllers reconcile every object even if nothing changed, plus or minus 10%. At least 1s; 0 turns \
         it off.",
    ),
    field(
        "cacheNamespace",
        ValueForm::Namespace,
        "all namespaces",
        "The only namespace in which controllers watch pods and other namespaced objects. Cluster-scoped kinds are \
         still watched, and webhooks serve every namespace.",
    ),
    field(
        "gracefulShutDown",
        ValueForm::Budget,
        "the drain delay, then 15s",
        "How long stopping may take after the signal, including the drain delay. 0 stops at once; a negative duration \
         waits for running reviews and reconciles without a limit.",
    ),
    field(
        "controller.groupKindConcurrency",
        ValueForm::Workers,
        "3 each",
        "How many objects of a kind are reconciled at the same time.",
    ),
    field(
        "controller.cacheSyncTimeout",
        ValueForm::Nanoseconds,
        "no limit",
        "How long a controller waits until it has listed every object. After that it logs an error and starts again.",
    ),
    flag(
        "metrics.bindAddress",
        ValueForm::Address,
        "metrics-bind-address",
        "Where /metrics is served; 0 turns it off.",
    ),
    flag(
        "health.healthProbeBindAddress",
        ValueForm::Address,
        "health-probe-bind-address",
        "Where the probes are served; 0 or an empty text turns them off.",
    ),
    field("health.readinessEndpointName", ValueForm::Endpoint, "/readyz", "Path of the readiness probe."),
    field(
        "health.livenessEndpointName",
        ValueForm::Endpoint,
        "/healthz",
        "Path of the liveness probe. /livez is served as well.",
    ),
    ConfigField {
        default: "9443",
        ..flag("webhook.port", ValueForm::Port, "webhook-bind-address", "Port of the webhooks.")
    },
    ConfigField {
        default: "every interface",
        ..flag("webhook.host", ValueForm::Host, "webhook-bind-address", "Address of the webhooks.")
    },
    flag("webhook.certDir", ValueForm::Text, "cert-dir", "Directory with tls.crt and tls.key."),
    flag(
        "leaderElection.leaderElect",
        ValueForm::Flag,
        "leader-elect",
        "Run controllers in one replica only, the one that holds the lease.",
    ),
    flag("leaderElection.resourceName", ValueForm::ObjectName, "leader-elect-resource-name", "Name of the lease."),
    ConfigField {
        default: "--namespace",
        ..flag(
            "leaderElection.resourceNamespace",
            ValueForm::Namespace,
            "leader-elect-resource-namespace",
            "Namespace of the lease.",
        )
    },
    field(
        "leaderElection.resourceLock",
        ValueForm::Lock,
        "leases",
        "Kind of the lock. Kubernetes supports only leases.",
    ),
    flag(
        "leaderElection.leaseDuration",
        ValueForm::Duration,
        "leader-elect-lease-duration",
        "How long other replicas wait for a leader that does not renew.",
    ),
    flag(
        "leaderElection.renewDeadline",
        ValueForm::Duration,
        "leader-elect-renew-deadline",
        "How long the leader tries to renew before it gives up; shorter than the lease duration.",
    ),
    flag(
        "leaderElection.retryPeriod",
        ValueForm::Duration,
        "leader-elect-retry-period",
        "Pause between two tries; shorter than the renew deadline.",
    ),
    field("spec.foo", ValueForm::Text, "", "No effect. It is accepted because kubebuilder's scaffold contains it."),
];
