//! Whether an object is a `ProjectConfig` that can be used.

use std::net::IpAddr;
use std::time::Duration;

use admission::field::{Error, Path};
use admission::format::names::{dns1123_label, dns1123_subdomain};
use serde_json::{Map, Value};

use super::duration::{GoDuration, StopBudget};
use super::field::{FIELDS, ValueForm};
use crate::go_duration;
use crate::server::{BindAddress, address};

/// The only lock that client-go still has (`k8s.io/client-go/tools/leaderelection/resourcelock`).
const LOCKS: [&str; 1] = ["leases"];

/// Workers of one kind. Each is a task; more than this many of them only wait for each other.
pub const MOST_WORKERS: i64 = 1000;

const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

/// What was found in an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// What is wrong.
    pub faults: Vec<Error>,
    /// Fields that are not known.
    pub warnings: Vec<String>,
}

/// Checks every field of an object. Its `apiVersion` and `kind` are the caller's task.
pub fn check(object: &Value) -> Checked {
    let mut checked = Checked::default();
    if let Some(object) = object.as_object() {
        checked.object(object, None);
    }
    checked.endpoints(object);
    checked.times(object);
    checked
}

fn below(parent: Option<&Path>, key: &str) -> Path {
    match parent {
        Some(parent) => parent.child(key.to_owned()),
        None => Path::new(key.to_owned()),
    }
}

impl Checked {
    fn object(&mut self, object: &Map<String, Value>, parent: Option<&Path>) {
        for (key, value) in object {
            let is_root = parent.is_none();
            // The API server checks metadata, and the status has no fields.
            if is_root && matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
                continue;
            }
            let path = below(parent, key);
            let name = path.to_string();
            if let Some(field) = FIELDS.iter().find(|field| field.path == name) {
                if !value.is_null() {
                    self.faults.extend(faults(field.form, &path, value));
                }
            } else if FIELDS
                .iter()
                .any(|field| field.path.strip_prefix(&name).is_some_and(|rest| rest.starts_with('.')))
            {
                match value {
                    Value::Object(inner) => self.object(inner, Some(&path)),
                    Value::Null => {}
                    other => self.faults.push(Error::type_invalid(&path, other, "must be an object")),
                }
            } else {
                self.warnings.push(unknown(&name, parent));
            }
        }
    }

    /// Two probes cannot share one path.
    fn endpoints(&mut self, object: &Value) {
        let name = |field: &str, default| {
            let given = object.pointer(&format!("/health/{field}")).and_then(Value::as_str).unwrap_or_default();
            if given.is_empty() { default } else { given.trim_start_matches('/') }
        };
        let (ready, alive) = (name("readinessEndpointName", "readyz"), name("livenessEndpointName", "healthz"));
        if ready == alive {
            let path = Path::new("health").child("readinessEndpointName");
            self.faults.push(Error::invalid(&path, ready, "must not be the path of the liveness probe"));
        }
    }

    /// Only what the object itself says: the process checks the times again, with those that flags and defaults give.
    fn times(&mut self, object: &Value) {
        let given = |field: &str| {
            let text = object.pointer(&format!("/leaderElection/{field}")).and_then(Value::as_str)?;
            text.parse().ok().map(|GoDuration(duration)| duration)
        };
        let (lease, renew, retry) = (given("leaseDuration"), given("renewDeadline"), given("retryPeriod"));
        let mut fault = |field: &'static str, value: Duration, why: String| {
            let path = Path::new("leaderElection").child(field);
            self.faults.push(Error::invalid(&path, GoDuration(value).to_string(), why));
        };
        if let Some(lease) = lease.filter(|lease| *lease < Duration::from_secs(1)) {
            fault("leaseDuration", lease, "must be at least 1s".to_owned());
        }
        if let Some(retry) = retry.filter(Duration::is_zero) {
            fault("retryPeriod", retry, "must be greater than 0".to_owned());
        }
        if let (Some(lease), Some(renew)) = (lease, renew)
            && renew >= lease
        {
            fault("renewDeadline", renew, format!("must be shorter than leaseDuration ({})", GoDuration(lease)));
        }
        // client-go's JitterFactor.
        if let (Some(renew), Some(retry)) = (renew, retry)
            && retry.saturating_mul(6) / 5 >= renew
        {
            let why = format!("1.2 times this must be shorter than renewDeadline ({})", GoDuration(renew));
            fault("retryPeriod", retry, why);
        }
    }
}

