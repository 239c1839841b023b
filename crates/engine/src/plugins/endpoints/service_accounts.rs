//! New pods, and ephemeral containers, under `ServiceAccount`.

use std::borrow::Cow;
use std::sync::Arc;

use admission::patch::quoted;
use admission::question::{Known, Object, Question};
use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule};
use admission::{Findings, Mutating, ObjectLimit, Operation, PatchWriter, Request, Unserved, Validating, Verdict};

use super::entries::Group;
use super::report::Report;
use super::scope::{binds, cannot_tell, concerned};
use crate::plugins::compiled::{CompiledPlugin, Mode, Settings};
use crate::plugins::references::ReferringPod;
use crate::plugins::service_account::{Account, DEFAULT_ACCOUNT, ServiceAccountSettings, check_mirror};
use crate::plugins::{Plugin, forbidden, shortened};
use crate::reasons;
use crate::snapshot::Snapshot;

const EPHEMERAL: &str = "ephemeralcontainers";
const PODS: &[Resource] = &[Resource { group: "", version: "v1", resource: "pods", kind: "Pod" }];
const JUDGED: &[Resource] = &[
    Resource { group: "", version: "v1", resource: "pods", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" },
];

/// Pods with pull secrets of their own get no others.
const WITHOUT_PULL_SECRETS: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/without-pull-secrets"),
    expression: "!has(object.spec.imagePullSecrets) || object.spec.imagePullSecrets.size() == 0",
};

/// What a stored pod names does not change, but for its ephemeral containers.
const NEW: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/new-references"),
    expression: "request.operation == 'CREATE' || (has(request.subResource) && request.subResource == 'ephemeralcontainers')",
};

/// What is called when a pod is created.
pub const GIVING: Rule = Rule {
    suffix: "serviceaccount",
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[WITHOUT_PULL_SECRETS],
    ..Rule::new(concat!("serviceaccount.policy.", api_domain!()), PODS, &[Operation::Create])
};

/// What is called when a pod, or an ephemeral container, is to be stored.
pub const LIMITING: Rule = Rule {
    suffix: GIVING.suffix,
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[NEW],
    ..Rule::new(GIVING.name, JUDGED, &[Operation::Create, Operation::Update])
};

/// The rule of objects with `failurePolicy: Ignore`, beside which there are others.
pub const GIVING_IGNORING: Rule = Rule {
    suffix: "serviceaccount-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("serviceaccount-ignore.policy.", api_domain!()),
    ..GIVING
};

/// The same of [`LIMITING`].
pub const LIMITING_IGNORING: Rule = Rule {
    suffix: GIVING_IGNORING.suffix,
    failure_policy: FailurePolicy::Ignore,
    name: GIVING_IGNORING.name,
    ..LIMITING
};

/// What is known of the account of a pod.
enum FoundAccount<'f> {
    /// What it says.
    Account(Cow<'f, Account>),
    /// There is none.
    Missing,
    /// Nothing, as where there is no cluster.
    Unknown,
}

/// The account of this name: of those that have been seen, or else that of the API server, where it may be a moment old.
fn account<'f, O>(
    request: &Request<'_, O>,
    snapshot: &'f Snapshot,
    name: &str,
    plugins: &[(&Arc<CompiledPlugin>, bool)],
) -> Result<FoundAccount<'f>, Unserved> {
    if let Some(account) = snapshot.service_accounts.account(&request.namespace, name) {
        return Ok(FoundAccount::Account(Cow::Borrowed(account)));
    }
    if !snapshot.namespaces_may_appear {
        return Ok(FoundAccount::Unknown);
    }
    let object = Object {
        group: String::new(),
        version: "v1".to_owned(),
        resource: "serviceaccounts".to_owned(),
        namespace: request.namespace.to_string(),
        name: name.to_owned(),
    };
    match request.ask(Question::Object(object)) {
        Ok(Known::Object(Some(object))) => Ok(FoundAccount::Account(Cow::Owned(Account::read(object)))),
        Ok(Known::Object(None)) => Ok(FoundAccount::Missing),
        Ok(_) => Err(Unserved::Fault),
        // Who is exempt, or only reports, keeps no pod waiting.
        Err(Unserved::Unanswered(_)) if request.has_final_answers() && !binds(plugins) => Ok(FoundAccount::Unknown),
        Err(unserved) => Err(unserved),
    }
}

/// The name of the account of a pod.
fn name_of<'p>(pod: &'p ReferringPod<'_>) -> &'p str {
    let own = pod.spec.service_account_name.as_str();
    if own.is_empty() { DEFAULT_ACCOUNT } else { own }
}

fn settings(plugin: &CompiledPlugin) -> Option<&ServiceAccountSettings> {
    match &plugin.settings {
        Settings::ServiceAccount(settings) => Some(settings),
        _ => None,
    }
}

/// Why nothing is known of an account.
fn unknown<O>(request: &Request<'_, O>, snapshot: &Snapshot, name: &str) -> String {
    let (namespace, name) = (shortened(&request.namespace), shortened(name));
    let why = if snapshot.namespaces_may_appear { "cannot be read" } else { "is not among the manifests" };
    format!("ServiceAccount {namespace}/{name} {why}")
}

/// Gives pods pull secrets.
pub struct PullSecretMutation {
    /// The objects that decide.
    pub group: Group,
}

