//! One object: its pod, what the webhooks make of that pod, and the same change in the object.

use admission::Reason;
use serde_json::{Map, Value, json};

use super::rendered::{Note, Rendered, Unprintable, title};
use super::templates::{FoundTemplate, FoundTemplates};
use super::typing::{self, Typing};
use super::unchanged::why;
use crate::cli::offline::OfflineModel;
use crate::cli::streams::CommandOutcome;
use crate::input::{Identity, Manifest, identity};
use crate::validate::Validate;
use engine::offline::admit::{self, Admitted, Creation, Patch, Status};
use engine::pod::older::{self, TakenOut};
use engine::reasons;
use engine::yaml::steps;

/// It has no namespace.
const NAMESPACE: &str = "Namespace";

/// What decides beside the snapshot.
#[derive(Clone, Copy)]
pub struct RenderRules<'a> {
    /// Namespace of objects without one.
    pub namespace: &'a str,
    /// What is done about unknown fields.
    pub validate: Validate,
}

/// Renders an object; without a pod template it stays as it is.
pub fn render(manifest: Manifest, rules: RenderRules<'_>, model: &OfflineModel) -> Result<Rendered, Box<Unprintable>> {
    let Manifest { source, value, .. } = manifest;
    let identity = match identity(&value) {
        Ok(identity) => identity,
        Err(error) => return Err(Box::new(Unprintable::bad_input(source, "object".to_owned(), error.to_string()))),
    };
    let found = FoundTemplates::of(&identity, &value);
    let namespace = identity.namespace.clone().unwrap_or_else(|| rules.namespace.to_owned());
    let has_pods = !found.templates.is_empty() || !found.passed_over.is_empty() || found.elsewhere.is_some();
    let is_left_to_plugins = !has_pods && admit::is_left_to_plugins(&model.registry, &value, &model.snapshot);
    let has_namespace = has_pods || (is_left_to_plugins && admit::is_in_a_namespace(&model.registry, &value));
    let title = title(&identity, has_namespace.then_some(namespace.as_str()), &value);
    let mut said = Said { typing: found.passed_over.clone(), ..Said::default() };
    said.notes.extend(found.elsewhere.clone().map(Note::Other));
    said.notes.extend(typing::by_shape(&identity, &found).map(Note::Other));
    for template in &found.templates {
        said.prefix = template.path.as_ref().filter(|_| found.templates.len() > 1).map(|path| format!("{path}: "));
        let pod =
            Injected { value: &value, template, identity: &identity, namespace: &namespace, by_shape: found.by_shape };
        pod.admit(model, &mut said);
    }
    if has_claims(&value) && admit::decides_on_claims(&model.snapshot) {
        let text =
            "spec.volumeClaimTemplates are not rendered: plugins and ranges decide on each claim when it is created";
        said.note(text.to_owned());
    }
    if is_left_to_plugins {
        let namespace = if identity.kind == NAMESPACE { "" } else { namespace.as_str() };
        said.left_to_plugins(&Creation { namespace, object: &value, questions: model.questions }, model);
    }
    let mut after = value.clone();
    if let Err(error) = (Patch { operations: said.patch.clone() }).apply(&mut after) {
        said.fail(CommandOutcome::BadInput, error.to_string());
    }
    said.typed(typing::check(&identity, &value, &after, &found, rules.validate));
    let Said { patch, warnings, typing, notes, failures, reasons, is_replaced, field, .. } = said;
    if let Some(outcome) = failures.iter().map(|(outcome, _)| *outcome).max() {
        let message = failures.into_iter().map(|(_, message)| message).collect::<Vec<_>>().join("; ");
        return Err(Box::new(Unprintable { source, title, message, field, warnings, typing, reasons, outcome }));
    }
    Ok(Rendered {
        source,
        title,
        identity,
        before: value,
        after,
        patch,
        warnings,
        typing,
        has_pods,
        reasons,
        is_replaced,
        notes,
    })
}

/// Whether an object makes claims beside its pods, as a `StatefulSet` does.
fn has_claims(object: &Value) -> bool {
    object.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array).is_some_and(|claims| !claims.is_empty())
}

/// What came of the pods of an object.
#[derive(Default)]
struct Said {
    patch: Vec<Value>,
    warnings: Vec<String>,
    typing: Vec<String>,
    notes: Vec<Note>,
    is_replaced: bool,
    failures: Vec<(CommandOutcome, String)>,
    reasons: Vec<Reason>,
    /// In front of what is said, where there are several templates.
    prefix: Option<String>,
    /// The field of the object that the first failure is about, by its steps; empty where that is not known.
    field: Vec<String>,
}

