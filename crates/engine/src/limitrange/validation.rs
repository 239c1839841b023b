//! What makes a `ClusterLimitRange` wrong. What is accepted here compiles: it is the compiler that says what is wrong.

use std::sync::LazyLock;

use admission::field::ErrorList;
use admission::registry::{Resource, Rule, Scope};
use admission::{Findings, Operation, Request, Validating};
use serde_json::Value;

use super::api::{ClusterLimitRange, GROUP, KIND, PLURAL, VERSION};
use super::compiled::CompiledRange;
use crate::schema::{KindShape, UnknownField};
use crate::snapshot::Snapshot;

const RESOURCES: &[Resource] = &[Resource { group: GROUP, version: VERSION, resource: PLURAL, kind: KIND }];

/// When the validation is called.
pub const RULE: Rule = Rule {
    scope: Scope::Cluster,
    ..Rule::new(concat!("clusterlimitrange.policy.", api_domain!()), RESOURCES, &[Operation::Create, Operation::Update])
};

/// The shape of an object.
static SHAPE: LazyLock<KindShape> = LazyLock::new(|| KindShape::of(KIND));

/// Every field of an object that is not known, in words.
pub fn unknown_fields(object: &Value, word: impl Fn(&UnknownField<'static>) -> String) -> Vec<String> {
    SHAPE.unknown_fields(object, word)
}

/// Validates a `ClusterLimitRange` when it is created and when it changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClusterLimitRangeValidation;

impl Validating<Snapshot> for ClusterLimitRangeValidation {
    type Object<'a> = Value;

    fn create(&self, object: &Value, request: &Request<'_, Value>, _: &Snapshot, findings: &mut Findings) {
        findings.of_new(object, request, |findings| judge(object, findings));
    }

    fn update(&self, object: &Value, old: &Value, _: &Request<'_, Value>, _: &Snapshot, findings: &mut Findings) {
        findings.of_changed_spec(object, old, |findings| judge(object, findings));
    }
}

fn judge(object: &Value, findings: &mut Findings) {
    if let Err(errors) = compile(object) {
        findings.errors.extend(errors);
    }
}

/// Makes the form that decides.
///
/// # Errors
/// Everything that is wrong, with its field.
pub fn compile(object: &Value) -> Result<CompiledRange, ErrorList> {
    SHAPE.decode::<ClusterLimitRange>(object).and_then(|object| CompiledRange::compile(&object))
}
