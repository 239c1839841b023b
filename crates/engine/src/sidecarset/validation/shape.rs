//! Unknown fields, and values of the wrong type.
//!
//! The API server checks the schema of a `SidecarSet` but not what is inside a container or a volume, which it keeps as written.
//! Here they are compared with the pod API's own schema. An unknown field may be of a newer API, so it is a fault only where the request
//! asks for strict field validation, as it is in a pod.

use std::sync::LazyLock;

use admission::field::{Error, ErrorList, Path};
use admission::{Request, Text};
use serde::Deserialize;
use serde_json::Value;

use crate::schema::{SchemaType, UnknownField};
use crate::sidecarset::api::KIND;

/// The shape of a set.
static SET: LazyLock<SchemaType> = LazyLock::new(set_shape);

/// Unknown fields that are listed one by one. A suggestion takes time, and an object may have very many.
const UNKNOWN_FIELDS_TOLD: usize = 20;

/// How a request wants unknown fields to be treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are errors: the default of kubectl.
    Strict,
    /// They are warnings: the default of the API server.
    #[default]
    Warn,
}

impl FieldValidation {
    /// What the options of the request ask for.
    pub fn of<O>(request: &Request<'_, O>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Options<'a> {
            #[serde(borrow)]
            field_validation: Text<'a>,
        }
        let options = request.options.and_then(|raw| serde_json::from_str::<Options<'_>>(raw.get()).ok());
        if options.is_some_and(|options| options.field_validation.as_str() == "Strict") {
            Self::Strict
        } else {
            Self::Warn
        }
    }
}

/// Compares `spec` with what is known about it.
pub fn check(
    spec: &Value,
    path: &Path,
    validation: FieldValidation,
    errors: &mut ErrorList,
    warnings: &mut Vec<String>,
) {
    let mut unknown = Vec::new();
    if let Some(shape) = SET.field("spec") {
        shape.check(spec, path, errors, &mut unknown);
    }
    match validation {
        FieldValidation::Strict => errors.extend(unknown.iter().take(UNKNOWN_FIELDS_TOLD).map(refused)),
        FieldValidation::Warn => warnings.extend(told(&unknown, UnknownField::warning)),
    }
}

fn refused(field: &UnknownField<'_>) -> Error {
    let detail = format!("unknown field{}; --validate=warn keeps a field of a newer Kubernetes", field.suggestion());
    Error::forbidden(field.path(), detail)
}

/// Every field of a whole set that is known neither to the API nor to the pod's, in words.
pub fn unknown_fields(set: &Value, word: impl Fn(&UnknownField<'static>) -> String) -> Vec<String> {
    told(&SET.unknown_fields(set), word)
}

/// Unknown fields in words, and how many more there are.
pub fn told<'s>(unknown: &[UnknownField<'s>], word: impl Fn(&UnknownField<'s>) -> String) -> Vec<String> {
    let (told, left_out) = unknown.split_at(unknown.len().min(UNKNOWN_FIELDS_TOLD));
    let mut words: Vec<String> = told.iter().map(word).collect();
    if !left_out.is_empty() {
        words.push(format!("{} more unknown fields", left_out.len()));
    }
    words
}

/// Whether the pod API knows the field of a volume.
pub fn is_volume_field(name: &str) -> bool {
    let Some(SchemaType::List(item)) = SET.field("spec").and_then(|spec| spec.field("volumes")) else { return false };
    item.field(name).is_some()
}

fn set_shape() -> SchemaType {
    // A shape without fields would call every field unknown; to know nothing is to allow all.
    let mut shape = SchemaType::of_kind(KIND);
    let SchemaType::Object { fields, .. } = &mut shape else { return shape };
    fields.insert("metadata".to_owned(), SchemaType::of_kind("ObjectMeta"));
    let (container, volume) = (SchemaType::of_kind("Container").open(), SchemaType::of_kind("Volume").open());
    if let Some(SchemaType::Object { fields, .. }) = fields.get_mut("spec") {
        for (list, of_pod) in [("containers", &container), ("initContainers", &container), ("volumes", &volume)] {
            if let (Some(SchemaType::List(item)), SchemaType::Object { fields: of_pod, .. }) =
                (fields.get_mut(list), of_pod)
                && let SchemaType::Object { fields: own, .. } = item.as_mut()
            {
                own.extend(of_pod.clone());
            }
        }
    }
    if let Some(SchemaType::Object { fields, .. }) = fields.get_mut("spec")
        && let Some(SchemaType::List(entry)) = fields.get_mut("appContainers")
        && let (SchemaType::Object { fields: own, .. }, SchemaType::Object { fields: of_pod, .. }) =
            (entry.as_mut(), &container)
    {
        let lists = of_pod.iter().filter(|(field, _)| matches!(field.as_str(), "env" | "volumeMounts"));
        own.extend(lists.map(|(field, shape)| (field.clone(), shape.clone())));
    }
    shape
}

#[cfg(test)]
mod tests {
    use admission::field::{ErrorList, Path};
    use serde_json::{Value, json};