impl Said {
    fn text(&self, text: &str) -> String {
        format!("{}{text}", self.prefix.as_deref().unwrap_or_default())
    }

    fn note(&mut self, text: String) {
        self.notes.push(Note::Other(text));
    }

    /// What plugins and ranges make of an object without pods.
    fn left_to_plugins(&mut self, creation: &Creation<'_>, model: &OfflineModel) {
        match admit::create(&model.registry, creation, &model.snapshot) {
            Ok(Admitted::Allowed(allowed)) => {
                let plugins = allowed.plugins.map(|plugins| format!("admission plugins: {plugins}"));
                self.notes.extend(plugins.map(Note::Other));
                self.patch.extend(allowed.patch);
                self.warnings.extend(allowed.warnings);
            }
            Ok(Admitted::Refused { status, warnings, is_as_sent, .. }) => {
                self.warnings.extend(warnings);
                self.locate("", &status, is_as_sent);
                self.fail(CommandOutcome::Refused, status.message.clone());
            }
            Err(error) => self.fail(CommandOutcome::BadInput, error.to_string()),
        }
    }

    /// Admission would leave the older form, with this reason.
    fn replaced(&mut self, sentences: &[String]) {
        if sentences.is_empty() {
            return;
        }
        self.is_replaced = true;
        self.reasons.push(reasons::OUTDATED);
        let notes = sentences.iter().map(|sentence| self.text(&format!("{}: {sentence}", reasons::OUTDATED)));
        let notes: Vec<Note> = notes.map(Note::Other).collect();
        self.notes.extend(notes);
    }

    /// Takes what is wrong with how the object is written.
    fn typed(&mut self, typing: Typing) {
        let Typing { unknown, wrong_types, warnings } = typing;
        if !self.failures.iter().any(|(outcome, _)| *outcome == CommandOutcome::BadInput) {
            self.typing.extend(wrong_types);
            self.typing.extend(warnings);
        } else if !wrong_types.is_empty() {
            self.fail_only(wrong_types.join(", "));
        }
        if !unknown.is_empty() {
            // What else is wrong with an object that is not understood may only follow from it, and kubectl says no more either.
            self.fail_only(unknown.join(", "));
        }
    }

    /// Takes note of the field that the first refusal is about, in the template at this pointer. Where the refused pod has more
    /// elements than the template, the field is known up to its list.
    fn locate(&mut self, at: &str, status: &Status, is_as_sent: bool) {
        let mut fields = status.details.causes.iter().map(|cause| cause.field.as_str());
        let Some(field) = fields.find(|field| !field.is_empty()).filter(|_| self.failures.is_empty()) else { return };
        let known = if is_as_sent { field } else { field.split('[').next().unwrap_or_default() };
        let steps = at.split('/').filter(|step| !step.is_empty()).chain(steps(known));
        self.field = steps.map(str::to_owned).collect();
    }

    fn fail_only(&mut self, message: String) {
        (self.failures, self.field) = (vec![(CommandOutcome::BadInput, message)], Vec::new());
    }

    fn fail(&mut self, outcome: CommandOutcome, message: String) {
        self.failures.push((outcome, message));
    }
}

/// One pod template of an object.
struct Injected<'a> {
    value: &'a Value,
    template: &'a FoundTemplate,
    identity: &'a Identity,
    namespace: &'a str,
    by_shape: bool,
}

