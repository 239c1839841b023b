use super::{Phase, Registry, Resource, Rule};
use crate::conversion::{Conversion, Hub};
use crate::endpoint::{Mutating, Validating};
use crate::reason::Reason;
use crate::reply::Verdict;
use crate::review::{Operation, Request, Review};
use crate::unserved::Unserved;
use serde::de::IgnoredAny;
use serde_json::json;

const POD: Rule =
    Rule::new("x.acme.example", &[Resource { group: "", version: "v1", resource: "pods", kind: "Pod" }], CREATE);
const SET: Rule = Rule::new(
    "x.acme.example",
    &[Resource { group: "apps.outrider.dev", version: "v1alpha1", resource: "sidecarsets", kind: "SidecarSet" }],
    CREATE,
);
const BACKUP: Rule = Rule::new(
    "x.acme.example",
    &[Resource { group: "acme.example", version: "v1", resource: "backups", kind: "Backup" }],
    CREATE,
);
const CREATE: &[Operation] = &[Operation::Create];

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
        (POD, "/mutate--v1-pod", "/validate--v1-pod"),
        (SET, "/mutate-apps-outrider-dev-v1alpha1-sidecarset", "/validate-apps-outrider-dev-v1alpha1-sidecarset"),
    ];
    for (rule, mutating, validating) in cases {
        assert_eq!(rule.path(Phase::Mutating), mutating);
        assert_eq!(rule.path(Phase::Validating), validating);
    }
}

#[test]
fn the_path_of_a_sub_resource_ends_with_its_name_and_what_is_any_is_called_so() {
    const RESIZE: &[Resource] = &[Resource { group: "", version: "v1", resource: "pods/resize", kind: "Pod" }];
    const ANY: &[Resource] = &[Resource { group: "*", version: "*", resource: "*/*", kind: "*" }];
    for (resources, path) in [(RESIZE, "/validate--v1-pod-resize"), (ANY, "/validate-any-any-any-any")] {
        assert_eq!(Rule { resources, ..POD }.path(Phase::Validating), path);
    }
}

#[test]
fn a_rule_serves_its_resources_and_nothing_else() {
    const SEVERAL: &[Resource] = &[
        Resource { group: "", version: "v1", resource: "services", kind: "Service" },
        Resource { group: "", version: "v1", resource: "pods/binding", kind: "Binding" },
        Resource { group: "apps", version: "*", resource: "deployments/*", kind: "*" },
    ];
    let any = Resource { group: "*", version: "*", resource: "*/*", kind: "*" };
    let serves = |served: &[Resource], about: (&str, &str, &str, &str, &str)| {
        let (group, version, kind, resource, sub) = about;
        let request = json!({"uid": "u", "operation": "CREATE", "subResource": sub,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": resource}});
        let body =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
        let review = Review::<IgnoredAny>::parse(body.as_bytes()).unwrap();
        let rule = Rule { resources: served.to_vec().leak(), ..POD };
        rule.serves(&review.request)
    };
    for (about, expected) in [
        (("", "v1", "Service", "services", ""), true),
        (("", "v1", "Service", "services", "status"), false),
        (("", "v1", "Service", "pods", ""), false),
        (("", "v2", "Service", "services", ""), false),
        (("x", "v1", "Service", "services", ""), false),
        (("", "v1", "Pod", "services", ""), false),
        (("", "v1", "Binding", "pods", "binding"), true),
        (("", "v1", "Pod", "pods", ""), false),
        (("apps", "v1", "Deployment", "deployments", ""), true),
        (("apps", "v1beta1", "Scale", "deployments", "scale"), true),
        (("apps", "v1", "ReplicaSet", "replicasets", ""), false),
    ] {
        assert_eq!(serves(SEVERAL, about), expected, "{about:?}");
        assert!(serves(&[any], about), "{about:?}");
    }
}

#[test]
fn what_a_review_leaves_out_is_not_compared() {
    let body = |more: &str| {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"CREATE"{more}}}}}"#
        )
    };
    for (more, expected) in [
        ("", true),
        (r#","kind":{"version":"v1","kind":"Pod"}"#, true),
        (r#","kind":{"group":"apps","version":"v1","kind":"Deployment"}"#, false),
        (r#","resource":{"group":"apps","version":"v1","resource":"deployments"}"#, false),
        (r#","subResource":"status""#, false),
    ] {
        let body = body(more);
        let review = Review::<IgnoredAny>::parse(body.as_bytes()).unwrap();
        assert_eq!(POD.serves(&review.request), expected, "{more}");
    }
}

#[test]
fn entries_are_found_by_path_and_listed_in_the_order_of_registration() {
    let registry = Registry::default()
        .validating(POD, Says("v"))
        .mutating(POD, Says("first"))
        .mutating(BACKUP, Says("m"))
        .mutating(POD, Says("second"));
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
