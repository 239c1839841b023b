//! One thing wrong with one field.

use std::fmt;

use super::{BadValue, Path, quote};

/// What is wrong with a field. Each kind has one cause type of the API's `Status`, see [`ErrorKind::reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something that the field refers to does not exist.
    NotFound,
    /// The field must have a value and has none.
    Required,
    /// A value that must be unique is there twice.
    Duplicate,
    /// The value is malformed or out of range.
    Invalid,
    /// The value is none of the known ones.
    NotSupported,
    /// The value is well formed, but not allowed here.
    Forbidden,
    /// The text has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// Not the user's fault.
    Internal,
}

impl ErrorKind {
    /// The `CauseType` of `k8s.io/apimachinery/pkg/apis/meta/v1`, for `status.details.causes[].reason`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        })
    }
}

/// One thing wrong with one field; prints as `spec.name: Invalid value: "x": why`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {}", self.message())]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Which field, as a printed [`Path`].
    pub field: String,
    /// The refused value as it is shown in the message (strings already quoted), where it is shown.
    pub bad_value: Option<String>,
    /// What to do about it. May be empty.
    pub detail: String,
}

impl Error {
    fn new(kind: ErrorKind, path: &Path, bad_value: Option<BadValue>, detail: impl Into<String>) -> Self {
        let bad_value = bad_value.map(BadValue::into_text);
        Self { kind, field: path.to_string(), bad_value, detail: detail.into() }
    }

    /// The field has no value and must have one. `detail` may be empty.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, path, None, detail)
    }

    /// The value is malformed or out of range.
    pub fn invalid(path: &Path, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// The value has the wrong JSON type.
    pub fn type_invalid(path: &Path, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, path, Some(value.into()), detail)
    }

    /// The value is none of `supported`, which the message lists in the given order.
    pub fn not_supported(path: &Path, value: impl Into<BadValue>, supported: &[impl AsRef<str>]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|value| quote(value.as_ref())).collect();
        let detail = match quoted.as_slice() {
            [] => String::new(),
            values => format!("supported values: {}", values.join(", ")),
        };
        Self::new(ErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// The value must be unique and is there twice.
    pub fn duplicate(path: &Path, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// What the value refers to does not exist.
    pub fn not_found(path: &Path, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// The value is well formed, but not allowed here. `detail` says why.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, path, None, detail)
    }

    /// The text has more than `max_bytes` bytes. The message does not repeat it.
    pub fn too_long(path: &Path, max_bytes: usize) -> Self {
        let unit = if max_bytes == 1 { "byte" } else { "bytes" };
        Self::new(ErrorKind::TooLong, path, None, format!("may not be more than {max_bytes} {unit}"))
    }

    /// The list has `actual` items and may have at most `max`.
    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(ErrorKind::TooMany, path, Some(actual.into()), format!("must have at most {max} {unit}"))
    }

    /// Validation itself failed; the value may be right.
    pub fn internal(path: &Path, error: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Internal, path, None, error.to_string())
    }

    /// The message without the field, for `status.details.causes[].message`.
    pub fn message(&self) -> String {
        let mut message = self.kind.to_string();
        let parts = self.bad_value.as_deref().into_iter().chain(Some(self.detail.as_str()));
        for part in parts.filter(|part| !part.is_empty()) {
            message.push_str(": ");
            message.push_str(part);
        }
        message
    }

    /// The `CauseType` of the API, such as `FieldValueInvalid`.
    pub const fn reason(&self) -> &'static str {
        self.kind.reason()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Error, Path};

    #[test]
    fn errors_read_as_the_api_server_words_them() {
        let path = Path::new("spec").child("name");
        let none: [&str; 0] = [];
        let cases = [
            (Error::required(&path, ""), "FieldValueRequired", "Required value"),
            (Error::required(&path, "name it"), "FieldValueRequired", "Required value: name it"),
            (Error::invalid(&path, "x", "why"), "FieldValueInvalid", r#"Invalid value: "x": why"#),
            (Error::invalid(&path, "", "why"), "FieldValueInvalid", r#"Invalid value: "": why"#),
            (Error::invalid(&path, -1, "why"), "FieldValueInvalid", "Invalid value: -1: why"),
            (Error::invalid(&path, json!({"a": 1}), ""), "FieldValueInvalid", r#"Invalid value: {"a":1}"#),
            (
                Error::not_supported(&path, "Foo", &["A", "B"]),
                "FieldValueNotSupported",
                r#"Unsupported value: "Foo": supported values: "A", "B""#,
            ),
            (Error::not_supported(&path, "Foo", &none), "FieldValueNotSupported", r#"Unsupported value: "Foo""#),
            (Error::duplicate(&path, "x"), "FieldValueDuplicate", r#"Duplicate value: "x""#),
            (Error::not_found(&path, "x"), "FieldValueNotFound", r#"Not found: "x""#),
            (Error::forbidden(&path, "may not"), "FieldValueForbidden", "Forbidden: may not"),
            (Error::too_long(&path, 63), "FieldValueTooLong", "Too long: may not be more than 63 bytes"),
            (Error::too_long(&path, 1), "FieldValueTooLong", "Too long: may not be more than 1 byte"),
            (Error::too_many(&path, 5, 3), "FieldValueTooMany", "Too many: 5: must have at most 3 items"),
            (Error::too_many(&path, 2, 1), "FieldValueTooMany", "Too many: 2: must have at most 1 item"),
            (Error::type_invalid(&path, 7, "not text"), "FieldValueTypeInvalid", "Invalid value: 7: not text"),
            (Error::internal(&path, "broken"), "InternalError", "Internal error: broken"),
        ];
        for (error, reason, message) in cases {
            assert_eq!(error.reason(), reason);
            assert_eq!(error.message(), message);
            assert_eq!(error.to_string(), format!("spec.name: {message}"));
        }
    }
}
