//! Fields that nobody knows, and values of the wrong type.
//!
//! The API server checks the schema of a `SidecarSet` but not what is inside a container or a volume, which it keeps as written.
//! Here they are compared with the pod API's own schema. An unknown field is a warning, not a fault: it may be of a newer API.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use admission::field::{Error, ErrorList, Path, quote};
use k8s_openapi::api::core::v1::{Container, Volume};
use k8s_openapi::schemars::JsonSchema;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::sidecarset::crd;

/// What a value may look like.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Anything,
    Text,
    /// A string out of a closed vocabulary.
    Word(Vec<String>),
    Flag,
    Int32,
    Int64,
    Number,
    /// A number or a string: a quantity, a port, a percentage.
    NumberOrText,
    List(Box<Self>),
    /// Any keys, values of one shape.
    Map(Box<Self>),
    Object(BTreeMap<String, Self>),
}

/// The shape of `spec`.
static SPEC: LazyLock<Shape> = LazyLock::new(spec_shape);

/// Unknown fields that are told one by one. To look for what was meant takes time, and an object may have very many.
const UNKNOWN_FIELDS_TOLD: usize = 20;

/// Compares `spec` with what is known about it.
pub fn check(spec: &Value, path: &Path, errors: &mut ErrorList, warnings: &mut Vec<String>) {
    let mut unknown = Vec::new();
    SPEC.check(spec, path, errors, &mut unknown);
    let (told, left_out) = unknown.split_at(unknown.len().min(UNKNOWN_FIELDS_TOLD));
    warnings.extend(told.iter().map(Unknown::warning));
    if !left_out.is_empty() {
        warnings.push(format!("{} more unknown fields", left_out.len()));
    }
}

/// Whether the pod API knows the field of a volume.
pub fn is_volume_field(name: &str) -> bool {
    let Shape::Object(spec) = &*SPEC else { return false };
    let Some(Shape::List(item)) = spec.get("volumes") else { return false };
    matches!(item.as_ref(), Shape::Object(fields) if fields.contains_key(name))
}

/// A field that its map does not know.
struct Unknown<'s> {
    key: String,
    path: Path,
    known: &'s BTreeMap<String, Shape>,
}

impl Unknown<'_> {
    fn warning(&self) -> String {
        let field = quote(&self.path.to_string());
        let hint = match nearest(&self.key, self.known.keys()) {
            Some(meant) => format!(" (did you mean {}?)", quote(meant)),
            None => String::new(),
        };
        format!(
            "unknown field {field}{hint}; it is kept, but an API server that does not know it drops it from the pods"
        )
    }
}

fn spec_shape() -> Shape {
    // A shape without fields would call every field unknown; to know nothing is to allow all.
    let schema = serde_json::to_value(crd::spec_schema()).unwrap_or_default();
    let mut shape = Shape::of(&schema);
    let (container, volume) = (pod_shape::<Container>(), pod_shape::<Volume>());
    if let Shape::Object(fields) = &mut shape {
        for (list, pod_fields) in [("containers", &container), ("initContainers", &container), ("volumes", &volume)] {
            if let (Some(Shape::List(item)), Shape::Object(pod_fields)) = (fields.get_mut(list), pod_fields)
                && let Shape::Object(own) = item.as_mut()
            {
                own.extend(pod_fields.clone());
            }
        }
    }
    shape
}

fn pod_shape<T: JsonSchema>() -> Shape {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    Shape::of(settings.into_generator().into_root_schema_for::<T>().as_value())
}

