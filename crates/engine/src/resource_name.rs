//! Names of what containers ask for, and which amounts they go with (`k8s.io/kubernetes/pkg/apis/core/helper`).

use admission::format::Quantity;
use admission::format::names::{SUBDOMAIN_MAX_BYTES, qualified_name};

const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What the names of extended resources begin with in quotas.
const FOR_QUOTA: &str = "requests.";
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
    let prefix_fits = name.find('/').is_some_and(|domain| FOR_QUOTA.len() + domain <= SUBDOMAIN_MAX_BYTES);
    !is_native(name) && !name.starts_with(FOR_QUOTA) && prefix_fits && qualified_name(name).is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_resource_has_a_name_that_is_good_for_a_quota() {
        let domain = |bytes: usize| format!("{}/x", "a.".repeat(200)[..bytes].trim_end_matches('.'));
        for (name, expected) in [
            ("nvidia.com/gpu".to_owned(), true),
            ("cpu".to_owned(), false),
            ("/gpu".to_owned(), false),
            ("kubernetes.io/gpu".to_owned(), false),
            ("requests.nvidia.com/gpu".to_owned(), false),
            ("nvidia.com/gpu/x".to_owned(), false),
            ("Nvidia.com/gpu".to_owned(), false),
            (domain(243), true),
            (domain(245), false),
        ] {
            assert_eq!(is_extended(&name), expected, "{name}");
            let by_the_book = !is_native(&name)
                && !name.starts_with("requests.")
                && qualified_name(&format!("requests.{name}")).is_empty();
            assert_eq!(is_extended(&name), by_the_book, "{name}");
        }
    }
}
