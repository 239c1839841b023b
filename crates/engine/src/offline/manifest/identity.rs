//! Which object it is: apiVersion, kind, namespace and name.

use serde_json::Value;

/// What names an object in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// As in `apps/v1`.
    pub api_version: String,
    /// As in `Deployment`.
    pub kind: String,
    /// Absent where the object does not say it.
    pub namespace: Option<String>,
    /// Empty where there is only a `generateName`, or nothing.
    pub name: String,
}

impl Identity {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        group(&self.api_version)
    }
}

/// The group of an `apiVersion`: `apps` of `apps/v1`, the empty string of `v1`.
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Why an object does not say what it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A required field is absent or empty.
    #[error("{field} is missing: {help}")]
    Missing {
        /// Path of the field.
        field: &'static str,
        /// What to write.
        help: &'static str,
    },
    /// Nothing says what the object is.
    #[error(
        "there is neither apiVersion nor kind, so it is no Kubernetes object: keep other files outside of the folder, or name the files to read"
    )]
    NoObject,
    /// A field with something else than a string.
    #[error("{field} must be a string, found {found}{}", quoting(found))]
    NotAString {
        /// Path of the field.
        field: &'static str,
        /// What it is, with its article.
        found: &'static str,
    },
}

/// What to do about a word that YAML does not take for text, as `n`.
fn quoting(found: &str) -> &'static str {
    if matches!(found, "a boolean" | "a number") { ": put it in quotes" } else { "" }
}

/// Reads the identity of an object.
///
/// # Errors
///
/// `apiVersion` or `kind` is missing or empty, or one of the four fields is not a string. A missing name is not an
/// error: a pod of a template has none.
pub fn identity(object: &Value) -> Result<Identity, IdentityError> {
    if ["apiVersion", "kind"].iter().all(|field| object.get(field).is_none()) {
        return Err(IdentityError::NoObject);
    }
    let required = |pointer, field, help| match text(object, pointer, field)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(IdentityError::Missing { field, help }),
    };
    Ok(Identity {
        api_version: required("/apiVersion", "apiVersion", "write for example \"apiVersion: v1\"")?,
        kind: required("/kind", "kind", "write for example \"kind: Pod\"")?,
        namespace: text(object, "/metadata/namespace", "metadata.namespace")?.filter(|namespace| !namespace.is_empty()),
        name: text(object, "/metadata/name", "metadata.name")?.unwrap_or_default(),
    })
}

fn text(object: &Value, pointer: &str, field: &'static str) -> Result<Option<String>, IdentityError> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(IdentityError::NotAString { field, found: article(other) }),
    }
}

/// What a value is, for a sentence.
pub(super) fn article(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn identity_is_read_from_type_and_metadata() {
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}});
        let found = identity(&object).unwrap();
        assert_eq!(found.group(), "apps");
        let expected = Identity {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_may_be_missing() {
        let found =
            identity(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}})).unwrap();
        assert_eq!((found.group(), found.name.as_str(), found.namespace.as_deref()), ("", "", None));
    }

    #[test]
    fn errors_name_the_field_and_what_to_write() {
        let table = [
            (
                json!({"foo": "bar"}),
                "there is neither apiVersion nor kind, so it is no Kubernetes object: keep other files outside of the folder, or name the \
                 files to read",
            ),
            (json!({"kind": "Pod"}), "apiVersion is missing: write for example \"apiVersion: v1\""),
            (json!({"apiVersion": "v1", "kind": ""}), "kind is missing: write for example \"kind: Pod\""),
            (json!({"apiVersion": 1, "kind": "Pod"}), "apiVersion must be a string, found a number: put it in quotes"),
            (
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": true}}),
                "metadata.name must be a string, found a boolean: put it in quotes",
            ),
        ];
        for (object, expected) in table {
            assert_eq!(identity(&object).unwrap_err().to_string(), expected, "{object}");
        }
    }
}
