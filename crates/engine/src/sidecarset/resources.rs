//! `resourcesPolicy` of a container, and `spec.resourceDefaults`: requests and limits that are not written in the container.

use admission::field::{Error, ErrorList, Path};
use admission::format::Quantity;
use regex::{Regex, RegexBuilder};
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::sidecarset::api::{RawObject, ResourceDefaults as Written};
use crate::sidecarset::expression::{Expression, Nanos, Resource};
use crate::sidecarset::vocabulary::{ALL_CONTAINERS, MODE_MAX, TARGET_MODES};

/// The longest regular expression, in bytes.
const PATTERN_MAX_BYTES: usize = 1024;
/// What a compiled regular expression may take, in bytes.
const PATTERN_MAX_SIZE: usize = 64 * 1024;
/// The deepest nesting of a regular expression.
const PATTERN_MAX_DEPTH: u32 = 32;
/// The longest name that a container can have.
const NAME_MAX: usize = 63;

/// Resources that have defaults: they may be requested and limited by any amounts.
pub const WITH_DEFAULTS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// What the containers that a policy is about have together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Their limits, in the order of [`Resource::ALL`]; none where one of them has none.
    pub limits: [Option<Nanos>; 2],
    /// Their requests; what is missing counts as zero.
    pub requests: [Nanos; 2],
}

/// What the own containers of a new pod are to get that lack a request or limit, in the order of [`Resource::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnDefaults {
    /// Limits; `None` leaves a container without.
    pub limits: [Option<Nanos>; 2],
    /// Requests; a container that has a limit has that as its request.
    pub requests: [Option<Nanos>; 2],
}

/// How requests and limits are computed from those of the pod's own containers.
#[derive(Debug, Clone)]
pub struct ResourcesPolicy {
    /// The maximum of the containers counts, and not their sum.
    pub is_max: bool,
    /// The regular expression of their names, as written; [`ALL_CONTAINERS`] by default.
    pub pattern: String,
    // None where all match.
    names: Option<Regex>,
    limits: [Option<Expression>; 2],
    requests: [Option<Expression>; 2],
}

impl ResourcesPolicy {
    /// Reads the policy at `path`, and adds an error for all that is wrong with it.
    pub fn read(policy: &Value, path: &Path, errors: &mut ErrorList) -> Option<Self> {
        let before = errors.len();
        let mode = policy.get("targetContainersMode").and_then(Value::as_str).unwrap_or_default();
        if mode.is_empty() {
            let detail = format!("one of {}", TARGET_MODES.join(", "));
            errors.push(Error::required(&path.child("targetContainersMode"), detail));
        }
        let (pattern, names) = read_names(policy, path, errors);
        let expressions = policy.get("resourcesExpr");
        let path = path.child("resourcesExpr");
        let [limits, requests] = ["limits", "requests"].map(|list| {
            let amounts = expressions.and_then(|expressions| expressions.get(list));
            let path = path.child(list);
            Resource::ALL.map(|resource| read_expression(amounts, resource, &path, errors))
        });
        if errors.len() > before {
            return None;
        }
        if limits.iter().chain(&requests).all(Option::is_none) {
            errors.push(Error::required(&path, "an expression for limits or requests"));
            return None;
        }
        check_constants(&limits, &requests, &path.child("requests"), errors);
        (errors.len() == before).then(|| Self { is_max: mode == MODE_MAX, pattern, names, limits, requests })
    }

    /// Whether a container of that name counts.
    pub fn is_about(&self, name: &str) -> bool {
        name.len() <= NAME_MAX && self.names.as_ref().is_none_or(|names| names.is_match(name))
    }

    /// Whether every container counts, whatever its name.
    pub const fn is_about_all(&self) -> bool {
        self.names.is_none()
    }

    /// Sets the container's requests and limits. A limit of zero is none; a request is at most the limit.
    pub fn apply(&self, totals: &Totals, container: &mut RawObject) {
        for (at, resource) in Resource::ALL.into_iter().enumerate() {
            let of = |expressions: &[Option<Expression>; 2], total| {
                expressions.get(at).and_then(Option::as_ref).and_then(|expression| expression.evaluate(total))
            };
            let limit = of(&self.limits, totals.limits.get(at).copied().flatten()).filter(|limit| *limit > 0);
            let request = of(&self.requests, Some(totals.requests.get(at).copied().unwrap_or_default()));
            let request = request.map(|request| limit.map_or(request, |limit| request.min(limit)));
            for (list, amount) in [("limits", limit), ("requests", request)] {
                if let Some(amount) = amount {
                    set_amount(container, list, resource.name(), resource.print(amount).into());
                }
            }
        }
    }

    /// Limits a container to what the policy requests for it, where it has no limit and would get a lower one, with which the API server
    /// refuses the pod.
    pub fn limit(&self, defaults: &OwnDefaults, container: &mut RawObject) {
        let of_policy = Resource::ALL.into_iter().zip(&self.requests).zip(defaults.limits);
        for ((resource, _), default) in of_policy.filter(|((_, request), _)| request.is_some()) {
            let name = resource.name();
            let Some(request) = amount(container, "requests", name).cloned() else { continue };
            let requested = Quantity::deserialize(&request).map(|quantity| resource.nanos(&quantity));
            let is_beyond = requested.is_ok_and(|requested| default.is_some_and(|default| requested > default));
            if is_beyond && amount(container, "limits", name).is_none() {
                set_amount(container, "limits", name, request);
            }
        }
    }

