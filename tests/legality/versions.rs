//! What older API servers judge otherwise than the one whose rules we go by.

/// A rule that came with a minor version, and the words of its message.
pub struct Newer {
    pub since: u32,
    pub words: &'static str,
}

const fn newer(since: u32, words: &'static str) -> Newer {
    Newer { since, words }
}

/// Values that API servers before refuse, or fields that they drop and then miss; in their words. By the feature gate that is on
/// from that version, in `pkg/features/kube_features.go` of Kubernetes.
pub const VALUES: &[Newer] = &[
    // RelaxedEnvironmentVariableValidation
    newer(32, "a valid environment variable name must consist of alphabetic characters"),
    // PodLifecycleSleepActionAllowZero
    newer(33, "sleep: Invalid value: 0: must be greater than 0"),
    // ContainerRestartRules, a gate that there is since 1.34: without it, that version drops the field.
    newer(34, "restartPolicy: Forbidden: may not be set for non-init containers"),
    newer(34, "restartPolicy: Unsupported value: \"OnFailure\": supported values: \"Always\""),
    // RestartAllContainersOnContainerExits
    newer(36, "action: Unsupported value: \"RestartAllContainers\""),
    // EnvFiles: `fileKeyRef` is dropped.
    newer(35, "valueFrom: Invalid value: \"\": must specify one of: `fieldRef`"),
];

/// Fields that API servers before drop, with all that is wrong in them; in our words.
pub const FIELDS: &[Newer] = &[
    // RecursiveReadOnlyMounts
    newer(31, "recursiveReadOnly: "),
    // ContainerStopSignals, a gate that there is since then and that is off by default
    newer(33, "stopSignal"),
    newer(33, "unknown to Windows"),
    // InPlacePodVerticalScaling
    newer(33, "resizePolicy["),
    newer(33, "restarts on resize"),
    // `validateInitContainers` checks it since then.
    newer(35, "must not be set to 'RestartContainer' for non-sidecar initContainers"),
    // ProcMountType
    newer(33, "procMount"),
    // UserNamespacesSupport: `hostUsers` of the pod
    newer(33, "has volumeDevices, which need the host's users"),
    // DynamicResourceAllocation
    newer(34, "resources.claims["),
    newer(34, "uses resource claim"),
    // PodLevelResources: `resources` of the pod
    newer(34, "the pod as a whole has"),
    newer(34, "above the pod's own limit"),
    // ContainerRestartRules
    newer(35, "restartPolicyRules"),
    // Refused by 1.33 and dropped by 1.34.
    newer(35, "restartPolicy: Unsupported value: \"Sometimes\""),
    newer(35, "must specify restartPolicy when restart rules are used"),
    // ImageVolume
    newer(35, ".image.reference: "),
    newer(35, ".image.pullPolicy: "),
    // EnvFiles
    newer(35, "reads variables from volume"),
];

/// Which of them an API server of this minor version does not have, if its or our words are about one.
pub fn missing(among: &'static [Newer], minor: u32, said: &str) -> Option<&'static Newer> {
    among.iter().find(|newer| minor < newer.since && said.contains(newer.words))
}
