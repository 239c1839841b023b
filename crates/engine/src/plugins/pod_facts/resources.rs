//! Requests and limits, as far as the class of a pod depends on them.

use admission::format::Quantity;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Requests and limits, raw.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct Resources<'a> {
    /// Requests by resource.
    #[serde(borrow)]
    pub requests: Option<&'a RawValue>,
    /// Limits by resource.
    #[serde(borrow)]
    pub limits: Option<&'a RawValue>,
}

admission::only_objects!(Resources<'a>);

/// Whether a pod asks for no CPU and no memory (`ComputePodQOS` of k8s.io/kubernetes/pkg/apis/core/v1/helper/qos). What is asked for
/// the pod as a whole goes before what its containers ask for.
pub fn is_best_effort<'r, 'a: 'r>(
    of_pod: Option<&'r Resources<'a>>,
    mut of_containers: impl Iterator<Item = &'r Resources<'a>>,
) -> bool {
    match of_pod.filter(|of_pod| of_pod.any(|_| true)) {
        Some(of_pod) => !of_pod.asks(),
        None => !of_containers.any(Resources::asks),
    }
}

impl<'a> Resources<'a> {
    /// Requests and limits.
    pub const fn lists(&self) -> [Option<&'a RawValue>; 2] {
        [self.requests, self.limits]
    }

    fn asks(&self) -> bool {
        self.any(|quantity| quantity.is_some_and(|some| !some.is_zero() && !some.is_negative()))
    }

    /// Whether CPU or memory is among requests or limits, with such a quantity.
    fn any(&self, fits: impl Fn(Option<Quantity>) -> bool) -> bool {
        let mut found = false;
        for list in [self.requests, self.limits].into_iter().flatten() {
            admission::raw::members(list, |key, value| {
                if matches!(key.name(), "cpu" | "memory") {
                    let text = admission::raw::string(value).unwrap_or_else(|| value.get().into());
                    found |= fits(text.parse().ok());
                }
            });
        }
        found
    }
}