    /// Sets the requests and limits that follow from the pod's own containers to those that a running pod has.
    pub fn keep(&self, resources: Option<&RawValue>, container: &mut RawObject) {
        let of_pod: Value = resources.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        for (list, expressions) in [("limits", &self.limits), ("requests", &self.requests)] {
            for (resource, _) in Resource::ALL.iter().zip(expressions).filter(|(_, expression)| expression.is_some()) {
                let amount = of_pod.get(list).and_then(|amounts| amounts.get(resource.name()));
                if let Some(amount) = amount.filter(|amount| !amount.is_null()) {
                    set_amount(container, list, resource.name(), amount.clone());
                }
            }
        }
    }
}

fn read_names(policy: &Value, path: &Path, errors: &mut ErrorList) -> (String, Option<Regex>) {
    let path = path.child("targetContainersNameRegex");
    let pattern = match policy.get("targetContainersNameRegex") {
        None | Some(Value::Null) => ALL_CONTAINERS,
        Some(pattern) => pattern.as_str().unwrap_or_default(),
    };
    if pattern.is_empty() {
        errors.push(Error::required(&path, format!("{ALL_CONTAINERS:?} is every container")));
    }
    if pattern.len() > PATTERN_MAX_BYTES {
        errors.push(Error::too_long(&path, PATTERN_MAX_BYTES));
    }
    if pattern.len() > PATTERN_MAX_BYTES || pattern.is_empty() || pattern == ALL_CONTAINERS {
        return (pattern.to_owned(), None);
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(PATTERN_MAX_SIZE).dfa_size_limit(PATTERN_MAX_SIZE).nest_limit(PATTERN_MAX_DEPTH);
    match builder.build() {
        Ok(names) => (pattern.to_owned(), Some(names)),
        Err(error) => {
            // Its text is of several lines, the last of which says what is wrong.
            let text = error.to_string();
            let detail = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            errors.push(Error::invalid(&path, pattern, format!("is no regular expression: {detail}")));
            (pattern.to_owned(), None)
        }
    }
}

fn read_expression(
    amounts: Option<&Value>,
    resource: Resource,
    path: &Path,
    errors: &mut ErrorList,
) -> Option<Expression> {
    let text = amounts?.get(resource.name())?.as_str().filter(|text| !text.is_empty())?;
    match Expression::read(text, resource) {
        Ok(expression) => Some(expression),
        Err(error) => {
            errors.push(Error::invalid(&path.child(resource.name()), text, error.to_string()));
            None
        }
    }
}

/// A request that is above the limit for every pod is a slip.
fn check_constants(
    limits: &[Option<Expression>; 2],
    requests: &[Option<Expression>; 2],
    path: &Path,
    errors: &mut ErrorList,
) {
    for ((limit, request), resource) in limits.iter().zip(requests).zip(Resource::ALL) {
        let constant = |expression: &Option<Expression>| expression.as_ref().and_then(Expression::constant);
        if let (Some(limit), Some(request)) = (constant(limit), constant(request))
            && limit > 0
            && request > limit
        {
            let detail =
                format!("must be less than or equal to {} limit of {}", resource.name(), resource.print(limit));
            errors.push(Error::invalid(&path.child(resource.name()), resource.print(request), detail));
        }
    }
}

/// `spec.resourceDefaults`: for containers that lack a request or limit.
#[derive(Debug, Clone, Default)]
pub struct CompiledDefaults(Option<Box<Defaults>>);

#[derive(Debug, Clone)]
struct Defaults {
    limits: RawObject,
    requests: RawObject,
}

impl CompiledDefaults {
    /// Those of a set.
    pub fn of(written: Option<&Written>) -> Self {
        let Some(written) = written else { return Self::default() };
        Self(Some(Box::new(Defaults {
            limits: written.limits.clone().unwrap_or_default(),
            requests: written.requests.clone().unwrap_or_default(),
        })))
    }

    /// Fills in what the container lacks, resource by resource. A default limit is at least what the container requests, a default
    /// request at most what it is limited to.
    pub fn fill(&self, container: &mut RawObject) {
        let Some(all) = &self.0 else { return };
        for (list, defaults) in [("limits", &all.limits), ("requests", &all.requests)] {
            for (name, default) in defaults {
                if amount(container, list, name).is_some() || default.is_null() {
                    continue;
                }
                let other = if list == "limits" { "requests" } else { "limits" };
                let bound = amount(container, other, name).cloned();
                let value = match bound {
                    Some(bound) if is_beyond(default, &bound, list) => bound,
                    _ => default.clone(),
                };
                set_amount(container, list, name, value);
            }
        }
    }
}

fn is_beyond(default: &Value, bound: &Value, list: &str) -> bool {
    match (Quantity::deserialize(default), Quantity::deserialize(bound)) {
        (Ok(default), Ok(bound)) if list == "limits" => default < bound,
        (Ok(default), Ok(bound)) => default > bound,
        _ => false,
    }
}

/// The amount of a resource in a container's requests or limits.
pub fn amount<'c>(container: &'c RawObject, list: &str, name: &str) -> Option<&'c Value> {
    container.get("resources")?.get(list)?.get(name).filter(|amount| !amount.is_null())
}

/// Sets an amount. Maps that are not there, or no maps, are made.
pub fn set_amount(container: &mut RawObject, list: &str, name: &str, amount: Value) {
    let map_in = |value: &mut Value| {
        if !value.is_object() {
            *value = json!({});
        }
    };
    let resources = container.entry("resources").or_insert(Value::Null);
    map_in(resources);
    if let Value::Object(resources) = resources {
        let amounts = resources.entry(list).or_insert(Value::Null);
        map_in(amounts);
        if let Value::Object(amounts) = amounts {
            amounts.insert(name.to_owned(), amount);
        }
    }
}
