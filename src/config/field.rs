//! Every field of a `ProjectConfig`, in one list: the check, the schema and the documentation are made from it.

/// One field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its path in the object, such as `metrics.bindAddress`.
    pub path: &'static str,
    /// Which values it may have.
    pub form: Form,
    /// The flag that says the same, without `--`.
    pub flag: Option<&'static str>,
    /// What counts where the field is absent; empty where the flag's own default says it, or nothing does.
    pub default: &'static str,
    /// What it does, as a sentence or two.
    pub meaning: &'static str,
}

/// The values that a field may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
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

impl Form {
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

const fn field(path: &'static str, form: Form, default: &'static str, meaning: &'static str) -> Field {
    Field { path, form, flag: None, default, meaning }
}

/// The default is the flag's, unless the field says it in other words.
const fn flag(path: &'static str, form: Form, flag: &'static str, meaning: &'static str) -> Field {
    Field { path, form, flag: Some(flag), default: "", meaning }
}

/// Every field.
pub const FIELDS: [Field; 21] = [
    field("clusterName", Form::Text, "", "Name of the cluster, which is logged at start."),
    field(
        "syncPeriod",
        Form::Period,
        "10h",
        "How often controllers reconcile every object even if nothing changed, plus or minus 10%. At least 1s; 0 turns \
         it off.",
    ),
    field(
        "cacheNamespace",
        Form::Namespace,
        "all namespaces",
        "The only namespace in which controllers watch pods and other namespaced objects. Cluster-scoped kinds are \
         still watched, and webhooks serve every namespace.",
    ),
    field(
        "gracefulShutDown",
        Form::Budget,
        "the drain delay, then 15s",
        "How long stopping may take after the signal, including the drain delay. 0 stops at once; a negative duration \
         waits for running reviews and reconciles without a limit.",
    ),
    field(
        "controller.groupKindConcurrency",
        Form::Workers,
        "3 each",
        "How many objects of a kind are reconciled at the same time.",
    ),
    field(
        "controller.cacheSyncTimeout",
        Form::Nanoseconds,
        "no limit",
        "How long a controller waits until it has listed every object. After that it logs an error and starts again.",
    ),
    flag("metrics.bindAddress", Form::Address, "metrics-bind-address", "Where /metrics is served; 0 turns it off."),
    flag(
        "health.healthProbeBindAddress",
        Form::Address,
        "health-probe-bind-address",
        "Where the probes are served; 0 or an empty text turns them off.",
    ),
    field("health.readinessEndpointName", Form::Endpoint, "/readyz", "Path of the readiness probe."),
    field(
        "health.livenessEndpointName",
        Form::Endpoint,
        "/healthz",
        "Path of the liveness probe. /livez is served as well.",
    ),
    Field { default: "9443", ..flag("webhook.port", Form::Port, "webhook-bind-address", "Port of the webhooks.") },
    Field {
        default: "every interface",
        ..flag("webhook.host", Form::Host, "webhook-bind-address", "Address of the webhooks.")
    },
    flag("webhook.certDir", Form::Text, "cert-dir", "Directory with tls.crt and tls.key."),
    flag(
        "leaderElection.leaderElect",
        Form::Flag,
        "leader-elect",
        "Run controllers in one replica only, the one that holds the lease.",
    ),
    flag("leaderElection.resourceName", Form::ObjectName, "leader-elect-resource-name", "Name of the lease."),
    Field {
        default: "--namespace",
        ..flag(
            "leaderElection.resourceNamespace",
            Form::Namespace,
            "leader-elect-resource-namespace",
            "Namespace of the lease.",
        )
    },
    field("leaderElection.resourceLock", Form::Lock, "leases", "Kind of the lock. Kubernetes supports only leases."),
    flag(
        "leaderElection.leaseDuration",
        Form::Duration,
        "leader-elect-lease-duration",
        "How long other replicas wait for a leader that does not renew.",
    ),
    flag(
        "leaderElection.renewDeadline",
        Form::Duration,
        "leader-elect-renew-deadline",
        "How long the leader tries to renew before it gives up; shorter than the lease duration.",
    ),
    flag(
        "leaderElection.retryPeriod",
        Form::Duration,
        "leader-elect-retry-period",
        "Pause between two tries; shorter than the renew deadline.",
    ),
    field("spec.foo", Form::Text, "", "No effect. It is accepted because kubebuilder's scaffold contains it."),
];
