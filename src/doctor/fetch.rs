//! Reads from a cluster what is examined.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::authorization::v1::{
    SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::answers::said;
use crate::doctor::access::{self, Right};
use crate::doctor::definition::FoundDefinition;
use crate::doctor::entries::ConfigurationEntry;
use crate::doctor::facts::{ExaminedObject, Facts, NotChecked, UnreadableAnnotation};
use crate::doctor::guard::GuardFacts;
use crate::doctor::mounted;
use crate::doctor::replica::ReplicaPod;
use crate::kinds;
use crate::names::APP;
use crate::names::CA_SECRET;
use crate::names::SERVICE_NAME_LABEL;
use engine::plugins::api::{AdmissionPlugin, KIND};
use engine::plugins::compiled::CompiledPlugin;
use engine::plugins::placement::Placement;
use engine::sidecarset::api::Metadata;
use engine::snapshot::EXCLUDE_LABEL;

/// Values of a label by which people mean that it does not count.
const LIKE_NO: [&str; 8] = ["false", "False", "FALSE", "no", "off", "0", "disabled", "n"];

mod converter;
mod handshake;
mod pods;

/// The API server does not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection, or an answer that is none.
    #[error("the API server cannot be read: {}", said(.0))]
    Unreachable(#[source] Box<kube::Error>),
}

/// Reads everything. What may not be read is noted, and goes without.
///
/// # Errors
/// [`Error`] when there is no API server to ask.
pub async fn fetch(client: &Client, namespace: &str, account: Option<&str>) -> Result<Facts, Error> {
    let mut facts = Facts { namespace: namespace.to_owned(), ..Facts::default() };
    facts.mutating = list(Api::all(client.clone()), &ListParams::default(), true, &mut facts.not_checked).await?;
    facts.validating = list(Api::all(client.clone()), &ListParams::default(), true, &mut facts.not_checked).await?;
    let definitions = Api::<FoundDefinition>::all(client.clone());
    facts.definitions = list(definitions, &ListParams::default(), false, &mut facts.not_checked).await?;
    services(client, &mut facts).await?;
    let no = ListParams::default().labels(&format!("{EXCLUDE_LABEL} in ({})", LIKE_NO.join(",")));
    facts.excluded_by_no = list(Api::<Namespace>::all(client.clone()), &no, false, &mut facts.not_checked).await?;
    objects(client, &mut facts).await?;
    annotations(client, &mut facts).await?;
    pods::clipped(client, &mut facts).await?;
    let missing = &mut facts.not_checked;
    for name in kinds::product().filter_map(|kind| kind.definition().metadata.name) {
        facts.crds.extend(get(Api::<CustomResourceDefinition>::all(client.clone()), &name, false, missing).await?);
    }
    let ours = ListParams::default().labels(&format!("app.kubernetes.io/name={APP}"));
    facts.pods = list(Api::<ReplicaPod>::namespaced(client.clone(), namespace), &ours, false, missing).await?;
    facts.ca_secret = get(Api::<Secret>::namespaced(client.clone(), namespace), CA_SECRET, false, missing).await?;
    if let Some(name) = mounted::secret_name(&facts.pods) {
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        facts.serving_secret = get(secrets, name, false, missing).await?;
    }
    rights(client, account, &mut facts).await?;
    facts.guard = guard(client, account, &ours, &mut facts).await?;
    facts.handshakes = handshake::all(&facts).await;
    facts.unconverted = converter::all(&facts).await;
    Ok(facts)
}

/// The objects of kinds of which the conditions are examined.
async fn objects(client: &Client, facts: &mut Facts) -> Result<(), Error> {
    for kind in kinds::product().filter(|kind| kind.diagnosis.is_some()) {
        let resource = kind.api_resource();
        if facts.defines(&format!("{}.{}", resource.plural, resource.group)) {
            let api = Api::<ExaminedObject>::all_with(client.clone(), &resource);
            let objects = match api.list(&ListParams::default()).await {
                Ok(list) => list.items,
                Err(failure) => {
                    note_of(&resource.plural, failure, false, &mut facts.not_checked).map(|()| Vec::new())?
                }
            };
            facts.objects.insert(kind.name.to_owned(), objects);
        }
    }
    Ok(())
}

/// The annotations of namespaces that plugins cannot read.
async fn annotations(client: &Client, facts: &mut Facts) -> Result<(), Error> {
    let reads = |object: &ExaminedObject| {
        let metadata = Metadata { name: object.metadata.name.clone(), ..Metadata::default() };
        let spec = serde_json::from_value(object.spec.clone()).ok();
        let plugin = spec.map(|spec| AdmissionPlugin { metadata, spec, ..AdmissionPlugin::default() });
        plugin.and_then(|plugin| CompiledPlugin::compile(&plugin).ok()).is_some_and(|plugin| plugin.reads_annotations())
    };
    if !facts.objects.get(&KIND.to_lowercase()).into_iter().flatten().any(reads) {
        return Ok(());
    }
    let all = ListParams::default();
    for namespace in list(Api::<Namespace>::all(client.clone()), &all, false, &mut facts.not_checked).await? {
        let placement = Placement::of(&namespace.metadata.annotations.unwrap_or_default());
        let name = namespace.metadata.name.unwrap_or_default();
        facts.unreadable_annotations.extend(placement.faults().map(|(key, why)| UnreadableAnnotation {
            namespace: name.clone(),
            key: key.to_owned(),
            why: why.to_owned(),
        }));
    }
    Ok(())
}

