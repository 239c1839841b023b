//! The reason codes: why a review was answered the way it was.
//!
//! A closed list. Every skip, change and denial carries exactly one of these, and the page `docs/reasons.md` is made from it. A test
//! of the workspace runs a review or an explanation for each.

use admission::Reason;

/// A code with one sentence for the documentation.
pub type Code = (Reason, &'static str);

macro_rules! reasons {
    ($(#[doc = $text:literal])+ $list:ident: $( $name:ident = $code:expr => $meaning:literal, )+) => {
        $( #[doc = $meaning] pub const $name: Reason = $code; )+

        $(#[doc = $text])+
        pub const $list: &[Code] = &[ $( ($name, $meaning), )+ ];
    };
}

reasons! {
    /// Every code with its meaning, in the order of the documentation.
    ALL:
    ALLOWED = Reason::ALLOWED => "The object was accepted as it is.",
    DEFAULTED = Reason::DEFAULTED => "Missing fields were filled in.",
    INJECTED = Reason::new("Injected") => "The set's containers were added to the pod.",
    ALREADY_INJECTED = Reason::new("AlreadyInjected") => "The pod already carries the set; nothing was missing.",
    INJECTED_BY_OPENKRUISE = Reason::new("InjectedByOpenKruise") => "The pod was injected by OpenKruise with a set of the same name.",
    NO_MATCH = Reason::new("NoMatch") => "No set selects the pod; of other requests: nothing of Outrider concerns the object.",
    OPTED_OUT = Reason::new("OptedOut") => "The pod opted out by its annotation.",
    NAMESPACE_EXCLUDED = Reason::new("NamespaceExcluded") => "The namespace is excluded from injection.",
    NAMESPACE_UNKNOWN = Reason::new("NamespaceUnknown") => "The labels of the namespace are not known yet.",
    NOT_CREATE = Reason::new("NotCreate") => "Pods are changed only when they are created.",
    TERMINATING = Reason::TERMINATING => "The object is being deleted.",
    MIRROR_POD = Reason::new("MirrorPod") => "The kubelet owns the pod; its API object mirrors a static pod.",
    WRONG_PLATFORM = Reason::new("WrongPlatform") => "The pod runs on another operating system than the set's containers.",
    PLATFORM_UNKNOWN = Reason::new("PlatformUnknown") => "The pod must carry a set for Windows, and does not say on which operating system it runs.",
    SET_PAUSED = Reason::new("SetPaused") => "Injection by the set is paused.",
    CANARY_SHADOWED = Reason::new("CanaryShadowed") => "A canary of the set was injected in its place.",
    PARTIAL_HELD_BACK = Reason::new("PartialHeldBack") => "The rollout of the set does not include this pod yet: it gets an older revision.",
    OUTDATED = Reason::new("Outdated") => "The pod carries an older form of the set.",
    UNINJECTED = Reason::new("Uninjected") => "The pod lacks the set when it is about to be stored.",
    CONTAINER_CLASH = Reason::new("ContainerClash") => "The pod has another container of that name.",
    VOLUME_CLASH = Reason::new("VolumeClash") => "The pod has a volume of that name with another source.",
    MOUNT_CLASH = Reason::new("MountClash") => "Two mounts of one container share a path.",
    PORT_CLASH = Reason::new("PortClash") => "The host port is already taken in the pod.",
    PORT_SHARED = Reason::new("PortShared") => "Two containers of the pod name the same port.",
    OVERRIDE_CLASH = Reason::new("OverrideClash") => "The pod asks for a change of the set's container that the set does not allow.",
    SET_CONFLICT = Reason::new("SetConflict") => "An earlier set already added something of that name.",
    JOB_SKIPPED = Reason::new("JobSkipped") => "A sidecar that never ends would keep the Job from completing.",
    EVALUATION_FAILED = Reason::new("EvaluationFailed") => "The set could not be evaluated for this pod.",
    RESULT_ILLEGAL = Reason::new("ResultIllegal") => "The pod would be refused by the API server after injection.",
    PLUGIN_CHANGED = Reason::new("PluginChanged") => "An admission plugin, a ClusterLimitRange or a PodSecurityProfile changed the object.",
    PLUGIN_DENIED = Reason::new("PluginDenied") => "An admission plugin, a ClusterLimitRange or a PodSecurityProfile refused the request.",
    PLUGIN_WOULD_CHANGE = Reason::new("PluginWouldChange") => "An admission plugin in the mode Warn or Audit would have changed the object.",
    PLUGIN_WOULD_DENY = Reason::new("PluginWouldDeny") => "An admission plugin in the mode Warn or Audit would have refused the request.",
    PLUGIN_EXEMPT = Reason::new("PluginExempt") => "The user is exempt from the admission plugin.",
    INVALID = Reason::INVALID => "The object breaks a validation rule.",
    UNDECODABLE = Reason::UNDECODABLE => "The object could not be decoded.",
    NOT_SERVED = Reason::NOT_SERVED => "The path of the webhook serves other kinds of objects.",
    TOO_LARGE = Reason::TOO_LARGE => "The object is larger than the limit.",
}

reasons! {
    /// Codes that this build never gives: their names are taken for what is not built yet. Who gives one moves it to [`ALL`].
    RESERVED:
    SUB_RESOURCE = Reason::SUB_RESOURCE => "The request is for a sub-resource, which the endpoint leaves alone.",
}

/// Why a request got no verdict: code, HTTP status and meaning. No review is answered with these; they are in the server's log and in
/// the metric, with the verdict `unserved`.
pub const TRANSPORT: &[(&str, u16, &str)] = &[
    ("Unreadable", 400, "The body is not a readable AdmissionReview."),
    (
        "NotFound",
        404,
        "No webhook has that path; the path's label is `other`. The status is 503 while another replica may serve the path.",
    ),
    ("MethodNotAllowed", 405, "The method is not POST."),
    ("TooLarge", 413, "The body is larger than the limit."),
    ("ContentType", 415, "The Content-Type is not application/json."),
    (
        "NamespaceLabels",
        422,
        "A set, an admission plugin, a ClusterLimitRange or a PodSecurityProfile needs labels of a namespace that has more than are read, 32 KiB in memory: remove some.",
    ),
    ("Overloaded", 429, "Too many reviews are in flight, or they need too much memory."),
    ("Fault", 500, "An internal fault; the log shows it with the uid of the request."),
    ("NotReady", 503, "The server has not read everything yet that it needs to decide."),
    (
        "NamespaceUnknown",
        503,
        "A set, an admission plugin, a ClusterLimitRange or a PodSecurityProfile needs the labels of a namespace that has not been seen yet.",
    ),
    ("Unanswered", 503, "The API server did not answer a request that the decision depends on."),
    ("OutOfTime", 504, "The review could not be answered in time."),
];

/// Where a code is in [`ALL`]; none for a code from elsewhere.
pub fn position(reason: Reason) -> Option<usize> {
    ALL.iter().position(|(code, _)| *code == reason)
}

/// One sentence about a code.
pub fn meaning(reason: Reason) -> &'static str {
    ALL.iter().find(|(code, _)| *code == reason).map_or("A code that a kind defines.", |(_, meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_single_words_different_and_explained() {
        let mut codes = HashSet::new();
        for (index, &(reason, meaning)) in ALL.iter().enumerate() {
            let code = reason.as_str();
            assert!(code.starts_with(|c: char| c.is_ascii_uppercase()), "{code}");
            assert!(code.chars().all(|c| c.is_ascii_alphanumeric()), "{code}");
            assert!(codes.insert(code), "{code} is there twice");
            assert!(meaning.ends_with('.'), "{code}");
            assert_eq!(position(reason), Some(index), "{code}");
        }
        assert_eq!(position(Reason::new("QuotaSpent")), None);
    }
}
