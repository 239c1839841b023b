//! The body of a review: where it comes from, what it lacks, and which webhook serves it.

use std::io::Read;
use std::path::Path;
use std::{fmt, fs};

use admission::registry::{Entry, FailurePolicy, Phase};
use admission::{ObjectLimit, Registry};
use engine::offline::admit::find;
use engine::snapshot::Snapshot;
use engine::suggest::suggest;
use engine::yaml;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cli::render::templates::FoundTemplates;
use crate::cli::render::typing::{self, Typing};
use crate::input::{self, identity};
use crate::validate::Validate;

pub(super) fn read(file: &Path, stdin: &mut dyn Read) -> Result<(String, Vec<u8>), String> {
    let name = input::name(file);
    if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        stdin.read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
        return Ok((name, bytes));
    }
    let bytes = fs::read(file).map_err(|error| format!("{name}: {error}"))?;
    Ok((name, bytes))
}

/// JSON stays as it is, to the byte, so that the answer is the server's; anything else is read as YAML.
pub(super) fn as_json(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok() {
        return Ok(bytes);
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{name}: the file is not UTF-8 text"))?;
    let documents =
        yaml::read(&text).map_err(|error| format!("{name}:{}:{}: {}", error.line, error.column, error.detail()))?;
    match documents.as_slice() {
        [document] => Ok(document.value.to_string().into_bytes()),
        [] => Err(format!("{name}:1: it is empty, expected one AdmissionReview in JSON or YAML")),
        other => Err(format!("{name}:1: one AdmissionReview is expected, found {} documents", other.len())),
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an AdmissionReview")]
struct Kinded {
    #[serde(default)]
    kind: String,
    request: Option<RequestKind>,
}

#[derive(Deserialize)]
#[serde(expecting = "the request of an AdmissionReview")]
struct RequestKind {
    kind: Option<GroupVersionKind>,
}

#[derive(Deserialize)]
struct Operated {
    request: OperationAndObject,
}

#[derive(Deserialize)]
struct OperationAndObject {
    operation: String,
    object: Option<serde::de::IgnoredAny>,
}

/// Whether a review lacks the object that the API server sends with its operation.
pub(super) fn lacks_object(body: &[u8]) -> bool {
    let review = serde_json::from_slice::<Operated>(body);
    review.is_ok_and(|Operated { request: OperationAndObject { operation, object } }| {
        object.is_none() && matches!(operation.as_str(), "CREATE" | "UPDATE")
    })
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    request: WrittenObject<'a>,
}

#[derive(Deserialize)]
struct WrittenObject<'a> {
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Typing errors in the object of a review. A field that is not known may also be newer than this build. An object that is larger than
/// can be stored is not read: of it the reply says enough, and decoded it takes a hundred times its bytes.
pub(super) fn typing_of(body: &[u8]) -> Typing {
    let object = serde_json::from_slice::<Written<'_>>(body).ok().map(|review| review.request.object);
    let object = object.filter(|object| ObjectLimit::STORABLE.check(object).is_ok());
    let object = object.and_then(|object| serde_json::from_str::<Value>(object.get()).ok());
    let identified = object.as_ref().and_then(|object| Some((identity(object).ok()?, object)));
    identified.map_or_else(Typing::default, |(identity, object)| {
        typing::check(&identity, object, object, &FoundTemplates::of(&identity, object), Validate::Strict)
    })
}

#[derive(Deserialize)]
#[serde(expecting = "group, version and kind")]
struct GroupVersionKind {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

/// As in a manifest: `apps/v1 Deployment`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, kind } = self;
        if group.is_empty() { write!(out, "{version} {kind}") } else { write!(out, "{group}/{version} {kind}") }
    }
}

pub(super) fn default_entry<'r>(
    registry: &'r Registry<Snapshot>,
    name: &str,
    body: &[u8],
) -> Result<&'r Entry<Snapshot>, String> {
    let review: Kinded =
        serde_json::from_slice(body).map_err(|error| format!("{name}:1: not an AdmissionReview: {error}"))?;
    let request = match review {
        Kinded { request: Some(request), .. } => request,
        Kinded { kind, .. } if kind == "AdmissionReview" => return Err(format!("{name}:1: request is missing")),
        Kinded { kind, .. } if kind.is_empty() => {
            return Err(format!("{name}:1: kind is missing, expected \"AdmissionReview\""));
        }
        Kinded { kind, .. } => {
            let help = "for manifests use `outrider render`";
            return Err(format!("{name}:1: kind is {kind:?}, expected \"AdmissionReview\"; {help}"));
        }
    };
    let Some(of) = request.kind else {
        return Err(format!(
            "{name}:1: request.kind is missing, by which the webhook is found; choose a path with --path"
        ));
    };
    find(registry, Phase::Mutating, &of.group, &of.version, &of.kind).ok_or_else(|| {
        let paths = paths_for(&of, registry);
        if paths.is_empty() {
            return format!("{name}:1: nothing serves {of}: the API server does not call Outrider for it");
        }
        format!("{name}:1: no mutating webhook serves {of}; choose a path with --path\n{}", listed(&of, &paths))
    })
}

