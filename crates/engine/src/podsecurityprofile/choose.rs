//! The profile of a pod, in the order of the API server of 1.24: the first by name that allows the pod as it is, or else the first that
//! changes it, of those that the pod's service account or the user may `use`.

use std::fmt::Write as _;
use std::sync::Arc;

use admission::format::names::dns1123_subdomain;
use admission::question::{Access, Question};
use admission::{Request, Unserved};

use super::api::{GROUP, PLURAL, VERSION};
use super::compiled::CompiledProfile;
use super::faults::ProfileFaults;
use super::judge::{FilledIn, judge};
use super::pod::Pod;

/// The annotation with the profile of a pod, as in 1.24.
pub const ANNOTATION: &str = "kubernetes.io/psp";

/// Profiles whose rights are requested at one time, for the service account and for the user: as many questions as a review may have in
/// a round.
const AT_ONCE: usize = 8;
/// Rounds of questions about profiles that allow the pod. One more is about those that do not, and one is left for other deciders.
const ROUNDS: usize = 2;
/// Profiles that allow the pod, and whose rights are requested.
pub const ASKED: usize = AT_ONCE * ROUNDS;

/// What is decided on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'c> {
    /// The pod.
    pub pod: &'c Pod<'c>,
    /// The profiles of its namespace, by name.
    pub profiles: &'c [&'c Arc<CompiledProfile>],
    /// Whether the pod may be changed. If not, the profile of its annotation goes first.
    pub may_change: bool,
}

/// What came out.
#[derive(Debug)]
pub enum Choice {
    /// A profile allows the pod, with this change.
    Allowed {
        /// Name of the profile.
        profile: String,
        /// What it fills in.
        change: FilledIn,
    },
    /// None that may be used does.
    Refused(String),
    /// What is filled in leaves no room.
    TooLarge,
}

/// Chooses.
///
/// # Errors
/// [`Unserved::Unanswered`] with the rights that must be known, [`Unserved::OutOfTime`] when the deadline passes.
pub fn choose<O>(case: Case<'_>, request: &Request<'_, O>) -> Result<Choice, Unserved> {
    let FoundProfiles { unchanged, changed, refusing, left_out } = find(case, request)?;
    let users = Users::of(case.pod, request);
    let allowing: Vec<_> = unchanged.iter().chain(&changed).copied().collect();
    for some in allowing.chunks(AT_ONCE).take(ROUNDS) {
        let may = users.may_use(some.iter().map(|profile| profile.name.as_str()), request)?;
        if let Some((profile, _)) = some.iter().zip(may).find(|(_, may)| *may) {
            // What the others would fill in was not kept.
            let change = judge(profile, case.pod, request.deadline)?.change;
            if change.is_too_large() {
                return Ok(Choice::TooLarge);
            }
            return Ok(Choice::Allowed { profile: profile.name.clone(), change });
        }
    }
    let may = users.may_use(refusing.iter().map(|(profile, _)| profile.name.as_str()), request)?;
    let mut faults = ProfileFaults::default();
    let usable = refusing.into_iter().zip(may).filter(|(_, may)| *may).map(|((_, faults), _)| faults);
    usable.for_each(|found| faults.append(found));
    let what = if case.may_change { "admit" } else { "validate" };
    let mut text = format!("PodSecurityPolicy: unable to {what} pod: {faults}");
    if faults.is_empty() {
        text.push_str(": ");
        text.push_str(&users.may_use_none());
    }
    if allowing.len() > ASKED {
        let _ = write!(
            text,
            "; {} PodSecurityProfiles allow the pod, and the rights to the first {ASKED} alone were checked: give them a namespaceSelector",
            allowing.len()
        );
    }
    if left_out > 0 {
        let _ = write!(text, "; {left_out} more PodSecurityProfiles do not allow the pod");
    }
    Ok(Choice::Refused(text))
}

/// Profiles by what they make of a pod, before any right is checked.
#[derive(Default)]
struct FoundProfiles<'c> {
    unchanged: Vec<&'c Arc<CompiledProfile>>,
    changed: Vec<&'c Arc<CompiledProfile>>,
    /// The first that do not allow it.
    refusing: Vec<(&'c Arc<CompiledProfile>, ProfileFaults)>,
    /// How many more do not.
    left_out: usize,
}

fn find<'c, O>(case: Case<'c>, request: &Request<'_, O>) -> Result<FoundProfiles<'c>, Unserved> {
    let mut found = FoundProfiles::default();
    let hinted = case.pod.annotation(ANNOTATION).filter(|_| !case.may_change);
    let is_hinted = |profile: &Arc<CompiledProfile>| Some(profile.name.as_str()) == hinted;
    let (first, others): (Vec<_>, Vec<_>) = case.profiles.iter().copied().partition(|profile| is_hinted(profile));
    for profile in first.into_iter().chain(others) {
        request.deadline.check()?;
        let judged = judge(profile, case.pod, request.deadline)?;
        if !judged.faults.is_empty() {
            if found.refusing.len() < AT_ONCE {
                found.refusing.push((profile, judged.faults));
            } else {
                found.left_out += 1;
            }
        } else if judged.change.is_empty() {
            found.unchanged.push(profile);
        } else if case.may_change {
            found.changed.push(profile);
        }
    }
    Ok(found)
}

/// For whom rights count: the service account of the pod, and who makes the request.
struct Users {
    all: Vec<Access>,
    namespace: String,
    too_long: Option<&'static str>,
}

impl Users {
    fn of<O>(pod: &Pod<'_>, request: &Request<'_, O>) -> Self {
        let namespace = request.namespace.to_string();
        let account = pod.text("serviceAccountName").filter(|name| dns1123_subdomain(name).is_empty());
        let account = account.map(|name| Access {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
            ..Access::default()
        });
        let too_long = request.user_info.too_long();
        let user = too_long.is_none().then(|| Access::by(&request.user_info));
        Self { all: account.into_iter().chain(user).collect(), namespace, too_long }
    }

    /// Whether one of them may use each of these profiles.
    fn may_use<'n, O>(
        &self,
        profiles: impl Iterator<Item = &'n str>,
        request: &Request<'_, O>,
    ) -> Result<Vec<bool>, Unserved> {
        let names: Vec<&str> = profiles.collect();
        if self.all.is_empty() {
            return Ok(vec![false; names.len()]);
        }
        let question = |name: &str, user: &Access| {
            Question::Access(Access {
                verb: "use".to_owned(),
                group: GROUP.to_owned(),
                version: VERSION.to_owned(),
                resource: PLURAL.to_owned(),
                namespace: self.namespace.clone(),
                name: name.to_owned(),
                ..user.clone()
            })
        };
        let questions = names.iter().flat_map(|name| self.all.iter().map(|user| question(name, user))).collect();
        let known = request.ask_all(questions)?;
        Ok(known.chunks(self.all.len()).map(|of_one| of_one.iter().any(|known| known.is_yes())).collect())
    }

    /// Why there are no faults to report.
    fn may_use_none(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|user| user.user.as_str()).collect();
        let names = if names.is_empty() { "the user".to_owned() } else { names.join(" nor ") };
        let neither = if self.all.len() > 1 { "neither " } else { "" };
        let not = if self.all.len() > 1 { "may" } else { "may not" };
        let long = self.too_long.map_or_else(String::new, |field| {
            format!(", and {field} is too long to ask what the user may do; use an account with fewer groups")
        });
        format!(
            "{neither}{names} {not} use a PodSecurityProfile that allows the pod; give one of them the verb use on {PLURAL}.{GROUP} \
             in namespace {}{long}",
            self.namespace
        )
    }
}
