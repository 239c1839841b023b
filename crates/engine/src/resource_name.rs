//! Names of what containers ask for, and which amounts they go with (`k8s.io/kubernetes/pkg/apis/core/helper`).

use admission::format::Quantity;
use admission::format::names::qualified_name;

const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// The beginning of the names of huge pages.
pub const HUGE_PAGES: &str = "hugepages-";

/// What is wrong with a name (`validateContainerResourceName` of k8s.io/kubernetes/pkg/apis/core/validation).
pub fn faults(name: &str) -> Vec<String> {
    let wrong = qualified_name(name);
    if !wrong.is_empty() || STANDARD.contains(&name) || name.starts_with(HUGE_PAGES) {
        return wrong;
    }
    if !name.contains('/') {
        return vec!["must be a standard resource for containers".to_owned()];
    }
    if is_native(name) || is_extended(name) {
        return Vec::new();
    }
    vec!["doesn't follow extended resource name standard".to_owned()]
}

/// What is wrong with an amount of it in a container.
pub fn amount_faults(name: &str, amount: &Quantity) -> Vec<String> {
    let mut faults = Vec::new();
    if amount.is_negative() {
        faults.push("must be greater than or equal to 0".to_owned());
    }
    if is_extended(name) && amount.milli_value() % 1000 != 0 {
        faults.push("must be an integer".to_owned());
    }
    if name.starts_with(HUGE_PAGES) && !is_in_pages(name, amount) {
        faults.push(format!("{amount} is not positive integer multiple of {name}"));
    }
    faults
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// The name must also be good for a quota, with `requests.` in front (`IsExtendedResourceName`).
pub fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether the amount is a number of pages of the size in the name (`IsHugePageResourceValueDivisible`).
fn is_in_pages(name: &str, amount: &Quantity) -> bool {
    let size = name.strip_prefix(HUGE_PAGES).and_then(|size| size.parse::<Quantity>().ok());
    size.is_some_and(|size| {
        size.value() > 0 && size.milli_value() % 1000 == 0 && amount.value().checked_rem(size.value()) == Some(0)
    })
}

/// Whether a limit of it may be more than the request.
pub fn may_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}
