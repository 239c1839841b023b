//! The reason codes.
//!
//! Outrider's own codes are a closed list, [`Reason::ALL`]; another operator adds its own as [`Reason::Other`]. Every skip,
//! change and denial carries exactly one of these. They are an interface: the same word appears in the warning, the audit
//! annotation, the metric label and the log line.

use std::fmt;

macro_rules! reasons {
    ($( $name:ident => $meaning:literal, )+) => {
        /// Why a review was answered the way it was.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $( #[doc = $meaning] $name, )+
            /// A code of another operator: one word in `UpperCamelCase`. It becomes a metric label, so keep the number
            /// of different codes small.
            Other(&'static str),
        }

        impl Reason {
            /// Every code of Outrider, in the order of the documentation.
            pub const ALL: &'static [Self] = &[ $( Self::$name, )+ ];

            /// The code as users see it.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$name => stringify!($name), )+ Self::Other(code) => code }
            }

            /// One sentence for the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$name => $meaning, )+ Self::Other(_) => "A code that the operator defines." }
            }
        }
    };
}

reasons! {
    Allowed => "The object was accepted as it is.",
    Defaulted => "Missing fields were filled in.",
    Injected => "The set's containers were added to the pod.",
    AlreadyInjected => "The pod already carries the set; nothing was missing.",
    InjectedByOpenKruise => "The pod was injected by OpenKruise with a set of the same name.",
    NoMatch => "No set selects the pod.",
    OptedOut => "The pod asked to be left alone.",
    NamespaceExcluded => "The namespace is excluded from injection.",
    NamespaceUnknown => "The labels of the namespace are not known yet.",
    NotCreate => "Pods are changed only when they are created.",
    SubResource => "The request is for a sub-resource.",
    Terminating => "The object is being deleted.",
    MirrorPod => "The kubelet owns the pod; its API object mirrors a static pod.",
    WrongPlatform => "The pod runs on another operating system than the set's containers.",
    SetPaused => "Injection by the set is paused.",
    CanaryShadowed => "A canary of the set was injected in its place.",
    PartialHeldBack => "The rollout of the set does not include this pod yet.",
    JobSkipped => "A sidecar that never ends would keep the Job from completing.",
    Outdated => "The pod carries an older form of the set.",
    Uninjected => "The pod lacks the set when it is about to be stored.",
    ContainerClash => "The pod has another container of that name.",
    VolumeClash => "The pod has a volume of that name with another source.",
    MountClash => "Two mounts of one container share a path.",
    PortClash => "The host port is already taken in the pod.",
    PortShared => "Two containers of the pod name the same port.",
    SetConflict => "An earlier set already added something of that name.",
    EvaluationFailed => "The set could not be evaluated for this pod.",
    ResultIllegal => "The pod would be refused by the API server after injection.",
    Invalid => "The object breaks a validation rule.",
    Undecodable => "The object could not be decoded.",
    TooLarge => "The object is larger than what is read of one.",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
