//! What became of an object, for output and messages.

use admission::Reason;
use engine::reasons;
use serde_json::Value;

use crate::cli::streams::CommandOutcome;
use crate::input::Identity;

/// An object of the output.
pub struct Rendered {
    /// `file:line`.
    pub source: String,
    /// Kind, namespace and name for messages.
    pub title: String,
    /// What it is.
    pub identity: Identity,
    /// As it came.
    pub before: Value,
    /// As it goes.
    pub after: Value,
    /// From the one to the other.
    pub patch: Vec<Value>,
    /// What the server would warn of.
    pub warnings: Vec<String>,
    /// What is wrong with how it is written.
    pub typing: Vec<String>,
    /// Whether it has pods, or is one, or may have some.
    pub has_pods: bool,
    /// Why its pods were answered as they were.
    pub reasons: Vec<Reason>,
    /// Whether its pods carried an older form of a set, which was replaced.
    pub is_replaced: bool,
    /// What else there is to say, as why pods stay as they are where no warning says so.
    pub notes: Vec<Note>,
}

/// What there is to say of an object that is no warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Why it stays as it is.
    Unchanged(String),
    /// Anything else.
    Other(String),
}

impl Note {
    /// As a line about the object of this title.
    pub fn about(&self, title: &str) -> String {
        match self {
            Self::Unchanged(why) => format!("{title} is unchanged: {why}"),
            Self::Other(text) => format!("{title}: {text}"),
        }
    }

    /// Without the object.
    pub fn text(&self) -> &str {
        match self {
            Self::Unchanged(text) | Self::Other(text) => text,
        }
    }
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Sets change it.
    Injected,
    /// Its pods carried an older form of a set, which the current one replaces. Admission leaves it.
    Replaced,
    /// Its pods carry an older form of a set, which stays.
    Outdated,
    /// Admission plugins and ranges alone change it.
    ChangedByPlugins,
    /// Its pods stay as they are.
    Unchanged,
    /// It has no pods, and stays as it is.
    WithoutPods,
}

impl Rendered {
    /// Whether it changes.
    pub const fn is_changed(&self) -> bool {
        !self.patch.is_empty()
    }

    /// What became of it.
    pub fn fate(&self) -> Fate {
        let has = |codes: &[Reason]| self.reasons.iter().any(|reason| codes.contains(reason));
        if self.is_replaced {
            Fate::Replaced
        } else if has(&[reasons::OUTDATED]) {
            Fate::Outdated
        } else if self.is_changed() {
            let carries = has(&[reasons::INJECTED, reasons::ALREADY_INJECTED, reasons::INJECTED_BY_OPENKRUISE]);
            if carries { Fate::Injected } else { Fate::ChangedByPlugins }
        } else if self.has_pods {
            Fate::Unchanged
        } else {
            Fate::WithoutPods
        }
    }
}

/// An object that keeps anything from being printed.
pub struct Unprintable {
    /// `file:line`.
    pub source: String,
    /// Kind, namespace and name for messages.
    pub title: String,
    /// Why.
    pub message: String,
    /// The field that this is about, by its steps, where the message does not name it.
    pub field: Vec<String>,
    /// Warnings up to here.
    pub warnings: Vec<String>,
    /// What is wrong with how it is written.
    pub typing: Vec<String>,
    /// Why its pods were answered as they were.
    pub reasons: Vec<Reason>,
    /// Refused, or not readable.
    pub outcome: CommandOutcome,
}

impl Unprintable {
    /// Of what cannot be read.
    pub const fn bad_input(source: String, title: String, message: String) -> Self {
        Self {
            source,
            title,
            message,
            field: Vec::new(),
            warnings: Vec::new(),
            typing: Vec::new(),
            reasons: Vec::new(),
            outcome: CommandOutcome::BadInput,
        }
    }
}

/// Kind, namespace and name of an object for messages.
pub fn title(identity: &Identity, namespace: Option<&str>, value: &Value) -> String {
    let name = match (identity.name.as_str(), value.pointer("/metadata/generateName").and_then(Value::as_str)) {
        ("", Some(prefix)) => format!("{prefix}*"),
        ("", None) => "without a name".to_owned(),
        (name, _) => name.to_owned(),
    };
    match namespace.or(identity.namespace.as_deref()) {
        Some(namespace) => format!("{} {namespace}/{name}", identity.kind),
        None => format!("{} {name}", identity.kind),
    }
}
