//! `ProjectConfig`, the component configuration file (`outrider serve --config FILE`).
//!
//! The same type is a custom resource for users who keep such objects in a cluster; [`check()`] validates both.

mod check;
mod duration;
mod field;
mod project_config;

use std::fs;
use std::io;
use std::path::Path;

use admission::field::Error as FieldError;
use serde_json::Value;

pub use self::check::{Checked, MOST_WORKERS, check};
pub use self::duration::{GoDuration, StopBudget};
pub use self::field::{ConfigField, FIELDS, ValueForm};
pub use self::project_config::{ControllerConfig, Health, LeaderElection, MetricsConfig, ProjectConfig, Spec, Webhook};
use crate::validate::Validate;
use engine::yaml;

/// API group.
pub const GROUP: &str = concat!("config.", api_domain!());
/// API version.
pub const VERSION: &str = "v2";
/// Kind.
pub const KIND: &str = "ProjectConfig";
/// Resource: the plural in URLs.
pub const PLURAL: &str = "projectconfigs";
/// Group and version, as `apiVersion` writes them.
pub const API_VERSION: &str = concat!("config.", api_domain!(), "/v2");

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is not there, or may not be read.
    #[error("unable to load the config file: could not read file at {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is no YAML or JSON.
    #[error("unable to load the config file: could not decode file into runtime.Object: {path}: {source}")]
    Syntax {
        /// The file.
        path: String,
        /// What is wrong, and where.
        source: yaml::Error,
    },
    /// It is not one object of our kind.
    #[error(
        "unable to load the config file: could not decode file into runtime.Object: {path}: it holds {found}; \
         it must be one object with apiVersion: {API_VERSION} and kind: {KIND}"
    )]
    NotOurs {
        /// The file.
        path: String,
        /// What it is.
        found: String,
    },
    /// It has fields that are not known.
    #[error("unable to load the config file: {path} cannot be used:{}\n--validate=warn makes these warnings", lines(.fields))]
    Unknown {
        /// The file.
        path: String,
        /// Every field.
        fields: Vec<String>,
    },
    /// Fields of it cannot be used.
    #[error("unable to load the config file: {path} cannot be used:{}", listed(.faults))]
    Faults {
        /// The file.
        path: String,
        /// Every fault.
        faults: Vec<FieldError>,
    },
}

fn lines(fields: &[String]) -> String {
    fields.iter().flat_map(|field| ["\n  ", field]).collect()
}

fn listed(faults: &[FieldError]) -> String {
    faults.iter().flat_map(|fault| ["\n  ".to_owned(), fault.to_string()]).collect()
}

/// A configuration file that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedConfig {
    /// What it says.
    pub config: ProjectConfig,
    /// Fields that this build does not know, one warning each.
    pub warnings: Vec<String>,
}

impl LoadedConfig {
    /// The same, unless fields that are not known are to be errors, as with the manifests of sets.
    ///
    /// # Errors
    /// [`ConfigError::Unknown`].
    pub fn within(self, path: &Path, validate: Validate) -> Result<Self, ConfigError> {
        if validate == Validate::Warn || self.warnings.is_empty() {
            return Ok(self);
        }
        Err(ConfigError::Unknown { path: path.display().to_string(), fields: self.warnings })
    }
}

/// Reads a configuration file.
///
/// # Errors
/// [`ConfigError`], which names the file.
pub fn load(path: &Path) -> Result<LoadedConfig, ConfigError> {
    let shown = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => read(&text, &shown),
        Err(source) => Err(ConfigError::Unreadable { path: shown, source }),
    }
}

/// Reads the text of a configuration file; `path` is for errors.
///
/// # Errors
/// As [`load`].
pub fn read(text: &str, path: &str) -> Result<LoadedConfig, ConfigError> {
    let path = || path.to_owned();
    let documents = yaml::read(text).map_err(|source| ConfigError::Syntax { path: path(), source })?;
    let object = match documents.as_slice() {
        [document] if is_ours(&document.value) => &document.value,
        [document] => return Err(ConfigError::NotOurs { path: path(), found: described(&document.value) }),
        [] => return Err(ConfigError::NotOurs { path: path(), found: "nothing".to_owned() }),
        many => return Err(ConfigError::NotOurs { path: path(), found: format!("{} documents", many.len()) }),
    };
    let Checked { faults, warnings } = check(object);
    if !faults.is_empty() {
        return Err(ConfigError::Faults { path: path(), faults });
    }
    let config = serde_json::from_value(object.clone())
        .map_err(|error| ConfigError::NotOurs { path: path(), found: error.to_string() })?;
    Ok(LoadedConfig { config, warnings })
}

fn is_ours(object: &Value) -> bool {
    object.get("apiVersion").is_some_and(|text| text == API_VERSION)
        && object.get("kind").is_some_and(|text| text == KIND)
}

fn described(value: &Value) -> String {
    let Some(object) = value.as_object() else { return "no object".to_owned() };
    let shown = |key| object.get(key).map_or_else(|| format!("no {key}"), |value: &Value| format!("{key}: {value}"));
    format!("{} and {}", shown("apiVersion"), shown("kind"))
}

#[cfg(test)]
mod tests;