/// Says what a mistyped field could have been.
fn unknown(name: &str, parent: Option<&Path>) -> String {
    let prefix = parent.map_or_else(String::new, |parent| format!("{parent}."));
    let mut known: Vec<&str> = FIELDS.iter().filter_map(|field| field.path.strip_prefix(&prefix)).collect();
    for field in &mut known {
        *field = field.split('.').next().unwrap_or_default();
    }
    known.dedup();
    format!("unknown field {name:?}; known here: {}", known.join(", "))
}

fn faults(form: ValueForm, path: &Path, value: &Value) -> Vec<Error> {
    let wrong_type = |wanted: &str| vec![Error::type_invalid(path, value, format!("must be {wanted}"))];
    match form {
        ValueForm::Flag => {
            if value.is_boolean() {
                Vec::new()
            } else {
                wrong_type("true or false")
            }
        }
        ValueForm::Port => match value.as_i64() {
            Some(1..=65535) => Vec::new(),
            Some(_) => vec![Error::invalid(path, value, "must be between 1 and 65535, inclusive")],
            None => wrong_type("a whole number"),
        },
        ValueForm::Nanoseconds => match value.as_i64() {
            Some(1..) => Vec::new(),
            Some(_) => vec![Error::invalid(path, value, "must be greater than 0")],
            None => wrong_type("a whole number of nanoseconds: 120000000000 is two minutes"),
        },
        ValueForm::Workers => match value.as_object() {
            Some(map) => map.iter().filter_map(|(kind, count)| workers(&path.key(kind.as_str()), count)).collect(),
            None => wrong_type("a map of Kind.group to a number"),
        },
        _ => match value.as_str() {
            Some(text) => text_fault(form, path, text).into_iter().collect(),
            None => wrong_type("text"),
        },
    }
}

fn workers(path: &Path, count: &Value) -> Option<Error> {
    match count.as_i64() {
        Some(1..=MOST_WORKERS) => None,
        Some(_) => Some(Error::invalid(path, count, format!("must be between 1 and {MOST_WORKERS}, inclusive"))),
        None => Some(Error::type_invalid(path, count, "must be a whole number")),
    }
}

fn text_fault(form: ValueForm, path: &Path, text: &str) -> Option<Error> {
    let invalid = |why: &str| Some(Error::invalid(path, text, why));
    let named = |faults: Vec<String>| faults.into_iter().next().map(|why| Error::invalid(path, text, why));
    match form {
        ValueForm::Duration => text.parse::<GoDuration>().err().and_then(invalid),
        ValueForm::Period => match text.parse() {
            Ok(GoDuration(period)) if period.is_zero() || period >= SHORTEST_PERIOD => None,
            Ok(_) => invalid("must be at least 1s, or 0 to turn it off"),
            Err(why) => invalid(why),
        },
        ValueForm::Budget => text
            .parse::<StopBudget>()
            .err()
            .and_then(|_| invalid(&format!("{}; negative is without limit", go_duration::HOW_TO_WRITE))),
        // Go's zero values: as if the field were not there.
        _ if text.is_empty() => None,
        ValueForm::Address => text.parse::<BindAddress>().err().and_then(|_| invalid(address::HOW_TO_WRITE)),
        ValueForm::Host if text != "localhost" && text.parse::<IpAddr>().is_err() => {
            invalid("write an IP address, localhost, or nothing for every interface")
        }
        ValueForm::Endpoint if !is_endpoint(text) => {
            invalid("write a path such as /readyz, of letters, digits and any of -._~/")
        }
        ValueForm::Namespace => named(dns1123_label(text)),
        ValueForm::ObjectName => named(dns1123_subdomain(text)),
        ValueForm::Lock if !LOCKS.contains(&text) => Some(Error::not_supported(path, text, &LOCKS)),
        _ => None,
    }
}

/// Paths that need no escape in a URL; the slash in front may be left out, as kubebuilder's documentation does.
fn is_endpoint(text: &str) -> bool {
    let name = text.strip_prefix('/').unwrap_or(text);
    !name.is_empty()
        && name != "livez"
        && !name.starts_with('/')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte))
}
