//! Typing errors in what is rendered. A sidecar in the pod hides them: a pod whose `containers` are misspelt has one container
//! after all, and only the API server, if that, reports what happened to the others.

use std::sync::LazyLock;

use admission::field::{Path, quote};
use serde_json::Value;

use super::templates::{FoundTemplate, FoundTemplates};
use crate::input::{Identity, is_template};
use crate::validate::Validate;
use engine::pod::select::SKIP_ANNOTATION;
use engine::schema::{SchemaType, UnknownField};
use engine::sidecarset::validation::{template, told};
use engine::snapshot::EXCLUDE_LABEL;
use engine::suggest::suggest;

/// Faults that are listed one by one.
const FAULTS_TOLD: usize = 20;

/// What is wrong with an object as it is written.
#[derive(Default)]
pub struct Typing {
    /// Fields of a kind of Kubernetes that it does not have: an API server refuses them, as kubectl sends them.
    pub unknown: Vec<String>,
    /// Values of another type than the field's: what is decoded is refused for the first of them, without its place.
    pub wrong_types: Vec<String>,
    /// Everything else, and unknown fields where they are not to be errors.
    pub warnings: Vec<String>,
}

/// The kinds whose every field is known.
static KINDS: LazyLock<Vec<(&str, &str, SchemaType)>> = LazyLock::new(|| {
    let kinds = [
        ("v1", "Pod"),
        ("v1", "PodTemplate"),
        ("v1", "ReplicationController"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
    ];
    kinds.into_iter().map(|(api_version, kind)| (api_version, kind, SchemaType::of_kind(kind))).collect()
});

static CONTAINER: LazyLock<SchemaType> = LazyLock::new(|| SchemaType::of_kind("Container"));

/// Looks for typing errors in an object. `after` is the object with what was added to it.
pub fn check(identity: &Identity, object: &Value, after: &Value, found: &FoundTemplates, validate: Validate) -> Typing {
    let mut typing = fields(identity, object, found, validate);
    typing.warnings.extend(helm_template(object, found));
    for template in &found.templates {
        let at = template.spec_path();
        let Some(spec) = object.pointer(&format!("{}/spec", template.pointer)) else {
            typing.warnings.extend((!found.by_shape).then(|| format!("{at}: Required value")));
            continue;
        };
        let others = volumes(after.pointer(&format!("{}/spec", template.pointer)), "/volumes", "/name").chain(volumes(
            object.get("spec"),
            "/volumeClaimTemplates",
            "/metadata/name",
        ));
        let faults = template::faults(spec, &at, others, !found.by_shape);
        let left_out = faults.len().saturating_sub(FAULTS_TOLD);
        typing.warnings.extend(faults.into_iter().take(FAULTS_TOLD).map(|error| error.to_string()));
        if left_out > 0 {
            typing.warnings.push(format!("{left_out} more errors in {at} are not listed"));
        }
        misplaced(object, template, &identity.kind, &mut typing.warnings);
    }
    typing
}

/// How the templates of an object were found, where its kind does not say it: the kind may be misspelt.
pub fn by_shape(identity: &Identity, found: &FoundTemplates) -> Option<String> {
    if !found.by_shape || found.templates.is_empty() {
        return None;
    }
    let of_version = KINDS.iter().filter(|(api_version, ..)| *api_version == identity.api_version);
    let meant = suggest(&identity.kind, of_version.map(|(_, kind, _)| *kind));
    let meant = meant.map(|kind| format!(" (did you mean kind {}?)", quote(kind))).unwrap_or_default();
    Some(format!("pod templates found by their shape: {}{meant}", found.paths().join(", ")))
}

fn fields(identity: &Identity, object: &Value, found: &FoundTemplates, validate: Validate) -> Typing {
    let known =
        KINDS.iter().find(|(api_version, kind, _)| (*api_version, *kind) == (&identity.api_version, &identity.kind));
    if let Some((_, _, shape)) = known {
        let (errors, unknown) = shape.compared(object);
        let wrong_types: Vec<String> = errors.into_iter().take(FAULTS_TOLD).map(|error| error.to_string()).collect();
        return match validate {
            Validate::Strict => {
                Typing { unknown: told(&unknown, ToString::to_string), wrong_types, ..Typing::default() }
            }
            Validate::Warn => {
                Typing { warnings: told(&unknown, UnknownField::warning), wrong_types, ..Typing::default() }
            }
        };
    }
    // Of another kind only the containers have fields that are known: a template may hold more than a pod has.
    let (mut errors, mut unknown) = (admission::field::ErrorList::new(), Vec::new());
    for template in &found.templates {
        for list in ["initContainers", "containers"] {
            let items = object.pointer(&format!("{}/spec/{list}", template.pointer)).and_then(Value::as_array);
            for (index, item) in items.into_iter().flatten().enumerate() {
                CONTAINER.check(item, &template.spec_path().child(list).index(index), &mut errors, &mut unknown);
            }
        }
    }
    let wrong_types = errors.into_iter().take(FAULTS_TOLD).map(|error| error.to_string()).collect();
    Typing { warnings: told(&unknown, ToString::to_string), wrong_types, ..Typing::default() }
}

fn volumes<'v>(of: Option<&'v Value>, list: &str, name: &'static str) -> impl Iterator<Item = &'v str> {
    let list = of.and_then(|value| value.pointer(list)).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(move |volume| volume.pointer(name)?.as_str())
}

impl FoundTemplate {
    fn spec_path(&self) -> Path {
        self.path.as_ref().map_or_else(|| Path::new("spec"), |path| path.child("spec"))
    }

    /// The metadata of the pods.
    fn metadata_path(&self) -> Path {
        self.path.as_ref().map_or_else(|| Path::new("metadata"), |path| path.child("metadata"))
    }
}

/// The first text that Helm would fill in, where it names something: it is legal YAML, but not what an API server gets. Other texts
/// may hold templates of another tool.
fn helm_template(object: &Value, found: &FoundTemplates) -> Option<String> {
    let metadata = ["name", "generateName", "namespace"]
        .into_iter()
        .map(|field| (object.pointer(&format!("/metadata/{field}")), Path::new("metadata").child(field)));
    let containers = found.templates.iter().flat_map(|template| {
        ["initContainers", "containers"].into_iter().flat_map(move |list| {
            let items = object.pointer(&format!("{}/spec/{list}", template.pointer)).and_then(Value::as_array);
            items.into_iter().flatten().enumerate().flat_map(move |(index, item)| {
                let path = template.spec_path().child(list).index(index);
                ["name", "image"].map(|field| (item.get(field), path.child(field)))
            })
        })
    });
    metadata.chain(containers).find_map(|(value, path)| {
        let text = value?.as_str().filter(|text| is_template(text))?;
        Some(format!("{path}: {} looks like a Helm template: run `helm template` first", quote(text)))
    })
}

/// What pods say about injection, where it is not read: on the object around the template, or as a label.
fn misplaced(object: &Value, template: &FoundTemplate, kind: &str, warnings: &mut Vec<String>) {
    let annotations = template.metadata_path().child("annotations").key(SKIP_ANNOTATION);
    let has = |at: &str, list: &str, key: &str| {
        let metadata = object.pointer(&format!("{at}/metadata/{list}")).and_then(Value::as_object);
        metadata.is_some_and(|entries| entries.contains_key(key))
    };
    let pod = template.pointer.as_str();
    let (mut around, mut place) = (vec![("", "metadata".to_owned())], String::new());
    let mut end = 0;
    for step in pod.split('/').skip(1) {
        end += 1 + step.len();
        if let Some(at) = pod.get(..end).filter(|at| *at != pod) {
            place = if place.is_empty() { step.to_owned() } else { format!("{place}.{step}") };
            around.push((at, format!("{place}.metadata")));
        }
    }
    if !pod.is_empty() && !has(pod, "annotations", SKIP_ANNOTATION) {
        for (at, place) in &around {
            if has(at, "annotations", SKIP_ANNOTATION) {
                warnings.push(format!(
                    "{place}.annotations[{SKIP_ANNOTATION}] is not read there, and the pods of the {kind} do not opt out: write it as \
                     {annotations}"
                ));
            }
        }
    }
    let places = around.iter().map(|(at, _)| *at).chain((!pod.is_empty()).then_some(pod));
    for at in places {
        if has(at, "labels", SKIP_ANNOTATION) {
            warnings.push(format!(
                "{} is an annotation, and is not read as a label: write it as {annotations}",
                quote(SKIP_ANNOTATION)
            ));
        }
        if has(at, "labels", EXCLUDE_LABEL) || has(at, "annotations", EXCLUDE_LABEL) {
            warnings.push(format!(
                "{} is a label of namespaces, and is not read here: to leave out one pod, write {annotations}: \"true\"",
                quote(EXCLUDE_LABEL)
            ));
        }
    }
}
