//! The label and annotation maps of an object.
//!
//! Rules and wording: `ValidateLabels` of `k8s.io/apimachinery/pkg/apis/meta/v1/validation` and
//! `ValidateAnnotations` of `k8s.io/apimachinery/pkg/api/validation`. Both point at the map, not at the key.

use super::names::{label_value, qualified_name};
use crate::field::{Error, ErrorList, Path};

/// Most bytes that all annotation keys and values of one object may have together: 256 KiB.
pub const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

/// Checks the keys and values of the label map at `path`.
pub fn validate_labels(
    labels: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    path: &Path,
    errors: &mut ErrorList,
) {
    for (key, value) in labels {
        let (key, value) = (key.as_ref(), value.as_ref());
        validate_label_name(key, path, errors);
        errors.extend(label_value(value).into_iter().map(|message| Error::invalid(path, value, message)));
    }
}

/// Checks the label key at `path`.
pub fn validate_label_name(key: &str, path: &Path, errors: &mut ErrorList) {
    errors.extend(qualified_name(key).into_iter().map(|message| Error::invalid(path, key, message)));
}

/// Checks the keys of the annotation map at `path`, where case does not matter, and the size of the whole.
pub fn validate_annotations(
    annotations: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let mut bytes = 0_usize;
    for (key, value) in annotations {
        let (key, value) = (key.as_ref(), value.as_ref());
        bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
        let wrong = qualified_name(&go_lowercase(key));
        errors.extend(wrong.into_iter().map(|message| Error::invalid(path, key, message)));
    }
    if bytes > ANNOTATIONS_MAX_BYTES {
        errors.push(Error::too_long(path, ANNOTATIONS_MAX_BYTES));
    }
}

/// Lower case as Go's `strings.ToLower` makes it, one character for one: `İ` becomes `i`, where Rust adds a
/// combining dot, and such a key is an accepted one.
fn go_lowercase(text: &str) -> String {
    text.chars().filter_map(|c| c.to_lowercase().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::{ANNOTATIONS_MAX_BYTES, validate_annotations, validate_labels};
    use crate::field::{ErrorList, Path};

    const NAME_FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                             an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

    fn labels_errors(labels: &[(&str, &str)]) -> String {
        let mut errors = ErrorList::new();
        validate_labels(labels.iter().copied(), &Path::new("metadata").child("labels"), &mut errors);
        errors.to_string()
    }

    fn annotations_errors(annotations: &[(&str, &str)]) -> String {
        let mut errors = ErrorList::new();
        let path = Path::new("metadata").child("annotations");
        validate_annotations(annotations.iter().copied(), &path, &mut errors);
        errors.to_string()
    }

    #[test]
    fn labels_are_refused_at_the_map_by_key_and_by_value() {
        assert_eq!(labels_errors(&[("app", "web"), ("example.com/Tier", "")]), "");
        assert_eq!(
            labels_errors(&[("a b", "ok")]),
            format!(r#"metadata.labels: Invalid value: "a b": name part {NAME_FORM}"#)
        );
        assert_eq!(
            labels_errors(&[("app", &"v".repeat(64))]),
            format!(r#"metadata.labels: Invalid value: "{}": must be no more than 63 bytes"#, "v".repeat(64))
        );
    }

    #[test]
    fn annotation_keys_may_have_upper_case_prefixes_and_any_value() {
        assert_eq!(annotations_errors(&[("Example.COM/Key", "any\u{0}thing"), ("İ", "")]), "");
        assert_eq!(
            annotations_errors(&[("A/B c", "")]),
            format!(r#"metadata.annotations: Invalid value: "A/B c": name part {NAME_FORM}"#)
        );
    }

    #[test]
    fn annotations_may_have_exactly_256_kib_together() {
        let value = "v".repeat(ANNOTATIONS_MAX_BYTES - 3);
        assert_eq!(annotations_errors(&[("a", ""), ("b", &value), ("c", "")]), "");
        assert_eq!(
            annotations_errors(&[("a", "1"), ("b", &value), ("c", "")]),
            "metadata.annotations: Too long: may not be more than 262144 bytes"
        );
    }
}
