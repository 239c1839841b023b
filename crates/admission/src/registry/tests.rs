use super::{MatchPolicy, Phase, Registry, Rule, Scope};
use crate::conversion::{Conversion, Hub};
use crate::endpoint::{Mutating, Validating};
use crate::reason::Reason;
use crate::reply::Verdict;
use crate::review::{Operation, Request};
use crate::unserved::Unserved;

const fn rule(group: &'static str, version: &'static str, kind: &'static str) -> Rule {
    Rule {
        group,
        version,
        kind,
        resource: "",
        scope: Scope::Namespaced,
        operations: &[Operation::Create],
        match_policy: MatchPolicy::Exact,
        name: "x.acme.example",
    }
}

struct Says(&'static str);

impl Mutating<()> for Says {
    type Object<'a> = serde::de::IgnoredAny;
    fn mutate<'a>(&self, _: &Request<'a, Self::Object<'a>>, (): &()) -> Result<Verdict, Unserved> {
        Ok(Verdict::allow(Reason::new(self.0)))
    }
}

impl Validating<()> for Says {
    type Object<'a> = serde::de::IgnoredAny;
}

#[test]
fn paths_are_made_from_group_version_and_kind() {
    let cases = [
        (rule("", "v1", "Pod"), "/mutate--v1-pod", "/validate--v1-pod"),
        (
            rule("apps.outrider.dev", "v1alpha1", "SidecarSet"),
            "/mutate-apps-outrider-dev-v1alpha1-sidecarset",
            "/validate-apps-outrider-dev-v1alpha1-sidecarset",
        ),
    ];
    for (rule, mutating, validating) in cases {
        assert_eq!(rule.path(Phase::Mutating), mutating);
        assert_eq!(rule.path(Phase::Validating), validating);
    }
}

#[test]
fn entries_are_found_by_path_and_listed_in_the_order_of_registration() {
    let pod = || rule("", "v1", "Pod");
    let registry = Registry::default()
        .validating(pod(), Says("v"))
        .mutating(pod(), Says("first"))
        .mutating(rule("acme.example", "v1", "Backup"), Says("m"))
        .mutating(pod(), Says("second"));
    let paths: Vec<_> = registry.entries().iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["/validate--v1-pod", "/mutate--v1-pod", "/mutate-acme-example-v1-backup"]);
    for path in paths {
        let entry = registry.find(path).unwrap();
        assert_eq!(entry.rule.path(entry.phase), path);
    }
    assert!(registry.find("/mutate--v1-pod/").is_none());

    let body =
        br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE"}}"#;
    let answer = registry.find("/mutate--v1-pod").unwrap().endpoint.answer(body, &()).unwrap();
    assert_eq!(answer.reason.as_str(), "second", "of one path the last registration counts");
}

#[derive(serde::Serialize, serde::Deserialize)]
struct V1 {}
impl Hub for V1 {
    const VERSION: &'static str = "v1";
}
#[derive(serde::Serialize, serde::Deserialize)]
struct V2 {}
impl Hub for V2 {
    const VERSION: &'static str = "v2";
}

#[test]
fn of_one_kind_the_last_conversion_counts() {
    let registry = Registry::<()>::default()
        .converting(Conversion::new::<V1>("acme.example", "Backup"))
        .converting(Conversion::new::<V1>("acme.example", "Restore"))
        .converting(Conversion::new::<V2>("acme.example", "Backup"));
    let listed: Vec<_> =
        registry.conversions().iter().map(|c| (c.group(), c.kind(), c.versions().collect::<Vec<_>>())).collect();
    assert_eq!(listed, [("acme.example", "Restore", vec!["v1"]), ("acme.example", "Backup", vec!["v2"])]);
}
