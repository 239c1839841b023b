//! The closed vocabularies of a `SidecarSet`, and the default of each.

/// `spec.updateStrategy.type`
pub const UPDATE_TYPES: [&str; 2] = ["NotUpdate", ROLLING_UPDATE];
/// Pods that carry the set follow its changes.
pub const ROLLING_UPDATE: &str = "RollingUpdate";
/// Pods that carry the set stay as they are.
pub const NOT_UPDATE: &str = "NotUpdate";

/// `spec.updateStrategy.repair`
pub const REPAIRS: [&str; 2] = ["Never", REPAIR_EVICT];
/// Pods that lack the set are evicted, so that their workloads create new ones.
pub const REPAIR_EVICT: &str = "Evict";

/// `podInjectPolicy` of a container.
pub const INJECT_POLICIES: [&str; 2] = [BEFORE_APP_CONTAINER, AFTER_APP_CONTAINER];
/// In front of the pod's own containers.
pub const BEFORE_APP_CONTAINER: &str = "BeforeAppContainer";
/// Behind the pod's own containers.
pub const AFTER_APP_CONTAINER: &str = "AfterAppContainer";

/// `upgradeStrategy.upgradeType` of a container.
pub const UPGRADE_TYPES: [&str; 2] = [COLD_UPGRADE, HOT_UPGRADE];
/// The container is restarted in place.
pub const COLD_UPGRADE: &str = "ColdUpgrade";
/// A second container takes over.
pub const HOT_UPGRADE: &str = "HotUpgrade";

/// `shareVolumePolicy.type` and `shareVolumeDevicePolicy.type` of a container.
pub const SHARE_TYPES: [&str; 2] = [SHARE_DISABLED, SHARE_ENABLED];
/// The container has only its own mounts.
pub const SHARE_DISABLED: &str = "disabled";
/// The container also has the mounts of the pod's own containers.
pub const SHARE_ENABLED: &str = "enabled";

/// `resourcesPolicy.targetContainersMode` of a container.
pub const TARGET_MODES: [&str; 2] = ["sum", MODE_MAX];
/// The largest amount of the containers counts.
pub const MODE_MAX: &str = "max";
/// `resourcesPolicy.targetContainersNameRegex` of a container, when it is absent.
pub const ALL_CONTAINERS: &str = ".*";

/// `spec.jobPods`
pub const JOB_PODS: [&str; 3] = [JOB_NATIVE_SIDECAR, JOB_SKIP, JOB_INJECT];
/// In pods that end, containers become native sidecars, which end with the pod's own.
pub const JOB_NATIVE_SIDECAR: &str = "NativeSidecar";
/// Pods that end go without the set.
pub const JOB_SKIP: &str = "Skip";
/// Pods that end get the containers as written.
pub const JOB_INJECT: &str = "Inject";

/// `spec.platform`
pub const PLATFORMS: [&str; 2] = [PLATFORM_LINUX, PLATFORM_WINDOWS];
/// The containers run on Linux.
pub const PLATFORM_LINUX: &str = "linux";
/// The containers run on Windows.
pub const PLATFORM_WINDOWS: &str = "windows";

/// `spec.podSecurity`
pub const POD_SECURITIES: [&str; 2] = [SECURITY_AS_WRITTEN, SECURITY_COMPLETE];
/// The security contexts are those of the set.
pub const SECURITY_AS_WRITTEN: &str = "AsWritten";
/// What the level restricted demands and a container leaves open is filled in.
pub const SECURITY_COMPLETE: &str = "Complete";

/// `spec.patchPodMetadata[].patchPolicy`
pub const PATCH_POLICIES: [&str; 3] = [RETAIN, OVERWRITE, MERGE_PATCH_JSON];
/// An annotation that the pod has already is replaced.
pub const OVERWRITE: &str = "Overwrite";
/// The value is merged as JSON into that of the annotation that the pod has already.
pub const MERGE_PATCH_JSON: &str = "MergePatchJson";
/// An annotation that the pod has already stays as it is.
pub const RETAIN: &str = "Retain";

/// `spec.injectionStrategy.revision.policy`
pub const REVISION_POLICIES: [&str; 2] = [REVISION_ALWAYS, REVISION_PARTIAL];
/// Every new pod gets the named revision.
pub const REVISION_ALWAYS: &str = "Always";
/// Pods that the rollout of the set does not include yet get the named revision.
pub const REVISION_PARTIAL: &str = "Partial";

/// `spec.clashPolicy`
pub const CLASH_POLICIES: [&str; 2] = [CLASH_REFUSE, CLASH_SKIP];
/// A pod that cannot carry the set is refused.
pub const CLASH_REFUSE: &str = "Refuse";
/// A pod that cannot carry the set goes without it.
pub const CLASH_SKIP: &str = "Skip";

/// `spec.optOut`
pub const OPT_OUTS: [&str; 2] = [OPT_OUT_ALLOWED, OPT_OUT_DENIED];
/// A pod may ask to be left alone.
pub const OPT_OUT_ALLOWED: &str = "Allowed";
/// A pod may not ask to be left alone.
pub const OPT_OUT_DENIED: &str = "Denied";

/// `spec.allowedChanges.fields`
pub const ALLOWED_FIELDS: [&str; 11] = [
    IMAGE_DIGEST,
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "securityContext",
    "startupProbe",
    "terminationMessagePath",
    "terminationMessagePolicy",
];
/// A digest behind the image that the set names.
pub const IMAGE_DIGEST: &str = "imageDigest";

/// Revisions that are kept when `spec.revisionHistoryLimit` is absent.
pub const REVISION_HISTORY_LIMIT: i32 = 10;
