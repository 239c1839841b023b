//! Names and the other short texts that have a fixed form.
//!
//! Rules and wording: `k8s.io/apimachinery/pkg/util/validation`, and for label keys and values
//! `k8s.io/apimachinery/pkg/api/validate/content`. The two word their length limits differently ("characters"
//! there, "bytes" here); both count bytes.

const DNS1123_LABEL_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN_FORM: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL_FORM: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE_FORM: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// Longest DNS label, and longest label value and name part of a label key, in bytes.
pub const LABEL_MAX_BYTES: usize = 63;
/// Longest DNS subdomain, and so the longest name of most objects, in bytes.
pub const SUBDOMAIN_MAX_BYTES: usize = 253;
/// Longest port name, in bytes.
pub const PORT_NAME_MAX_BYTES: usize = 15;

/// A label as in RFC 1123, such as the name of a container or a namespace.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_MAX_BYTES, "characters");
    if is_dns1123_label(text) {
        return wrong;
    }
    wrong.push(if is_dns1123_subdomain(text) {
        "must not contain dots".to_owned()
    } else {
        form_message(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
             start and end with an alphanumeric character",
            DNS1123_LABEL_FORM,
            &["my-name", "123-abc"],
        )
    });
    wrong
}

/// A subdomain as in RFC 1123, such as the name of a pod, a config map or a custom resource.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut wrong = too_long(text, SUBDOMAIN_MAX_BYTES, unit);
    if !is_dns1123_subdomain(text) {
        wrong.push(form_message(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character",
            DNS1123_SUBDOMAIN_FORM,
            &["example.com"],
        ));
    }
    wrong
}

/// A label as in RFC 1035, such as the name of a service.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_MAX_BYTES, "characters");
    if !(is_dns1123_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        wrong.push(form_message(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
             alphabetic character, and end with an alphanumeric character",
            DNS1035_LABEL_FORM,
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// A `metadata.generateName`, where `name_rule` is the rule for the kind's names, such as [`dns1123_subdomain`].
///
/// The API server appends random characters, so a prefix may end with a dash.
pub fn generate_name(prefix: &str, name_rule: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    match prefix.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        None => name_rule(prefix),
        // As `maskTrailingDash` of k8s.io/apimachinery/pkg/api/validation: the dash and the character before it
        // become one harmless letter. Outside ASCII that character stays: it is wrong in any name.
        Some(rest) => match rest.strip_suffix(|c: char| c.is_ascii()) {
            Some(start) => name_rule(&format!("{start}a")),
            None => name_rule(rest),
        },
    }
}

/// A qualified name: the key of a label or an annotation, the name of a finalizer or a condition type. It is a
/// name, with an optional DNS subdomain and `/` in front.
pub fn qualified_name(text: &str) -> Vec<String> {
    const WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character";
    const EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];
    let mut wrong = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let form = form_message(WORDS, LABEL_KEY_FORM, &EXAMPLES);
            wrong.push(format!(
                "a valid label key {form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return wrong;
        }
        Some(("", name)) => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            wrong.extend(subdomain(prefix, "bytes").iter().map(|message| format!("prefix part {message}")));
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(too_long(name, LABEL_MAX_BYTES, "bytes").iter().map(|message| format!("name part {message}")));
    if !is_label_name(name) {
        wrong.push(format!("name part {}", form_message(WORDS, LABEL_KEY_FORM, &EXAMPLES)));
    }
    wrong
}

/// The value of a label. It may be empty.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, LABEL_MAX_BYTES, "bytes");
    if !text.is_empty() && !is_label_name(text) {
        wrong.push(form_message(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character",
            LABEL_VALUE_FORM,
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// The name of an environment variable, by the relaxed rule of Kubernetes 1.32 and newer
/// (`IsRelaxedEnvVarName`): any printable ASCII but `=`.
pub fn env_var_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if !text.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
        wrong.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    wrong
}

/// The name of a port, an IANA service name (RFC 6335) in lower case.
pub fn port_name(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, PORT_NAME_MAX_BYTES, "characters");
    let checks = [
        (
            !text.is_empty() && text.bytes().all(is_dns_byte),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (text.bytes().any(|b| b.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (!text.contains("--"), "must not contain consecutive hyphens"),
        (!text.starts_with('-') && !text.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    wrong.extend(checks.iter().filter(|(holds, _)| !holds).map(|(_, message)| (*message).to_owned()));
    wrong
}

/// Returns what is wrong with the number of a port, which must be from 1 to 65535.
pub fn port_number(number: i64) -> Vec<String> {
    if (1..=65535).contains(&number) {
        return Vec::new();
    }
    vec!["must be between 1 and 65535, inclusive".to_owned()]
}

/// A key in the data of a config map or a secret.
pub fn config_map_key(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, SUBDOMAIN_MAX_BYTES, "characters");
    if text.is_empty() || !text.bytes().all(is_label_byte) {
        wrong.push(form_message(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    // The key becomes the name of a file in a volume.
    match text {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// The name of an HTTP header, as in probes and lifecycle hooks.
pub fn http_header_name(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    vec![form_message(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// The explanation of a text that does not have its form, as apimachinery's `RegexError` words it.
pub(super) fn form_message(words: &str, form: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{form}')", examples.join(" or "))
}

fn too_long(text: &str, max_bytes: usize, unit: &str) -> Vec<String> {
    if text.len() <= max_bytes {
        return Vec::new();
    }
    vec![format!("must be no more than {max_bytes} {unit}")]
}

const fn is_dns_byte(b: u8) -> bool {
    matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-')
}

const fn is_label_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

fn is_dns1123_label(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_dns_byte)
}

fn is_dns1123_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns1123_label)
}

fn is_label_name(text: &str) -> bool {
    let at_edge = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(at_edge) && text.ends_with(at_edge) && text.bytes().all(is_label_byte)
}

#[cfg(test)]
mod tests;
