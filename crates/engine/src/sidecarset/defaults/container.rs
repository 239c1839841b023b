//! What the API server fills into a container of a pod.
//!
//! Follows `SetObjectDefaults_Pod` of `k8s.io/kubernetes/pkg/apis/core/v1` (1.36). Requests taken from limits are left to the
//! API server: `SetDefaults_Pod` does that on the pod, and a `LimitRange` may have a say before.

use admission::format::Quantity;
use admission::patch::{PatchError, escape};
use serde_json::Value;

use super::filler::Absent::{Missing, Zero};
use super::filler::Filler;

/// The fields of a container in which something is filled, probes among them.
pub const FIELDS: [&str; 7] =
    ["ports", "env", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];

/// Fills these [`FIELDS`] of the container at `at`.
pub fn fill(filler: &mut Filler<'_>, at: &str, present: Vec<&'static str>) -> Result<(), PatchError> {
    for field in present {
        let place = format!("{at}/{field}");
        match field {
            "ports" => {
                for port in filler.maps_in(&place) {
                    filler.fill(&port, "protocol", Zero, "TCP")?;
                }
            }
            "env" => variables(filler, at)?,
            "resources" => resources(filler, &place)?,
            "lifecycle" => {
                for hook in ["postStart", "preStop"] {
                    http_get(filler, &format!("{place}/{hook}"))?;
                }
            }
            _ => fill_probe(filler, &place)?,
        }
    }
    Ok(())
}

/// Fills the variables of the container at `at`.
pub fn variables(filler: &mut Filler<'_>, at: &str) -> Result<(), PatchError> {
    for variable in filler.maps_in(&format!("{at}/env")) {
        field_ref(filler, &format!("{variable}/valueFrom"))?;
        let file = format!("{variable}/valueFrom/fileKeyRef");
        if filler.is_map(&file) {
            filler.fill(&file, "optional", Missing, false)?;
        }
    }
    Ok(())
}

/// Fills `fieldRef` of the map at `at`, which is a source of a value.
pub fn field_ref(filler: &mut Filler<'_>, at: &str) -> Result<(), PatchError> {
    let pointer = format!("{at}/fieldRef");
    if filler.is_map(&pointer) {
        filler.fill(&pointer, "apiVersion", Zero, "v1")?;
    }
    Ok(())
}

fn fill_probe(filler: &mut Filler<'_>, at: &str) -> Result<(), PatchError> {
    if !filler.is_map(at) {
        return Ok(());
    }
    for (field, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        filler.fill(at, field, Zero, value)?;
    }
    http_get(filler, at)?;
    let grpc = format!("{at}/grpc");
    if filler.is_map(&grpc) {
        filler.fill(&grpc, "service", Missing, "")?;
    }
    Ok(())
}

fn http_get(filler: &mut Filler<'_>, handler: &str) -> Result<(), PatchError> {
    let pointer = format!("{handler}/httpGet");
    if filler.is_map(&pointer) {
        filler.fill(&pointer, "path", Zero, "/")?;
        filler.fill(&pointer, "scheme", Zero, "HTTP")?;
    }
    Ok(())
}

/// Rounds limits and requests at `at` up to thousandths, where that changes them.
pub fn resources(filler: &mut Filler<'_>, at: &str) -> Result<(), PatchError> {
    for list in ["limits", "requests"] {
        let pointer = format!("{at}/{list}");
        let Some(Value::Object(amounts)) = filler.get(&pointer) else { continue };
        let rounded: Vec<_> =
            amounts.iter().filter_map(|(name, amount)| Some((escape(name).into_owned(), round(amount)?))).collect();
        for (name, amount) in rounded {
            filler.0.set(&format!("{pointer}/{name}"), amount.into())?;
        }
    }
    Ok(())
}

fn round(amount: &Value) -> Option<String> {
    let exact: Quantity = serde::Deserialize::deserialize(amount).ok()?;
    let mut rounded = exact.clone();
    rounded.round_up_to_milli();
    (rounded != exact).then(|| rounded.to_string())
}
