//! What apimachinery v0.36.3 accepts, refuses and says.

use super::{
    config_map_key, dns1035_label, dns1123_label, dns1123_subdomain, env_var_name, generate_name, http_header_name,
    label_value, port_name, port_number, qualified_name,
};

type Rule = fn(&str) -> Vec<String>;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                         '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                         for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                       alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
                       regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                         with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const KEY: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                   with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                   validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
                   and '/' (e.g. 'example.com/MyName')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                     must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                     regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const ENV: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";
const CHARSET: &str = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
const LETTER: &str = "must contain at least one letter (a-z)";
const EDGES: &str = "must not begin or end with a hyphen";
const CONFIG: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                      or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex \
                      used for validation is '[-A-Za-z0-9]+')";

#[test]
fn refused_texts_are_explained_as_the_api_server_explains_them() {
    let (a64, a254) = ("a".repeat(64), "a".repeat(254));
    let long_prefix = format!("{a254}/x");
    let cases: &[(Rule, &str, &[&str])] = &[
        (dns1123_label, "", &[LABEL]),
        (dns1123_label, "A", &[LABEL]),
        (dns1123_label, "a.b", &["must not contain dots"]),
        (dns1123_label, &a64, &["must be no more than 63 characters"]),
        (dns1123_subdomain, "a..b", &[SUBDOMAIN]),
        (dns1123_subdomain, "a_b", &[SUBDOMAIN]),
        (dns1123_subdomain, &a254, &["must be no more than 253 characters"]),
        (dns1035_label, "1a", &[DNS1035]),
        (dns1035_label, &a64, &["must be no more than 63 characters"]),
        (qualified_name, "", &["name part must be non-empty", NAME_PART]),
        (qualified_name, "/a", &["prefix part must be non-empty"]),
        (qualified_name, "a/", &["name part must be non-empty", NAME_PART]),
        (qualified_name, "a/b/c", &[KEY]),
        (qualified_name, "-a", &[NAME_PART]),
        (qualified_name, &a64, &["name part must be no more than 63 bytes"]),
        (qualified_name, &long_prefix, &["prefix part must be no more than 253 bytes"]),
        (label_value, "-a", &[VALUE]),
        (label_value, "a/b", &[VALUE]),
        (label_value, &a64, &["must be no more than 63 bytes"]),
        (env_var_name, "", &["environment variable name must be non-empty"]),
        (env_var_name, "a=b", &[ENV]),
        (env_var_name, "a\tb", &[ENV]),
        (env_var_name, "é", &[ENV]),
        (port_name, "", &[CHARSET, LETTER]),
        (port_name, "80", &[LETTER]),
        (port_name, "a--b", &["must not contain consecutive hyphens"]),
        (port_name, "-a", &[EDGES]),
        (port_name, "Http", &[CHARSET]),
        (port_name, "sixteen-letters-", &["must be no more than 15 characters", EDGES]),
        (config_map_key, "", &[CONFIG]),
        (config_map_key, "a/b", &[CONFIG]),
        (config_map_key, ".", &["must not be '.'"]),
        (config_map_key, "..", &["must not be '..'"]),
        (config_map_key, "..a", &["must not start with '..'"]),
        (config_map_key, &a254, &["must be no more than 253 characters"]),
        (http_header_name, "", &[HEADER]),
        (http_header_name, "X_A", &[HEADER]),
    ];
    for (rule, text, expected) in cases {
        assert_eq!(rule(text), *expected, "{text:?}");
    }
    let prefix = format!("prefix part {SUBDOMAIN}");
    assert_eq!(qualified_name("Example.com/-"), [prefix.as_str(), NAME_PART]);
}

#[test]
fn texts_of_the_right_form_are_accepted() {
    let (a63, a253) = ("a".repeat(63), "a".repeat(253));
    let longest_key = format!("{a253}/{a63}");
    let cases: &[(Rule, &[&str])] = &[
        (dns1123_label, &["a", "0", "a-b", "1--a", &a63]),
        (dns1123_subdomain, &["a", "a.b", "0.1-2.c", &a253]),
        (dns1035_label, &["a", "a-0", &a63]),
        (qualified_name, &["a", "A_b.c-D", "example.com/A", "1/2", &longest_key]),
        (label_value, &["", "0", "A_b.c-D", &a63]),
        (env_var_name, &["A", "1", " ", "a-b.c", "..", "~!\"%"]),
        (port_name, &["a", "http-2", "0a", "fifteen-letters"]),
        (config_map_key, &["a", "A_b-c.D", ".a", "a..", &a253]),
        (http_header_name, &["X", "-", "X-0"]),
    ];
    for (rule, texts) in cases {
        for text in *texts {
            assert_eq!(rule(text), [""; 0], "{text:?}");
        }
    }
}

#[test]
fn ports_are_numbers_from_1_to_65535() {
    assert!(port_number(1).is_empty() && port_number(65535).is_empty());
    for number in [i64::MIN, -1, 0, 65536] {
        assert_eq!(port_number(number), ["must be between 1 and 65535, inclusive"]);
    }
}

#[test]
fn prefixes_of_generated_names_may_end_with_a_dash() {
    for prefix in ["a-", "web-", "web", "a.-", "a", "A-"] {
        assert_eq!(generate_name(prefix, dns1123_subdomain), [""; 0], "{prefix}");
    }
    for prefix in ["-", "é-", "aé-", "-a-", "Web-"] {
        assert_eq!(generate_name(prefix, dns1123_subdomain), [SUBDOMAIN], "{prefix}");
    }
}
