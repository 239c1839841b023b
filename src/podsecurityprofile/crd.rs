//! The `CustomResourceDefinition`, written from code so that it cannot lag behind the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};

use crate::crd::schema::{
    FieldSchema, atomic_list, between, condition_column, flag, int32, int64, label_selector, object, requiring, root,
    short_text, status_of_conditions,
};
use crate::crd::{Definition, Scope};
use engine::podsecurityprofile::api::{GROUP, KIND, PLURAL, VERSION};
use engine::podsecurityprofile::compiled::{MAX_BYTES, MAX_ITEMS};

const DESCRIPTION: &str = "PodSecurityProfile says what pods must have and may have, and fills in what they leave open: the fields of \
     PodSecurityPolicy. It counts for users and service accounts that have the verb use on it.";

/// The definition of the resource `podsecurityprofiles`.
pub fn pod_security_profile() -> CustomResourceDefinition {
    let definition = Definition {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        plural: PLURAL,
        scope: Scope::Cluster,
        schema: object_schema(),
        columns: vec![
            condition_column("Accepted", "Whether the object can be used."),
            condition_column("Programmed", "Whether the API server calls for it."),
        ],
        scale: None,
    };
    definition.into_crd()
}

/// The schema of the whole object.
pub fn object_schema() -> JSONSchemaProps {
    let fields = namespaces().into_iter().chain(identities()).chain(privileges()).chain(of_nodes()).chain(volumes());
    let spec = object("What pods must have and may have, and in which namespaces.", fields.chain(profiles()));
    let spec = requiring(&["fsGroup", "runAsUser", "seLinux", "supplementalGroups"], spec);
    let status = status_of_conditions("Accepted and Programmed.");
    requiring(&["spec"], root(DESCRIPTION, spec, status))
}

fn list(items: JSONSchemaProps, description: &str) -> JSONSchemaProps {
    JSONSchemaProps { max_items: i64::try_from(MAX_ITEMS).ok(), ..atomic_list(items, description) }
}

fn texts(item: &str, description: &str) -> JSONSchemaProps {
    list(short_text(MAX_BYTES, item), description)
}

fn namespaces() -> [FieldSchema; 1] {
    let description =
        "Namespaces, by their labels. Default: all but those that Outrider leaves alone, which are never among them.";
    [("namespaceSelector", label_selector(description))]
}

fn range(of: fn(&str) -> JSONSchemaProps, most: i64) -> JSONSchemaProps {
    let end = |description: &str| between(0, most, of(description));
    let range = object("Numbers from min to max.", [("min", end("The least.")), ("max", end("The most."))]);
    requiring(&["max", "min"], range)
}

fn ids(description: &str, rules: &str) -> JSONSchemaProps {
    let ranges = list(range(int64, i64::MAX), "The ids. MustRunAs fills in the first.");
    requiring(&["rule"], object(description, [("rule", short_text(64, rules)), ("ranges", ranges)]))
}

fn identities() -> [FieldSchema; 5] {
    let part = |description: &str| short_text(MAX_BYTES, description);
    let label = object(
        "The label of MustRunAs.",
        [("level", part("Level.")), ("role", part("Role.")), ("type", part("Type.")), ("user", part("User."))],
    );
    let label =
        object("SELinux labels.", [("rule", short_text(64, "MustRunAs or RunAsAny.")), ("seLinuxOptions", label)]);
    let groups = "MustRunAs, MayRunAs or RunAsAny.";
    [
        ("seLinux", requiring(&["rule"], label)),
        ("runAsUser", ids("Users of containers.", "MustRunAs, MustRunAsNonRoot or RunAsAny.")),
        ("runAsGroup", ids("Primary groups of containers. Default: any.", groups)),
        ("supplementalGroups", ids("Further groups of pods.", groups)),
        ("fsGroup", ids("Groups of volumes.", groups)),
    ]
}

fn privileges() -> [FieldSchema; 7] {
    let capability = "A capability.";
    [
        ("privileged", flag("Whether containers may be privileged. Default: false.")),
        (
            "allowPrivilegeEscalation",
            flag("Whether containers may gain more privileges than their parent. Default: true."),
        ),
        (
            "defaultAllowPrivilegeEscalation",
            flag("Whether containers that do not say may gain more privileges than their parent."),
        ),
        ("readOnlyRootFilesystem", flag("Whether root file systems of containers must be read-only. Default: false.")),
        ("defaultAddCapabilities", texts(capability, "Capabilities that containers get unless they drop them.")),
        ("requiredDropCapabilities", texts(capability, "Capabilities that containers must drop.")),
        ("allowedCapabilities", texts(capability, "Capabilities that containers may add. * is any. Default: none.")),
    ]
}

fn of_nodes() -> [FieldSchema; 8] {
    let classes = object(
        "Which RuntimeClasses pods may have. Default: any.",
        [
            ("allowedRuntimeClassNames", texts("A name.", "Names. * is any.")),
            ("defaultRuntimeClassName", short_text(MAX_BYTES, "The class of pods that name none.")),
        ],
    );
    let sysctl = "A name, which may end with *.";
    [
        ("hostNetwork", flag("Whether pods may use the network of the node. Default: false.")),
        ("hostPID", flag("Whether pods may see the processes of the node. Default: false.")),
        ("hostIPC", flag("Whether pods may use the IPC namespace of the node. Default: false.")),
        ("hostPorts", list(range(int32, 65_535), "Ports of the node that containers may use. Default: none.")),
        ("allowedUnsafeSysctls", texts(sysctl, "Sysctls beside the safe ones that pods may set. Default: none.")),
        ("forbiddenSysctls", texts(sysctl, "Sysctls that pods may not set. Default: none.")),
        ("allowedProcMountTypes", texts("Default or Unmasked.", "Kinds of /proc. Default: Default alone.")),
        ("runtimeClass", requiring(&["allowedRuntimeClassNames"], classes)),
    ]
}

fn volumes() -> [FieldSchema; 4] {
    let path = object(
        "A path.",
        [
            ("pathPrefix", short_text(MAX_BYTES, "The path; those below it are allowed as well.")),
            ("readOnly", flag("Whether mounts of it must be read-only. Default: false.")),
        ],
    );
    let driver =
        |field: &'static str| requiring(&[field], object("A driver.", [(field, short_text(MAX_BYTES, "Its name."))]));
    [
        ("volumes", texts("A type, such as configMap.", "Types of volumes. * is any. Default: none.")),
        ("allowedHostPaths", list(path, "Paths of the node, where hostPath volumes are allowed. Default: any.")),
        ("allowedFlexVolumes", list(driver("driver"), "Drivers, where flexVolume volumes are allowed. Default: any.")),
        ("allowedCSIDrivers", list(driver("name"), "Drivers, where csi volumes are allowed. Default: any.")),
    ]
}

fn profiles() -> [FieldSchema; 4] {
    let profile = "runtime/default, unconfined, or localhost/ and the name of a profile.";
    [
        ("allowedSeccompProfiles", texts(profile, "seccomp profiles. * is any. Default: pods may name none.")),
        ("defaultSeccompProfile", short_text(MAX_BYTES, "The seccomp profile of pods that name none.")),
        (
            "allowedAppArmorProfiles",
            texts(profile, "AppArmor profiles, of which containers must have one. Default: any."),
        ),
        ("defaultAppArmorProfile", short_text(MAX_BYTES, "The AppArmor profile of containers that name none.")),
    ]
}