/// Paths of further entries for objects of the kind that exist while a plugin needs them: each is called by itself.
pub(super) fn also_called(registry: &Registry<Snapshot>, entry: &Entry<Snapshot>, kind: &str) -> Vec<String> {
    let Some(of) = entry.rule.resources.iter().find(|resource| resource.kind == kind && entry.rule.on_demand) else {
        return Vec::new();
    };
    let is_other = |other: &&Entry<Snapshot>| {
        let rule = &other.rule;
        other.path != entry.path
            && rule.on_demand
            && rule.failure_policy != FailurePolicy::Ignore
            && rule.has_kind(of.group, of.version, of.kind)
    };
    registry.entries().iter().filter(is_other).map(|other| other.path.clone()).collect()
}

/// Why there is no webhook for a review of this body under a path, and which paths there are for it.
pub(super) fn nothing_serves(path: &str, body: &[u8], registry: &Registry<Snapshot>) -> String {
    let of = serde_json::from_slice::<Kinded>(body).ok().and_then(|review| review.request?.kind);
    let paths = of.as_ref().map(|of| paths_for(of, registry)).unwrap_or_default();
    let all = registry.entries().iter().map(|entry| entry.path.as_str());
    // One that serves the object is meant before one that does not.
    let meant = suggest(path, paths.iter().copied()).or_else(|| suggest(path, all));
    let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    let known = match &of {
        Some(of) if paths.is_empty() => format!("nothing serves {of} either"),
        Some(of) => listed(of, &paths),
        None => "leave --path out, and the path follows from request.kind".to_owned(),
    };
    format!("nothing serves {path}{meant}\n{known}")
}

/// Paths that serve objects of this kind, those of its sub-resources included.
fn paths_for<'r>(of: &GroupVersionKind, registry: &'r Registry<Snapshot>) -> Vec<&'r str> {
    let fits = |wanted: &str, found: &str| wanted == "*" || wanted == found;
    let serves = |entry: &&Entry<Snapshot>| {
        let mut resources = entry.rule.resources.iter();
        resources.any(|it| fits(it.group, &of.group) && fits(it.version, &of.version) && fits(it.kind, &of.kind))
    };
    let mut paths: Vec<&str> = registry.entries().iter().filter(serves).map(|entry| entry.path.as_str()).collect();
    paths.sort_unstable();
    paths
}

fn listed(of: &GroupVersionKind, paths: &[&str]) -> String {
    format!("paths for {of}:\n  {}", paths.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_larger_than_can_be_stored_is_not_decoded_for_typing_errors() {
        let review = |values: usize| {
            let list = vec!["0"; values].join(",");
            format!(
                r#"{{"request":{{"object":{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"}},"spec":{{"hostNetwork":"yes","x":[{list}]}}}}}}}}"#
            )
        };
        let wrong_types = |values: usize| typing_of(review(values).as_bytes()).wrong_types.len();
        assert_eq!((wrong_types(10), wrong_types(ObjectLimit::STORABLE.values)), (1, 0));
    }
}
