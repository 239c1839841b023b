//! Why a review was answered the way it was, in one word.
//!
//! The list is open: these are the codes of the framework itself, an operator adds its own with [`Reason::new`]. They are an
//! interface: the same word appears in the warning, the audit annotation, the metric label and the log line.

use std::fmt;

/// Why a review was answered the way it was: one word in `UpperCamelCase`. It becomes a metric label, so keep the number of
/// different codes small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(&'static str);

impl Reason {
    /// The object was accepted as it is.
    pub const ALLOWED: Self = Self("Allowed");
    /// Missing fields were filled in.
    pub const DEFAULTED: Self = Self("Defaulted");
    /// The request is for a sub-resource.
    pub const SUB_RESOURCE: Self = Self("SubResource");
    /// The object is being deleted.
    pub const TERMINATING: Self = Self("Terminating");
    /// The object breaks a validation rule.
    pub const INVALID: Self = Self("Invalid");
    /// The object could not be decoded.
    pub const UNDECODABLE: Self = Self("Undecodable");
    /// The object is larger than the limit.
    pub const TOO_LARGE: Self = Self("TooLarge");

    /// The path of the webhook serves other kinds of objects.
    pub const NOT_SERVED: Self = Self("NotServed");

    /// A code of an operator's own.
    pub const fn new(code: &'static str) -> Self {
        Self(code)
    }

    /// The code as users see it.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
