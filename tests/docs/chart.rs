//! The table of the chart's values: the comments of values.yaml are their descriptions.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use engine::yaml;
use serde_json::Value;

/// Path and comment of every key that has one, in the order of the file.
fn described(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut above: Vec<(usize, &str)> = Vec::new();
    let mut comment = String::new();
    for line in text.lines() {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        if let Some(words) = words.strip_prefix('#') {
            comment.push_str(if comment.is_empty() { "" } else { " " });
            comment.push_str(words.trim());
            continue;
        }
        if let Some((key, _)) = words.split_once(':').filter(|(key, _)| !key.starts_with('-')) {
            above.retain(|(outer, _)| *outer < indent);
            above.push((indent, key));
            if !comment.is_empty() {
                let path: Vec<&str> = above.iter().map(|(_, key)| *key).collect();
                found.push((path.join("."), comment.clone()));
            }
        }
        comment.clear();
    }
    // The comment of a group is no description of a value.
    let paths: Vec<String> = found.iter().map(|(path, _)| path.clone()).collect();
    found.retain(|(path, _)| !paths.iter().any(|other| other.starts_with(&format!("{path}."))));
    found
}

/// Paths of values that no comment describes.
fn undescribed(path: &str, value: &Value, described: &[(String, String)]) -> Vec<String> {
    if described.iter().any(|(found, _)| found == path) {
        return Vec::new();
    }
    let inner = value.as_object().filter(|inner| !inner.is_empty());
    let Some(inner) = inner else { return vec![path.to_owned()] };
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    inner.iter().flat_map(|(key, value)| undescribed(&below(key), value, described)).collect()
}

#[test]
fn table_of_values_of_the_chart_is_up_to_date() {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/outrider");
    let text = fs::read_to_string(chart.join("values.yaml")).unwrap();
    let values = yaml::read(&text).unwrap().remove(0).value;
    let described = described(&text);
    assert_eq!(undescribed("", &values, &described), Vec::<String>::new(), "values without a comment");
    let mut rows = String::new();
    for (path, comment) in &described {
        let default = values.pointer(&format!("/{}", path.replace('.', "/"))).unwrap();
        writeln!(rows, "| `{path}` | `{default}` | {} |", comment.replace('|', "\\|")).unwrap();
    }
    crate::hold("charts/outrider/README.md", &include_str!("chart.md").replace("{rows}\n", &rows));
}
