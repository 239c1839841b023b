//! What a pod has that a profile does not allow, in the words of the API server of 1.24.

use std::fmt::{self, Write as _};

use admission::bounded::ellipsis;
use admission::field::{Error, ErrorKind, Path};

/// Faults of one profile that are kept: a pod may have one in each of its values.
const KEPT: usize = 32;
/// Characters of each.
const CHARS: usize = 512;
/// Values of a list that a fault shows.
const SHOWN: usize = 16;

/// The first faults that a profile finds in a pod, and how many more there are.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProfileFaults {
    kept: Vec<String>,
    more: usize,
}

impl ProfileFaults {
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Adds one, which is only put into words if it is kept.
    pub fn add(&mut self, error: impl FnOnce() -> Error) {
        if self.kept.len() < KEPT {
            self.kept.push(ellipsis(&error().to_string(), CHARS));
        } else {
            self.more += 1;
        }
    }

    /// Adds those of another profile.
    pub fn append(&mut self, other: Self) {
        let room = KEPT.saturating_sub(self.kept.len());
        self.more += other.more + other.kept.len().saturating_sub(room);
        self.kept.extend(other.kept.into_iter().take(room));
    }
}

/// As Go prints a list: in brackets, with spaces in between.
impl fmt::Display for ProfileFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}", self.kept.join(" "))?;
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        f.write_char(']')
    }
}

/// A fault whose value is shown as it is written here.
pub fn invalid_as(path: &Path, shown: String, detail: impl Into<String>) -> Error {
    Error { kind: ErrorKind::Invalid, field: path.to_string(), bad_value: Some(shown), detail: detail.into() }
}

/// What Go prints for a pointer to nothing.
pub const NIL: &str = "null";

/// A list as Go prints it with its type, such as `[]int64{1, 2}`.
pub fn listed(type_: &str, values: Option<impl Iterator<Item = String>>) -> String {
    let Some(values) = values else { return format!("[]{type_}(nil)") };
    let mut first: Vec<String> = values.take(SHOWN + 1).collect();
    if first.len() > SHOWN {
        first.truncate(SHOWN);
        first.push("…".to_owned());
    }
    format!("[]{type_}{{{}}}", first.join(", "))
}