/// The Services that webhooks name, their endpoints, and the namespaces that selectors are tried on.
async fn services(client: &Client, facts: &mut Facts) -> Result<(), Error> {
    let references: BTreeSet<(String, String)> = ConfigurationEntry::all(facts)
        .iter()
        .chain(&ConfigurationEntry::converters(facts))
        .filter_map(|entry| entry.client.service.as_ref())
        .map(|service| (service.namespace.clone(), service.name.clone()))
        .collect();
    let mut namespaces: BTreeSet<&str> = ["kube-system", "kube-node-lease"].into();
    let missing = &mut facts.not_checked;
    for (namespace, name) in &references {
        namespaces.insert(namespace);
        facts.services.extend(get(Api::<Service>::namespaced(client.clone(), namespace), name, true, missing).await?);
        let of_service = ListParams::default().labels(&format!("{SERVICE_NAME_LABEL}={name}"));
        let slices =
            list(Api::<EndpointSlice>::namespaced(client.clone(), namespace), &of_service, true, missing).await?;
        facts.endpoint_slices.extend(slices);
    }
    for name in namespaces {
        facts.namespaces.extend(get(Api::<Namespace>::all(client.clone()), name, true, missing).await?);
    }
    Ok(())
}

/// The rights of the process: of the account named, else that of the pods found, else of the user of the command.
async fn rights(client: &Client, account: Option<&str>, facts: &mut Facts) -> Result<(), Error> {
    let of_pods = || facts.pods.iter().find_map(|pod| pod.spec.as_ref()?.service_account_name.clone());
    let account = account.map(str::to_owned).or_else(of_pods);
    for mut right in access::needed(&facts.namespace, &facts.pods) {
        let asked = match &account {
            Some(account) => may(client, &mut right, &facts.namespace, account).await,
            None => may_i(client, &mut right).await,
        };
        if let Err(error) = asked {
            note::<SubjectAccessReview>(error, false, &mut facts.not_checked)?;
            facts.rights.clear();
            return Ok(());
        }
        facts.rights.push(right);
    }
    Ok(())
}

/// The policies about the account named, else about that of the pods found. Where neither is known, a person serves.
async fn guard(
    client: &Client,
    account: Option<&str>,
    ours: &ListParams,
    facts: &mut Facts,
) -> Result<Option<GuardFacts>, Error> {
    let of_pods = facts.pods.iter().find_map(|pod| pod.spec.as_ref()?.service_account_name.clone());
    let Some(account) = account.map(str::to_owned).or(of_pods) else { return Ok(None) };
    let missing = &mut facts.not_checked;
    let policies = list(Api::all(client.clone()), ours, false, missing).await?;
    let bindings = list(Api::all(client.clone()), ours, false, missing).await?;
    let is_read =
        !["validatingadmissionpolicies", "validatingadmissionpolicybindings"].iter().any(|what| facts.lacks(what));
    Ok(is_read.then_some(GuardFacts { account, policies, bindings }))
}

async fn may(client: &Client, right: &mut Right, namespace: &str, account: &str) -> kube::Result<()> {
    right.who = format!("system:serviceaccount:{namespace}:{account}");
    let groups = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated".to_owned(),
    ];
    let spec = SubjectAccessReviewSpec {
        user: Some(right.who.clone()),
        groups: Some(groups.to_vec()),
        resource_attributes: Some(right.attributes()),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let api = Api::<SubjectAccessReview>::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    right.allowed = answer.status.is_some_and(|status| status.allowed);
    Ok(())
}

async fn may_i(client: &Client, right: &mut Right) -> kube::Result<()> {
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(right.attributes()),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let api = Api::<SelfSubjectAccessReview>::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    right.allowed = answer.status.is_some_and(|status| status.allowed);
    Ok(())
}

fn note<K: Resource<DynamicType = ()>>(
    failure: kube::Error,
    essential: bool,
    missing: &mut Vec<NotChecked>,
) -> Result<(), Error> {
    note_of(&K::plural(&()), failure, essential, missing)
}

/// Notes what the API server refused; everything else ends the examination.
fn note_of(what: &str, failure: kube::Error, essential: bool, missing: &mut Vec<NotChecked>) -> Result<(), Error> {
    match failure {
        kube::Error::Api(status) => {
            let what = what.to_owned();
            if !missing.iter().any(|known| known.what == what) {
                missing.push(NotChecked { what, why: status.message.clone(), essential });
            }
            Ok(())
        }
        error => Err(Error::Unreachable(Box::new(error))),
    }
}

async fn list<K>(
    api: Api<K>,
    params: &ListParams,
    essential: bool,
    missing: &mut Vec<NotChecked>,
) -> Result<Vec<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    match api.list(params).await {
        Ok(list) => Ok(list.items),
        Err(failure) => note::<K>(failure, essential, missing).map(|()| Vec::new()),
    }
}

async fn get<K>(api: Api<K>, name: &str, essential: bool, missing: &mut Vec<NotChecked>) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    match api.get_opt(name).await {
        Ok(found) => Ok(found),
        Err(failure) => note::<K>(failure, essential, missing).map(|()| None),
    }
}