impl Mutating<Snapshot> for PullSecretMutation {
    type Object<'a> = ReferringPod<'a>;

    fn mutate<'a>(&self, request: &Request<'a, ReferringPod<'a>>, snapshot: &Snapshot) -> Result<Verdict, Unserved> {
        let is_new = request.operation == Operation::Create && request.sub_resource.is_empty();
        let lacks = |pod: &&ReferringPod<'_>| {
            is_new && pod.spec.has_containers() && !pod.metadata.is_mirror() && !pod.spec.has_pull_secrets()
        };
        let Some(pod) = request.object.as_ref().filter(lacks) else { return Ok(Verdict::allow(reasons::NO_MATCH)) };
        let chosen = |one: &CompiledPlugin| self.group.has(one, Plugin::ServiceAccount, snapshot);
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
        let mut report = Report::with(concerned.warnings);
        let mut given = Vec::new();
        if !concerned.plugins.is_empty() {
            let found = account(request, snapshot, name_of(pod), &concerned.plugins)?;
            let none = Account::default();
            let account = match &found {
                FoundAccount::Account(account) => Some(&**account),
                // That is refused when the pod is to be stored.
                FoundAccount::Missing => None,
                FoundAccount::Unknown => {
                    let names_secrets =
                        |one: &CompiledPlugin| settings(one).is_some_and(|one| !one.pull_secrets.is_empty());
                    let warns = |(one, is_exempt): &(&Arc<CompiledPlugin>, bool)| {
                        one.mode != Mode::Audit && !is_exempt && names_secrets(one)
                    };
                    if concerned.plugins.iter().any(warns) {
                        let why = unknown(request, snapshot, name_of(pod));
                        report.warnings.push(format!("{why}, and counts as one that names no secrets"));
                    }
                    Some(&none)
                }
            };
            for (plugin, is_exempt) in concerned.plugins {
                let (Some(settings), Some(account)) = (settings(plugin), account) else { continue };
                let change = settings.change(account);
                // A later object finds pull secrets.
                if report.changes((plugin, is_exempt), &change) {
                    given = change.pull_secrets;
                    break;
                }
            }
        }
        let mut patch = PatchWriter::default();
        if !given.is_empty() {
            let references: Vec<String> = given.iter().map(|name| format!("{{\"name\":{}}}", quoted(name))).collect();
            patch.add("/spec/imagePullSecrets", &format!("[{}]", references.join(",")));
        }
        Ok(report.into_verdict(reasons::NO_MATCH, patch))
    }
}

/// Holds pods to the secrets of their accounts.
pub struct SecretValidation {
    /// The objects that decide.
    pub group: Group,
}

impl Validating<Snapshot> for SecretValidation {
    type Object<'a> = ReferringPod<'a>;

    /// Nothing of a pod is kept.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, ReferringPod<'a>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        let is_ephemeral = request.sub_resource.as_str() == EPHEMERAL;
        if request.operation == Operation::Update && !is_ephemeral {
            return Ok(());
        }
        let Some((pod, _)) = findings.stored(request) else { return Ok(()) };
        let chosen = |one: &CompiledPlugin| self.group.has(one, Plugin::ServiceAccount, snapshot);
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
        findings.warnings.extend(concerned.warnings);
        if concerned.plugins.is_empty() {
            return Ok(());
        }
        let check = of_pod(request, pod, is_ephemeral, snapshot, &concerned.plugins, findings)?;
        let name = pod.metadata.said_name(&request.name);
        let mut report = Report::default();
        report.judge(concerned.plugins, request, |plugin| {
            let found = settings(plugin).map_or(Ok(()), &check);
            Ok(found.map_err(|why| forbidden("pods", name, &why)))
        })?;
        report.finish(findings);
        Ok(())
    }
}

/// A check of a pod by a configuration.
type AccountCheck<'c> = Box<dyn Fn(&ServiceAccountSettings) -> Result<(), String> + 'c>;

/// How the pod is checked.
fn of_pod<'c>(
    request: &'c Request<'_, ReferringPod<'_>>,
    pod: &'c ReferringPod<'_>,
    is_ephemeral: bool,
    snapshot: &'c Snapshot,
    plugins: &[(&Arc<CompiledPlugin>, bool)],
    findings: &mut Findings,
) -> Result<AccountCheck<'c>, Unserved> {
    if pod.metadata.is_mirror() && !is_ephemeral {
        return Ok(Box::new(|_| check_mirror(&pod.spec)));
    }
    let name = name_of(pod);
    Ok(match account(request, snapshot, name, plugins)? {
        FoundAccount::Account(account) => Box::new(move |one| one.check(&pod.spec, &account, name, is_ephemeral)),
        FoundAccount::Missing => Box::new(move |_| {
            let (namespace, name) = (shortened(&request.namespace), shortened(name));
            Err(format!("error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"))
        }),
        FoundAccount::Unknown => {
            // By an account that names nothing, every secret would be one too many.
            let none = Account { is_enforcing: true, ..Account::default() };
            if ServiceAccountSettings::default().check(&pod.spec, &none, name, is_ephemeral).is_err() {
                findings.warnings.extend(cannot_tell(plugins, &unknown(request, snapshot, name)));
            }
            Box::new(|_| Ok(()))
        }
    })
}
