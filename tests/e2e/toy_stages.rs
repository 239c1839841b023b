//! What a kind may decide about beside its own objects: a stage on pods that asks a question, and validators of other resources, whose
//! entries exist only while an object needs them.

use admission::question::{Access, Question};
use admission::registry::{Phase, Resource, Rule};
use admission::{Denial, Findings, Known, Operation, PatchBuilder, Reason, Registry, Request, Unserved, Validating};
use engine::demand::Demand;
use engine::pod::stages::{PodRequest, Stage, Step};
use engine::snapshot::Snapshot;
use outrider::crd::{Definition, Scope, schema};
use outrider::kind::{Family, Kind};
use outrider::permissions::rule;
use serde_json::{Value, json};

use crate::process::eventually;
use crate::toy_kinds::served;

const SERVICES: Rule = Rule {
    on_demand: true,
    ..Rule::new(
        "services.toy.example.com",
        &[Resource { group: "", version: "v1", resource: "services", kind: "Service" }],
        &[Operation::Create],
    )
};

const EPHEMERAL: Rule = Rule {
    on_demand: true,
    ..Rule::new(
        "ephemeral.toy.example.com",
        &[Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" }],
        &[Operation::Update],
    )
};

/// The row.
pub static TOYS: Kind = Kind {
    rules: || vec![rule("authorization.k8s.io", &["subjectaccessreviews"], &[], &["create"])],
    webhooks: |registry: Registry<Snapshot>| registry.validating(SERVICES, Refusing).validating(EPHEMERAL, Refusing),
    stages: &[&Counting],
    demands: |snapshot| {
        let rules = [SERVICES, EPHEMERAL].into_iter().filter(|_| !snapshot.sets.is_empty());
        rules.map(|rule| Demand::of(Phase::Validating, rule)).collect()
    },
    ..Kind::new("toy", Family::Workshop, |_| {
        let schema = schema::root("Toy.", schema::object("Spec.", []), schema::object("Status.", []));
        let (group, version, kind, plural) = ("toy.example.com", "v1", "Toy", "toys");
        let (scope, columns, scale) = (Scope::Cluster, Vec::new(), None);
        Definition { group, version, kind, plural, scope, schema, columns, scale }.into_crd()
    })
};

/// Refuses whatever says `forbidden` in it.
struct Refusing;

impl Validating<Snapshot> for Refusing {
    type Object<'a> = Value;

    fn validate(&self, request: &Request<'_, Value>, _: &Snapshot, findings: &mut Findings) -> Result<(), Unserved> {
        if request.object.as_ref().is_some_and(|object| object.to_string().contains("forbidden")) {
            findings.denial = Some((Reason::INVALID, Denial::forbidden(request, "a toy forbids it")));
        }
        Ok(())
    }
}

/// Writes how many containers a pod has, and lets only those run what is labelled `toy` who may run toys.
#[derive(Debug)]
struct Counting;

impl Stage for Counting {
    fn is_idle(&self, snapshot: &Snapshot) -> bool {
        snapshot.sets.is_empty()
    }

    fn mutate(&self, pod: &mut PatchBuilder, request: &PodRequest<'_>, _: &Snapshot) -> Result<Step, Unserved> {
        let mut step = Step { reason: Some(Reason::new("Counted")), ..Step::default() };
        if pod.document()["metadata"]["labels"].get("toy").is_some() {
            let user = &request.user_info;
            let known = request.ask(Question::Access(Access {
                verb: "run".to_owned(),
                group: "toy.example.com".to_owned(),
                resource: "toys".to_owned(),
                ..Access::by(user)
            }))?;
            if let Known::Allowed(false, _) = known {
                let text = format!("{} may not run toys", user.username);
                step.denial = Some((Reason::new("NoToys"), Denial::forbidden(request, text)));
                return Ok(step);
            }
        }
        let containers = pod.document()["spec"]["containers"].as_array().map_or(0, Vec::len);
        let counted = pod.set("/metadata/annotations/toy.example.com~1containers", json!(containers.to_string()));
        counted.map_err(|_| Unserved::Fault)?;
        Ok(step)
    }
}

const SET: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: log}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: log, image: 'log:1'}]
";

const USER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: pods, namespace: default}
rules: [{apiGroups: [''], resources: [pods], verbs: ['*']}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pods, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: pods}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kim}]
";

const MAY_RUN: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: toys}
rules: [{apiGroups: [toy.example.com], resources: [toys], verbs: [run]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: toys}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: toys}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kim}]
";

#[test]
#[ignore = "needs a control plane: make test"]
fn a_stage_on_pods_asks_a_question_and_services_and_ephemeral_containers_are_validated() {
    let cluster = served();
    let kubectl = |args: &[&str], text: Option<&str>| cluster.kubectl(args, text).unwrap();
    let service = |name: &str, word: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"is": word}},
            "spec": {"ports": [{"port": 80}]}})
        .to_string()
    };
    let create = ["create", "-n=default", "-f=-"];
    // No entry, no question: nothing is needed yet.
    assert!(kubectl(&create, Some(&service("before", "forbidden"))).success());

    cluster.kubectl_ok(&["apply", "-f=-"], Some(SET)).unwrap();
    let dry = ["create", "-n=default", "--dry-run=server", "-f=-"];
    let refused = |text: &str| kubectl(&dry, Some(text)).stderr.contains("a toy forbids it");
    eventually("services are validated", || refused(&service("after", "forbidden")));
    assert!(kubectl(&create, Some(&service("after", "welcome"))).success());

    let pod = |name: &str, labels: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]}})
        .to_string()
    };
    let counted = |name: &str, labels: Value| -> String {
        let args =
            ["create", "-n=default", "-o=jsonpath={.metadata.annotations.toy\\.example\\.com/containers}", "-f=-"];
        cluster.kubectl_ok(&args, Some(&pod(name, labels))).unwrap()
    };
    eventually("pods get their default account", || kubectl(&["get", "-n=default", "sa/default"], None).success());
    assert_eq!(counted("with", json!({"app": "web"})), "2", "what sets added is seen");
    assert_eq!(counted("without", json!({"app": "other"})), "1");

    let patch = |word: &str| {
        let container = json!({"name": word, "image": "sh"});
        let patch = json!({"spec": {"ephemeralContainers": [container]}}).to_string();
        kubectl(&["patch", "-n=default", "pod/with", "--subresource=ephemeralcontainers", "-p", &patch], None)
    };
    assert!(patch("forbidden").stderr.contains("a toy forbids it"));
    assert!(patch("welcome").success());

    cluster.kubectl_ok(&["apply", "-f=-"], Some(USER)).unwrap();
    let as_kim = ["create", "-n=default", "--dry-run=server", "--as=kim", "-f=-"];
    let asked = pod("asks", json!({"toy": "yes"}));
    eventually("the question is answered with no", || {
        kubectl(&as_kim, Some(&asked)).stderr.contains("kim may not run toys")
    });
    cluster.kubectl_ok(&["apply", "-f=-"], Some(MAY_RUN)).unwrap();
    eventually("the answer is yes once the last one is forgotten", || kubectl(&as_kim, Some(&asked)).success());

    cluster.kubectl_ok(&["delete", "sidecarset/log"], None).unwrap();
    eventually("services are left alone again", || !refused(&service("again", "forbidden")));
}
