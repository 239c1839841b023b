//! Pods that say more about sets than the leader keeps of a pod.

use crate::doctor::facts::Facts;
use crate::doctor::report::{Check, Finding, Severity};
use crate::sidecarset::controller::record::PodRecord;

/// What is wrong with them: one finding for all of them, as there may be thousands.
pub fn examine(facts: &Facts) -> Option<Finding> {
    let clipped = &facts.clipped_pods;
    let object = format!("pod/{}", clipped.first.first()?);
    let count = clipped.count;
    let more = if count > clipped.first.len() { ", …" } else { "" };
    let found = format!(
        "{count} pods, by namespace and name, have more labels, or say more about sets, than the leader keeps: {}{more}; rollouts and counts \
         may leave them out: {}",
        clipped.first.join(", "),
        PodRecord::limits()
    );
    let remedy = "remove labels from them, shorten their annotations outrider.dev/injected and outrider.dev/skip and those of OpenKruise, or \
                  replace them";
    let (severity, check) = (Severity::Warning, Check::PodClipped);
    Some(Finding { severity, check, object, webhook: None, found, remedy: remedy.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::ClippedPods;

    #[test]
    fn pods_that_say_too_much_are_one_finding_that_names_the_first() {
        assert_eq!(examine(&Facts::default()), None);
        let first = vec!["shop/a".to_owned(), "shop/b".to_owned()];
        let facts = |count| Facts { clipped_pods: ClippedPods { count, first: first.clone() }, ..Facts::default() };
        let found = examine(&facts(150)).unwrap();
        assert_eq!(found.object, "pod/shop/a");
        assert!(found.found.starts_with("150 pods, "), "{}", found.found);
        assert!(found.found.contains("shop/a, shop/b, …; "), "{}", found.found);
        assert!(examine(&facts(2)).unwrap().found.contains("shop/a, shop/b; "));
    }
}
