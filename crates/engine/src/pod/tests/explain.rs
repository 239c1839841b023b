//! Why a pod gets a set, or does not.

use serde_json::{Value, json};

use crate::pod::explain::{Explanation, Fate, explain};
use crate::testing::{Cluster, pod, review, set};

fn explained_in(namespace: &str, sets: &[Value], pod: &Value) -> Explanation {
    let cluster = Cluster::from_objects(sets);
    explain(review(namespace, pod).to_string().as_bytes(), &cluster.snapshot).unwrap()
}

fn lines(sets: &[Value], pod: &Value) -> Vec<String> {
    let explained = explained_in("shop", sets, pod);
    let line = |set: &crate::pod::explain::SetExplanation| {
        format!("{} {} {}: {}", set.why.reason, set.set, set.fate.as_str(), set.why.text)
    };
    explained.sets.iter().map(line).collect()
}

fn labelled(labels: Value) -> Value {
    let mut pod = pod(json!({}));
    pod["metadata"]["labels"] = labels;
    pod
}

#[test]
fn the_term_of_a_selector_that_the_pod_does_not_meet_is_named() {
    let terms = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "off", "operator": "DoesNotExist"},
    ]});
    let sets = [set("s", json!({"selector": terms}))];
    for (labels, expected) in [
        (json!({}), r#""app=web" does not match the pod, which has no label "app""#),
        (json!({"app": "db"}), r#""app=web" does not match the pod, whose label "app" is "db""#),
        (json!({"app": "web"}), r#""tier in (a,b)" does not match the pod, which has no label "tier""#),
        (json!({"app": "web", "tier": "a", "off": ""}), r#""!off" does not match the pod, whose label "off" is """#),
    ] {
        let expected = format!("NoMatch s not injected: spec.selector: {expected}");
        assert_eq!(lines(&sets, &labelled(labels)), [expected]);
    }
}

#[test]
fn the_label_that_a_namespace_lacks_is_named() {
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}});
    let by_label = set("l", json!({"namespaceSelector": {"matchLabels": {"stage": "prod"}}}));
    let by_value = set("v", json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}));
    let by_name = set("n", json!({"namespace": "bank"}));
    assert_eq!(
        lines(&[namespace, by_label, by_value, by_name], &pod(json!({}))),
        [
            r#"NoMatch l not injected: spec.namespaceSelector: "stage=prod" does not match the namespace "shop", which has no label "stage""#,
            r#"NoMatch n not injected: spec.namespace: the set is for namespace "bank", and the pod is in "shop""#,
            r#"NoMatch v not injected: spec.namespaceSelector: "team=b" does not match the namespace "shop", whose label "team" is "a""#,
        ]
    );
}

#[test]
fn sets_that_select_the_pod_say_what_the_webhook_decides() {
    let sets = [
        set("added", json!({"order": -1})),
        set("paused", json!({"injectionStrategy": {"paused": true}})),
        set("left", json!({})),
        set("skips", json!({"containers": [{"name": "app", "image": "x:1"}], "clashPolicy": "Skip"})),
    ];
    let mut pod = pod(json!({}));
    pod["metadata"]["annotations"] = json!({"outrider.dev/skip": "left"});
    let lines = lines(&sets, &pod);
    assert_eq!(lines[0], r#"Injected added injected: the pod gets containers "added""#);
    assert!(lines[1].starts_with("OptedOut left not injected: "), "{lines:?}");
    assert!(lines[2].starts_with("SetPaused paused not injected: "), "{lines:?}");
    assert!(lines[3].starts_with("ContainerClash skips not injected: "), "{lines:?}");
    let refused = explained_in("shop", &[set("app", json!({}))], &pod);
    assert!(refused.is_refused());
    assert_eq!((refused.sets[0].fate, refused.sets[0].why.reason.as_str()), (Fate::Refused, "ContainerClash"));
}

#[test]
fn a_pod_that_no_set_is_asked_about_says_why() {
    let sets = [set("s", json!({}))];
    let by_name = explained_in("kube-system", &sets, &pod(json!({}))).pod.unwrap();
    assert_eq!(by_name.reason.as_str(), "NamespaceExcluded");
    assert!(by_name.text.contains("by its name"), "{}", by_name.text);
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": {"outrider.dev/exclude": ""}}});
    let by_label = explained_in("shop", &[sets[0].clone(), namespace], &pod(json!({})));
    assert!(by_label.pod.unwrap().text.contains("by its label") && by_label.sets.is_empty());
}

#[test]
fn a_pod_with_an_older_form_of_a_set_is_neither_injected_nor_without_it() {
    let with_image = |image: &str| set("log", json!({"containers": [{"name": "log", "image": image}]}));
    let old = Cluster::from_objects(&[with_image("log:1")]).mutate(&pod(json!({}))).pod;
    let expected = "Outdated log outdated: the pod carries another form of SidecarSet \"log\" than the current one: container \
                    \"log\" differs in image; it is left as it is";
    assert_eq!(lines(&[with_image("log:2")], &old), [expected]);
    let explained = explained_in("shop", &[with_image("log:2")], &old);
    assert!(explained.sets[0].fate == Fate::Outdated && !explained.is_refused());
}

#[test]
fn what_the_pods_own_containers_get_is_named() {
    let app = json!([
        {"env": [{"name": "B", "value": "1"}, {"name": "A", "value": "1"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        {"containerNames": ["other"], "env": [{"name": "C", "value": "1"}]},
    ]);
    let spec = json!({"containers": [], "appContainers": app, "volumes": [{"name": "v", "emptyDir": {}}]});
    let containers = json!([{"name": "app", "image": "a:1", "env": [{"name": "B", "value": "2"}]}, {"name": "other", "image": "a:1"}]);
    let created = pod(json!({"containers": containers}));
    let explained = explained_in("shop", &[set("s", spec.clone())], &created).sets.remove(0);
    assert_eq!(
        explained.why.text,
        r#"the pod gets in container "app" variables "A" and mounts at "/v" and in container "other" variables "A", "B", "C" and mounts at "/v""#
    );
    let names: Vec<&str> = explained.app_containers.iter().map(|addition| addition.container.as_str()).collect();
    assert_eq!(names, ["app", "other"]);

    let injected = Cluster::from_objects(&[set("s", spec.clone())]).mutate(&created).pod;
    let again = explained_in("shop", &[set("s", spec)], &injected).sets.remove(0);
    assert_eq!((again.fate, again.app_containers), (Fate::Injected, vec![]));
}
