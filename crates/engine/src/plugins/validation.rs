//! What makes an `AdmissionPlugin` wrong. What is accepted here compiles: it is the compiler that says what is wrong.

use std::sync::LazyLock;

use admission::field::{Error, ErrorList, Path};
use admission::registry::{Resource, Rule, Scope};
use admission::{Findings, Operation, Request, Validating};
use serde_json::Value;

use super::api::{AdmissionPlugin, GROUP, KIND, PLURAL, VERSION};
use super::compiled::{CompiledPlugin, Settings};
use super::conflict;
use super::placement::MAX_DEFAULT_TOLERATIONS;
use crate::schema::{KindShape, UnknownField};
use crate::snapshot::Snapshot;

const RESOURCES: &[Resource] = &[Resource { group: GROUP, version: VERSION, resource: PLURAL, kind: KIND }];

/// When the validation is called.
pub const RULE: Rule = Rule {
    scope: Scope::Cluster,
    ..Rule::new(concat!("admissionplugin.policy.", api_domain!()), RESOURCES, &[Operation::Create, Operation::Update])
};

/// The shape of an object.
static SHAPE: LazyLock<KindShape> = LazyLock::new(|| KindShape::of(KIND));

/// Every field of an object that is not known, in words.
pub fn unknown_fields(object: &Value, word: impl Fn(&UnknownField<'static>) -> String) -> Vec<String> {
    SHAPE.unknown_fields(object, word)
}

/// Validates an `AdmissionPlugin` when it is created and when it changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdmissionPluginValidation;

impl Validating<Snapshot> for AdmissionPluginValidation {
    type Object<'a> = Value;

    fn create(&self, object: &Value, request: &Request<'_, Value>, cluster: &Snapshot, findings: &mut Findings) {
        findings.of_new(object, request, |findings| judge(object, None, cluster, findings));
    }

    fn update(&self, object: &Value, old: &Value, _: &Request<'_, Value>, cluster: &Snapshot, findings: &mut Findings) {
        findings.of_changed_spec(object, old, |findings| {
            let plugin = |object: &Value| object.pointer("/spec/plugin").cloned().unwrap_or_default();
            if plugin(object) != plugin(old) {
                let (path, detail) =
                    (Path::new("spec").child("plugin"), "field is immutable; write another AdmissionPlugin");
                findings.errors.push(Error::invalid(&path, &*said(&plugin(object)), detail));
            }
            judge(object, Some(old), cluster, findings);
        });
    }
}

fn said(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn judge(object: &Value, old: Option<&Value>, cluster: &Snapshot, findings: &mut Findings) {
    check_default_tolerations(object, old, findings);
    match compile(object) {
        Err(errors) => findings.errors.extend(errors),
        Ok(compiled) => {
            let others = cluster.plugins.iter().filter_map(|other| conflict::between(&compiled, other));
            findings.warnings.extend(others.take(CONFLICTS_TOLD));
            findings.warnings.extend(labels_of_musts(&compiled, cluster).take(CONFLICTS_TOLD));
        }
    }
}

/// Warnings about labels of nodes that take the place of labels by which pods have a set that none may go without.
fn labels_of_musts(plugin: &CompiledPlugin, cluster: &Snapshot) -> impl Iterator<Item = String> {
    let keys = match &plugin.settings {
        Settings::PodTopologyLabels(settings) if settings.labels => Some(&settings.keys),
        _ => None,
    };
    keys.into_iter().flat_map(|keys| {
        let musts = cluster.sets.iter().filter(|set| set.is_must());
        musts.filter_map(|set| {
            let requirement = set.selector.requirements().iter().find(|requirement| keys.contains(requirement.key()))?;
            Some(format!(
                "SidecarSet {:?} (spec.optOut: Denied) selects pods by the label {:?}, which pods get from their node once they are bound \
                 to it: one that was created without the set, or with it, may be selected or not from then on, and is checked no longer \
                 if it is not; use target: Annotations, or select by another label",
                set.name,
                requirement.key()
            ))
        })
    })
}

/// An older build let through more than may be written now.
fn check_default_tolerations(object: &Value, old: Option<&Value>, findings: &mut Findings) {
    const LIST: &str = "/spec/podTolerationRestriction/default";
    let (now, most) = (object.pointer(LIST), usize::from(MAX_DEFAULT_TOLERATIONS));
    let length = now.and_then(Value::as_array).map_or(0, Vec::len);
    if length > most && old.is_none_or(|old| old.pointer(LIST) != now) {
        let path = Path::new("spec").child("podTolerationRestriction").child("default");
        findings.errors.push(Error::too_many(&path, length, most));
    }
}

/// Contradictions that an author is warned of.
const CONFLICTS_TOLD: usize = 8;

/// Makes the form that decides.
///
/// # Errors
/// Everything that is wrong, with its field.
pub fn compile(object: &Value) -> Result<CompiledPlugin, ErrorList> {
    SHAPE.decode::<AdmissionPlugin>(object).and_then(|object| CompiledPlugin::compile(&object))
}
