//! A kind in as few lines as a kind takes: cluster-scoped, with defaults, validation and a controller, and one row.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::field::{Error, Path};
use admission::{Defaulting, Findings, Operation, PatchBuilder, PatchError, Registry, Request, Validating};
use engine::snapshot::Snapshot;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use outrider::controller::apply::{Applier, Error as ApplyError};
use outrider::controller::{Context, Operator, status};
use outrider::crd::{Definition, Scope, schema};
use outrider::kind::{Editors, Family, Kind, Reader, Watched, no_demands, no_rules};
use outrider::permissions::{applied, own_kind};
use outrider::workshop::object::{KindSpec, Object, rule};
use outrider::workshop::owned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The row.
pub static MOTTO: Kind = Kind {
    name: "motto",
    family: Family::Workshop,
    crd: |_| {
        let spec = schema::object("What to say.", [("text", schema::text("One line."))]);
        let status = schema::object("What was said.", [("said", schema::text("The line."))]);
        let schema = schema::root("Motto keeps a ConfigMap with one line.", spec, status);
        let (group, version, kind, plural) = (Motto::GROUP, Motto::VERSION, Motto::KIND, Motto::PLURAL);
        let (scope, columns, scale) = (Scope::Cluster, Vec::new(), None);
        Definition { group, version, kind, plural, scope, schema, columns, scale }.into_crd()
    },
    rules,
    webhooks: |registry: Registry<Snapshot>| {
        let rule = rule::<Motto>(&[Operation::Create, Operation::Update], "motto.toy.example.com");
        registry.defaulting(rule, Webhooks).validating(rule, Webhooks)
    },
    stages: &[],
    namespace_rules: no_rules,
    demands: no_demands,
    controller: Some(start),
    watches: &[Watched { group: Motto::GROUP, plural: Motto::PLURAL, reader: Reader::Controller }],
    editors: Editors::Named,
    samples: &[],
};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Motto {
    text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Said {
    said: String,
}

impl KindSpec for Motto {
    const GROUP: &'static str = "toy.example.com";
    const VERSION: &'static str = "v1";
    const API_VERSION: &'static str = "toy.example.com/v1";
    const KIND: &'static str = "Motto";
    const PLURAL: &'static str = "mottos";
    type Scope = ClusterResourceScope;
    type Status = Said;
}

struct Webhooks;

impl Defaulting<Snapshot> for Webhooks {
    fn default(&self, _: &Request<'_, Value>, patch: &mut PatchBuilder, _: &Snapshot) -> Result<(), PatchError> {
        patch.default("/spec/text", json!("Carpe diem"))
    }
}

impl Validating<Snapshot> for Webhooks {
    type Object<'a> = Object<Motto>;
    fn validate(
        &self,
        request: &Request<'_, Object<Motto>>,
        _: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), admission::Unserved> {
        let text = request.object.as_ref().map(|motto| motto.spec.text.as_str()).unwrap_or_default();
        if text.contains('\n') {
            findings.errors.push(Error::invalid(&Path::new("spec").child("text"), text, "must be one line"));
        }
        Ok(())
    }
}

fn rules() -> Vec<PolicyRule> {
    [own_kind(Motto::GROUP, Motto::PLURAL), vec![applied("", "configmaps")]].concat()
}

fn start(context: Context) -> BoxFuture<'static, ()> {
    let (client, applier) = (context.client.clone(), Applier::new(context.client.clone(), "motto"));
    let mut operator = Operator::<Object<Motto>>::new("motto", context);
    let stored = operator.owning::<outrider::controller::owned::Owned<ConfigMap>>(Some(&owned::selector()));
    let reconcile = move |motto: Arc<Object<Motto>>| {
        let (client, applier, stored) = (client.clone(), applier.clone(), stored.clone());
        async move {
            let said = motto.spec.text.clone();
            let metadata = owned::metadata_without_namespace(&*motto, BTreeMap::new());
            let metadata = ObjectMeta { namespace: Some("default".to_owned()), ..metadata };
            let data = Some(BTreeMap::from([("text".to_owned(), said.clone())]));
            applier.apply(&ConfigMap { metadata, data, ..ConfigMap::default() }, &stored).await?;
            status::write(client, &*motto, motto.status.as_ref(), &Said { said }).await?;
            Ok::<_, ApplyError>(None)
        }
    };
    operator.run(reconcile).boxed()
}