    use super::{FieldValidation, check};

    fn checked(spec: &Value) -> (String, Vec<String>) {
        let (mut errors, mut warnings) = (ErrorList::new(), Vec::new());
        check(spec, &Path::new("spec"), FieldValidation::Warn, &mut errors, &mut warnings);
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
                "spec.containers[0].ports[0].containerPort: Invalid value: 80.5: must be a whole number from -2147483648 to 2147483647",
            ),
            (
                json!({"order": 4_294_967_296_i64}),
                "spec.order: Invalid value: 4294967296: must be a whole number from -2147483648 to 2147483647",
            ),
            (
                json!({"volumes": [{"configMap": {"items": [{"mode": "0644"}]}}]}),
                r#"spec.volumes[0].configMap.items[0].mode: Invalid value: "0644": must be a whole number from -2147483648 to 2147483647"#,
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
        const KEPT: &str = "it is kept, but an API server that does not know it drops it from the pods";
        const DROPPED: &str = "an API server drops it";
        let cases = [
            (json!({"containers": [{"comand": []}]}), r#""spec.containers[0].comand" (did you mean "command"?)"#, KEPT),
            (
                json!({"containers": [{"imagePullPolicyy": ""}]}),
                r#""spec.containers[0].imagePullPolicyy" (did you mean "imagePullPolicy"?)"#,
                KEPT,
            ),
            (
                json!({"initContainers": [{"env": [{"vlaue": ""}]}]}),
                r#""spec.initContainers[0].env[0].vlaue" (did you mean "value"?)"#,
                KEPT,
            ),
            (json!({"volumes": [{"emptydir": {}}]}), r#""spec.volumes[0].emptydir" (did you mean "emptyDir"?)"#, KEPT),
            (
                json!({"containers": [{"shareVolumesPolicy": {}}]}),
                r#""spec.containers[0].shareVolumesPolicy" (did you mean "shareVolumePolicy"?)"#,
                KEPT,
            ),
            (json!({"containers": [{"somethingElse": 1}]}), r#""spec.containers[0].somethingElse""#, KEPT),
            (json!({"contaners": []}), r#""spec.contaners" (did you mean "containers"?)"#, DROPPED),
            (json!({"selector": {"app": "web"}}), r#""spec.selector.app" (did you mean "matchLabels[app]"?)"#, DROPPED),
            (
                json!({"namespaceSelector": {"example.com/team": "a"}}),
                r#""spec.namespaceSelector.example.com/team" (did you mean "matchLabels[example.com/team]"?)"#,
                DROPPED,
            ),
            (
                json!({"selector": {"matchLabel": {}}}),
                r#""spec.selector.matchLabel" (did you mean "matchLabels"?)"#,
                DROPPED,
            ),
            // Of ours, in a container: the API server keeps what is beside it, and not what is in it.
            (
                json!({"containers": [{"upgradeStrategy": {"upgradeTyp": ""}}]}),
                r#""spec.containers[0].upgradeStrategy.upgradeTyp" (did you mean "upgradeType"?)"#,
                DROPPED,
            ),
        ];
        for (spec, expected, fate) in cases {
            assert_eq!(checked(&spec), (String::new(), vec![format!("unknown field {expected}; {fate}")]), "{spec}");
        }
    }
}