impl Shape {
    fn of(schema: &Value) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::NumberOrText;
        }
        let words =
            schema["enum"].as_array().map(|words| words.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        match (schema["type"].as_str(), words) {
            (Some("string"), Some(words)) => Self::Word(words),
            (Some("string"), None) => Self::Text,
            (Some("boolean"), _) => Self::Flag,
            (Some("integer"), _) if schema["format"] == "int32" => Self::Int32,
            (Some("integer"), _) => Self::Int64,
            (Some("number"), _) => Self::Number,
            (Some("array"), _) => Self::List(Box::new(Self::of(&schema["items"]))),
            (Some("object"), _) => match (schema["properties"].as_object(), &schema["additionalProperties"]) {
                (Some(fields), _) => {
                    Self::Object(fields.iter().map(|(name, field)| (name.clone(), Self::of(field))).collect())
                }
                (None, values @ Value::Object(_)) => Self::Map(Box::new(Self::of(values))),
                (None, _) => Self::Anything,
            },
            _ => Self::Anything,
        }
    }

    fn check<'s>(&'s self, value: &Value, path: &Path, errors: &mut ErrorList, unknown: &mut Vec<Unknown<'s>>) {
        match (self, value) {
            (Self::Anything, _)
            | (_, Value::Null)
            | (Self::Text | Self::NumberOrText, Value::String(_))
            | (Self::Flag, Value::Bool(_))
            | (Self::Number | Self::NumberOrText, Value::Number(_)) => {}
            (Self::Int32, Value::Number(number)) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {}
            (Self::Int64, Value::Number(number)) if number.as_i64().is_some() => {}
            (Self::Word(words), Value::String(text)) => {
                if !words.contains(text) {
                    errors.push(Error::not_supported(path, text, words));
                }
            }
            (Self::List(item), Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    item.check_there(value, &path.index(index), errors, unknown);
                }
            }
            (Self::Map(item), Value::Object(map)) => {
                for (key, value) in map {
                    item.check_there(value, &path.key(key.as_str()), errors, unknown);
                }
            }
            (Self::Object(fields), Value::Object(map)) => {
                for (key, value) in map {
                    let path = path.child(key.clone());
                    match fields.get(key) {
                        Some(field) => field.check(value, &path, errors, unknown),
                        None => unknown.push(Unknown { key: key.clone(), path, known: fields }),
                    }
                }
            }
            (wanted, _) => errors.push(Error::type_invalid(path, value, wanted.demand(value))),
        }
    }

    /// A field may be `null`, which is the same as to leave it out. An item may not.
    fn check_there<'s>(&'s self, value: &Value, path: &Path, errors: &mut ErrorList, unknown: &mut Vec<Unknown<'s>>) {
        if value.is_null() && *self != Self::Anything {
            errors.push(Error::type_invalid(path, value, self.demand(value)));
        } else {
            self.check(value, path, errors, unknown);
        }
    }

    /// What is wanted in place of `value`.
    fn demand(&self, value: &Value) -> &'static str {
        match (self, value) {
            // The usual slip: `value: 8080`, `value: true`.
            (Self::Text | Self::Word(_), Value::Number(_) | Value::Bool(_)) => "must be a string; put it in quotes",
            (Self::Text | Self::Word(_), _) => "must be a string",
            (Self::Flag, _) => "must be true or false",
            (Self::Int32, _) => "must be a whole number of at most 32 bits",
            (Self::Int64, _) => "must be a whole number of at most 64 bits",
            (Self::Number, _) => "must be a number",
            (Self::NumberOrText, _) => "must be a number or a string",
            (Self::List(_), _) => "must be a list",
            (Self::Map(_) | Self::Object(_) | Self::Anything, _) => "must be a map",
        }
    }
}

/// The known name that `key` is most likely a slip of.
fn nearest<'k>(key: &str, known: impl Iterator<Item = &'k String>) -> Option<&'k str> {
    let lower = key.to_lowercase();
    let allowed = (key.chars().count() / 3).clamp(1, 3);
    let distances = known.map(|name| (edit_distance(&lower, &name.to_lowercase(), allowed), name.as_str()));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, name)| name)
}

/// How many insertions, deletions, replacements and swaps of neighbours lead from one to the other; `limit + 1` when it is
/// clear from the lengths that it takes more than `limit`.
fn edit_distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
    let (mut before, mut above): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (at(&above, j) + usize::from(x != y)).min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&y) && b.get(j - 1) == Some(&x);
            if swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut above, row);
    }
    at(&above, b.len())
}

#[cfg(test)]
mod tests {
    use admission::field::{ErrorList, Path};
    use serde_json::{Value, json};

    use super::check;

    fn checked(spec: &Value) -> (String, Vec<String>) {
        let (mut errors, mut warnings) = (ErrorList::new(), Vec::new());
        check(spec, &Path::new("spec"), &mut errors, &mut warnings);
        (errors.to_string(), warnings)
    }

