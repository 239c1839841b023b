//! A kind in as few lines as a kind takes: cluster-scoped, with defaults, validation and a controller, and one row.

use std::collections::BTreeMap;

use admission::field::{Error, Path};
use admission::{Defaulting, Findings, Operation, PatchBuilder, PatchError, Request, Validating};
use engine::snapshot::Snapshot;
use futures::future::BoxFuture;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use outrider::controller::apply::Error as ApplyError;
use outrider::controller::{Context, Operator};
use outrider::crd::schema::{object, root, text};
use outrider::kind::Kind;
use outrider::workshop::object::{KindSpec, Object, definition, row, rule};
use outrider::workshop::owned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The row.
pub static MOTTO: Kind = Kind {
    webhooks: |registry| {
        let rule = rule::<MottoSpec>(&[Operation::Create, Operation::Update]);
        registry.defaulting(rule, Webhooks).validating(rule, Webhooks)
    },
    controller: Some(start),
    keeps: &[("", "configmaps")],
    ..row::<MottoSpec>(|_| {
        let spec = object("What to say.", [("text", text("One line."))]);
        let status = object("What was said.", [("said", text("The line."))]);
        definition::<MottoSpec>(root("Motto keeps a ConfigMap with one line.", spec, status)).into_crd()
    })
};

type Motto = Object<MottoSpec>;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct MottoSpec {
    text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct MottoStatus {
    said: String,
}

impl KindSpec for MottoSpec {
    const GROUP: &'static str = "toy.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Motto";
    const PLURAL: &'static str = "mottos";
    type Scope = ClusterResourceScope;
    type Status = MottoStatus;
}

struct Webhooks;

impl Defaulting<Snapshot> for Webhooks {
    fn default(&self, _: &Request<'_, Value>, patch: &mut PatchBuilder, _: &Snapshot) -> Result<(), PatchError> {
        patch.default("/spec/text", json!("Carpe diem"))
    }
}

impl Validating<Snapshot> for Webhooks {
    type Object<'a> = Motto;

    fn create(&self, motto: &Motto, _: &Request<'_, Motto>, _: &Snapshot, findings: &mut Findings) {
        let text = &motto.spec.text;
        if text.contains('\n') {
            findings.errors.push(Error::invalid(&Path::new("spec").child("text"), text, "must be one line"));
        }
    }

    fn update(&self, new: &Motto, _: &Motto, of: &Request<'_, Motto>, snapshot: &Snapshot, findings: &mut Findings) {
        self.create(new, of, snapshot, findings);
    }
}

fn start(context: Context) -> BoxFuture<'static, ()> {
    let client = context.client.clone();
    let mut operator = Operator::<Motto>::new(Motto::NAME, context);
    let config_maps = operator.keeping::<ConfigMap>("motto", Some(&owned::selector()));
    operator.run((client, config_maps), |with, motto| async move {
        let ((client, config_maps), said) = (&*with, motto.spec.text.clone());
        let metadata = owned::metadata_in("default", &*motto, BTreeMap::new());
        let data = Some(BTreeMap::from([("text".to_owned(), said.clone())]));
        config_maps.apply(&ConfigMap { metadata, data, ..ConfigMap::default() }).await?;
        motto.write_status(client, &MottoStatus { said }).await?;
        Ok::<_, ApplyError>(None)
    })
}