impl Injected<'_> {
    fn admit(&self, model: &OfflineModel, said: &mut Said) {
        let at = self.template.pointer.as_str();
        if self.value.pointer(at).is_none_or(Value::is_null) {
            return said.typing.push(format!("{} is missing, so there is no pod to check", field(at)));
        }
        let pod = match pod(self.value, self.template, self.identity, self.namespace) {
            Ok(pod) => pod,
            Err(message) => return self.unreadable(&message, said),
        };
        let (stripped, taken_out) = match without_older_forms(&pod, self.namespace, model) {
            Ok(stripped) => stripped,
            Err(message) => return said.fail(CommandOutcome::BadInput, said.text(&message)),
        };
        said.warnings.extend(taken_out.left.iter().map(|sentence| said.text(sentence)).collect::<Vec<_>>());
        let creation = Creation { namespace: self.namespace, object: &stripped, questions: model.questions };
        match admit::create(&model.registry, &creation, &model.snapshot) {
            Ok(Admitted::Allowed(allowed)) => {
                said.reasons.extend(allowed.reason);
                if let Some(plugins) = &allowed.plugins {
                    said.note(said.text(&format!("admission plugins: {plugins}")));
                }
                let patch = in_object([taken_out.patch, allowed.patch].concat(), at, self.value);
                said.replaced(&taken_out.replaced);
                if let Some(reason) = allowed.reason.filter(|_| patch.is_empty() && allowed.warnings.is_empty()) {
                    let why = why(reason, &pod, self.namespace, &model.snapshot);
                    said.notes.push(match self.template.path.as_ref().filter(|_| said.prefix.is_some()) {
                        Some(of) => Note::Other(format!("{of} is unchanged: {why}")),
                        None => Note::Unchanged(why),
                    });
                }
                said.patch.extend(patch);
                said.warnings.extend(allowed.warnings.iter().map(|warning| said.text(warning)).collect::<Vec<_>>());
            }
            Ok(Admitted::Refused { reason: Reason::UNDECODABLE, status, .. }) => self.unreadable(&status.message, said),
            Ok(Admitted::Refused { reason, status, warnings, is_as_sent }) => {
                said.reasons.push(reason);
                said.locate(at, &status, is_as_sent && taken_out.patch.is_empty());
                said.warnings.extend(warnings.iter().map(|warning| said.text(warning)).collect::<Vec<_>>());
                said.fail(CommandOutcome::Refused, said.text(&status.message));
            }
            Err(error) => said.fail(CommandOutcome::BadInput, said.text(&error.to_string())),
        }
    }

    /// A template of a kind that is known must be one. What only looks like one need not.
    fn unreadable(&self, message: &str, said: &mut Said) {
        if self.by_shape {
            let text = format!("the template is left as it is: it is not the template of a pod: {message}");
            said.warnings.push(said.text(&text));
        } else {
            said.fail(CommandOutcome::BadInput, said.text(message));
        }
    }
}

/// A JSON pointer as a field path.
fn field(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

/// The pod as its controller would create it: metadata and spec of the template, in the namespace of the object, which owns it, with
/// a name that the API server is to complete.
pub fn pod(value: &Value, template: &FoundTemplate, identity: &Identity, namespace: &str) -> Result<Value, String> {
    let at = template.pointer.as_str();
    let Some(template @ Value::Object(_)) = value.pointer(at) else {
        return Err(format!("{} must be an object with metadata and spec", field(at)));
    };
    let mut metadata = match template.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err(format!("{} must be an object", field(&format!("{at}/metadata")))),
    };
    metadata.insert("namespace".to_owned(), namespace.into());
    if !at.is_empty() {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), format!("{}-", identity.name).into());
        // The pods of a CronJob are of its Jobs.
        let kind = if identity.kind == "CronJob" { "Job" } else { identity.kind.as_str() };
        let (api_version, name) = (&identity.api_version, &identity.name);
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "", "controller": true});
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    if let (Value::Object(pod), Value::Object(template)) = (&mut pod, template) {
        // Whatever else a newer API has beside metadata and spec.
        let own = |name: &str| matches!(name, "metadata" | "apiVersion" | "kind");
        for (name, field) in template.iter().filter(|(name, _)| !own(name)) {
            pod.insert(name.clone(), field.clone());
        }
    }
    Ok(pod)
}

/// The pod without what its record says is of older forms of its sets, and what was taken out.
fn without_older_forms(pod: &Value, namespace: &str, model: &OfflineModel) -> Result<(Value, TakenOut), String> {
    let mut taken_out = older::take_out(pod, namespace, &model.snapshot).map_err(|error| error.to_string())?;
    let mut stripped = pod.clone();
    let patch = Patch { operations: taken_out.patch };
    patch.apply(&mut stripped).map_err(|error| error.to_string())?;
    taken_out.patch = patch.operations;
    Ok((stripped, taken_out))
}

/// The patch of the pod as a patch of the object whose template is at `at`.
fn in_object(patch: Vec<Value>, at: &str, object: &Value) -> Vec<Value> {
    let metadata = format!("{at}/metadata");
    let mut moved: Vec<Value> = patch.into_iter().map(|operation| below(operation, at)).collect();
    let touched = moved.iter().any(|operation| {
        operation.get("path").and_then(Value::as_str).is_some_and(|path| path.starts_with(&format!("{metadata}/")))
    });
    // The pod had metadata, its template need not have any.
    if touched && object.pointer(&metadata).is_none_or(Value::is_null) {
        moved.insert(0, json!({"op": "add", "path": metadata, "value": {}}));
    }
    moved
}

fn below(mut operation: Value, at: &str) -> Value {
    for field in ["path", "from"] {
        if let Some(Value::String(pointer)) = operation.get_mut(field) {
            pointer.insert_str(0, at);
        }
    }
    operation
}