    #[test]
    fn wrong_types_are_named_with_their_path() {
        let cases = [
            (
                json!({"containers": [{"image": 5}]}),
                "spec.containers[0].image: Invalid value: 5: must be a string; put it in quotes",
            ),
            (
                json!({"containers": [{"env": [{"value": true}]}]}),
                "spec.containers[0].env[0].value: Invalid value: true: must be a string; put it in quotes",
            ),
            (
                json!({"containers": [{"command": "sh"}]}),
                r#"spec.containers[0].command: Invalid value: "sh": must be a list"#,
            ),
            (json!({"containers": {}}), "spec.containers: Invalid value: {}: must be a list"),
            (json!({"containers": ["x"]}), r#"spec.containers[0]: Invalid value: "x": must be a map"#),
            (
                json!({"initContainers": [{"tty": "yes"}]}),
                r#"spec.initContainers[0].tty: Invalid value: "yes": must be true or false"#,
            ),
            (
                json!({"containers": [{"ports": [{"containerPort": 80.5}]}]}),
                "spec.containers[0].ports[0].containerPort: Invalid value: 80.5: must be a whole number of at most 32 bits",
            ),
            (
                json!({"order": 4_294_967_296_i64}),
                "spec.order: Invalid value: 4294967296: must be a whole number of at most 32 bits",
            ),
            (
                json!({"volumes": [{"configMap": {"items": [{"mode": "0644"}]}}]}),
                r#"spec.volumes[0].configMap.items[0].mode: Invalid value: "0644": must be a whole number of at most 32 bits"#,
            ),
            (
                json!({"containers": [{"resources": {"limits": {"cpu": []}}}]}),
                "spec.containers[0].resources.limits[cpu]: Invalid value: []: must be a number or a string",
            ),
            (
                json!({"selector": {"matchLabels": {"a": 1}}}),
                "spec.selector.matchLabels[a]: Invalid value: 1: must be a string; put it in quotes",
            ),
            (json!({"containers": [null]}), "spec.containers[0]: Invalid value: null: must be a map"),
            (
                json!({"selector": {"matchLabels": {"a": null}}}),
                "spec.selector.matchLabels[a]: Invalid value: null: must be a string",
            ),
            (json!("x"), r#"spec: Invalid value: "x": must be a map"#),
            (
                json!({"clashPolicy": "Foo"}),
                r#"spec.clashPolicy: Unsupported value: "Foo": supported values: "Refuse", "Skip""#,
            ),
            (
                json!({"containers": [{"podInjectPolicy": "Foo"}]}),
                r#"spec.containers[0].podInjectPolicy: Unsupported value: "Foo": supported values: "BeforeAppContainer", "AfterAppContainer""#,
            ),
            (json!({"containers": [{"resources": {"limits": {"cpu": 0.5, "memory": "1Gi"}}, "image": null}]}), ""),
        ];
        for (spec, expected) in cases {
            assert_eq!(checked(&spec).0, expected, "{spec}");
        }
    }

    #[test]
    fn unknown_fields_are_warned_about_with_what_was_meant() {
        const KEPT: &str = "; it is kept, but an API server that does not know it drops it from the pods";
        let cases = [
            (json!({"containers": [{"comand": []}]}), r#""spec.containers[0].comand" (did you mean "command"?)"#),
            (
                json!({"containers": [{"imagePullPolicyy": ""}]}),
                r#""spec.containers[0].imagePullPolicyy" (did you mean "imagePullPolicy"?)"#,
            ),
            (
                json!({"initContainers": [{"env": [{"vlaue": ""}]}]}),
                r#""spec.initContainers[0].env[0].vlaue" (did you mean "value"?)"#,
            ),
            (json!({"volumes": [{"emptydir": {}}]}), r#""spec.volumes[0].emptydir" (did you mean "emptyDir"?)"#),
            (
                json!({"containers": [{"shareVolumesPolicy": {}}]}),
                r#""spec.containers[0].shareVolumesPolicy" (did you mean "shareVolumePolicy"?)"#,
            ),
            (json!({"containers": [{"somethingElse": 1}]}), r#""spec.containers[0].somethingElse""#),
            (json!({"contaners": []}), r#""spec.contaners" (did you mean "containers"?)"#),
        ];
        for (spec, expected) in cases {
            assert_eq!(checked(&spec), (String::new(), vec![format!("unknown field {expected}{KEPT}")]), "{spec}");
        }
    }
}
