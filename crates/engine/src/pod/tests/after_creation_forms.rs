//! What may be done to a pod that carries a must in another form than the current one: an older one that new pods get, or got when it
//! was created, or that of a canary.

use admission::Decision::{self, Allowed, Denied};
use serde_json::{Value, json};

use super::canary::canary;
use super::revisions::{form, pinned, revision};
use crate::testing::{Cluster, Reply, pod, review, set};

/// What becomes of the older form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pin {
    /// New pods get it.
    Held,
    /// New pods that the update selector matches get the current form, and this is one.
    Released,
    /// New pods are to get it, and it is not there.
    Missing,
}

/// What the pod has.
#[derive(Debug, Clone, Copy)]
enum Has {
    Older,
    Current,
    /// Nothing of the set.
    Nothing,
}

/// A must with a container of one name once, and of another or the same now.
struct Forms {
    older: &'static str,
    current: &'static str,
}

impl Forms {
    fn current(&self, mut more: Value) -> Value {
        more["optOut"] = json!("Denied");
        form(&[self.current], 2, more)
    }

    fn cluster(&self, pin: Pin) -> Cluster {
        let selector = json!({"selector": {"matchLabels": {"app": "web"}}});
        let update = if pin == Pin::Released { selector } else { json!({}) };
        let mut objects = vec![self.current(pinned("Always", update))];
        let older = form(&[self.older], 1, json!({}));
        objects.extend((pin != Pin::Missing).then(|| revision(&older, "s", "old")));
        Cluster::from_objects(&objects)
    }

    /// The pod, with what `app` needs in front.
    fn pod(&self, has: Has, own: &Value) -> Value {
        let containers: Vec<Value> =
            [json!({"name": "app", "image": "shop:1"})].into_iter().chain(own.as_array().unwrap().clone()).collect();
        let pod = pod(json!({"containers": containers}));
        match has {
            Has::Older => self.cluster(Pin::Held).mutate(&pod).pod,
            Has::Current => Cluster::from_objects(&[self.current(json!({}))]).mutate(&pod).pod,
            Has::Nothing => pod,
        }
    }
}

pub(super) fn update(cluster: &Cluster, sub_resource: &str, old: &Value, new: &Value) -> Reply {
    let mut review = review("shop", new);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["subResource"] = sub_resource.into();
    review["request"]["oldObject"] = old.clone();
    cluster.ask("/validate--v1-pod-update", &review).unwrap()
}

fn with(pod: &Value, container: &str, field: &str, value: Value) -> Value {
    let mut pod = pod.clone();
    let containers = pod["spec"]["containers"].as_array_mut().unwrap();
    containers.iter_mut().find(|it| it["name"] == container).unwrap()[field] = value;
    pod
}

/// A change of an image, or of resources that the set leaves open.
fn changed(pod: &Value, container: &str, to: &str) -> Value {
    match to {
        "resized" => with(pod, container, "resources", json!({"limits": {"cpu": "1"}})),
        image => with(pod, container, "image", json!(image)),
    }
}

const ALL: [Pin; 3] = [Pin::Held, Pin::Released, Pin::Missing];

/// A case: what the pod has, its own containers, the container that is changed, to what, and the decision with each pin.
type Row = (&'static str, Has, Value, &'static str, &'static str, [Decision; 3]);

/// What each pin makes of the change of a container of the pod.
fn check(forms: &Forms, rows: &[Row]) {
    for (case, has, own, container, to, expected) in rows {
        let old = forms.pod(*has, own);
        let new = changed(&old, container, to);
        for (pin, expected) in ALL.into_iter().zip(expected) {
            let sub_resource = if *to == "resized" { "resize" } else { "" };
            let reply = update(&forms.cluster(pin), sub_resource, &old, &new);
            assert_eq!(reply.decision, *expected, "{case}, {pin:?}: {}", reply.message);
        }
    }
}

#[test]
fn a_must_is_judged_by_the_form_that_the_pod_has_and_what_is_not_the_musts_is_left_alone() {
    let none = || json!([]);
    check(
        &Forms { older: "log", current: "log" },
        &[
            ("the app's image", Has::Older, none(), "app", "shop:2", [Allowed; 3]),
            ("the app's resources", Has::Older, none(), "app", "resized", [Allowed; 3]),
            ("an image of nobody's", Has::Older, none(), "log", "evil:1", [Denied; 3]),
            ("the current image, as a rollout does", Has::Older, none(), "log", "log:2", [Allowed; 3]),
            // What is not known of it is not taken for open.
            ("resources that the set leaves open", Has::Older, none(), "log", "resized", [Allowed, Allowed, Denied]),
            ("the same in the current form", Has::Current, none(), "log", "resized", [Allowed; 3]),
            ("back to the older image", Has::Current, none(), "log", "log:1", [Denied; 3]),
        ],
    );
}

#[test]
fn a_container_that_only_the_older_form_has_may_not_become_another_and_one_of_the_pods_may() {
    let own = || json!([{"name": "dns", "image": "mine:1"}]);
    let none = || json!([]);
    check(
        &Forms { older: "dns", current: "log" },
        &[
            ("an image of nobody's", Has::Older, none(), "dns", "evil:1", [Denied; 3]),
            ("resources that the set leaves open", Has::Older, none(), "dns", "resized", [Allowed, Allowed, Denied]),
            ("the app's image", Has::Older, none(), "app", "shop:2", [Allowed; 3]),
            ("the pod's own of that name, beside the current form", Has::Current, own(), "dns", "mine:2", [Allowed; 3]),
            ("the pod's own of that name, without the set", Has::Nothing, own(), "dns", "mine:2", [Allowed; 3]),
        ],
    );
}

#[test]
fn the_refusal_says_in_what_the_pods_form_differs_or_that_it_cannot_be_read() {
    let forms = Forms { older: "dns", current: "log" };
    let old = forms.pod(Has::Older, &json!([]));
    let message = |pin| update(&forms.cluster(pin), "", &old, &changed(&old, "dns", "evil:1")).message;
    let start = "pod must carry SidecarSet \"s\" (spec.optOut: Denied), and container dns may not become another: ";
    for (pin, why) in [
        (Pin::Held, "differs from what the set injects (image \"dns:1\") in image"),
        (Pin::Missing, "no ControllerRevision of the set has the custom version \"old\""),
    ] {
        let found = message(pin);
        assert!(found.contains(start) && found.contains(why), "{found}");
    }
}

#[test]
fn labels_of_a_must_are_not_lost_in_its_older_form_and_gained_only_with_a_form_that_new_pods_get() {
    let forms = Forms { older: "dns", current: "log" };
    let relabelled = |pod: &Value, app: &str| {
        let mut pod = pod.clone();
        pod["metadata"]["labels"] = json!({"app": app});
        pod
    };
    let own = json!([{"name": "dns", "image": "mine:1"}]);
    for (case, has, own, lost, gained) in [
        ("the older form", Has::Older, json!([]), [Denied; 3], [Allowed, Denied, Denied]),
        ("the current form", Has::Current, json!([]), [Denied; 3], [Allowed; 3]),
        ("nothing", Has::Nothing, json!([]), [Allowed; 3], [Denied; 3]),
        ("nothing, and its own container", Has::Nothing, own, [Allowed; 3], [Denied; 3]),
    ] {
        let pod = forms.pod(has, &own);
        let other = relabelled(&pod, "other");
        for (pin, (lost, gained)) in ALL.into_iter().zip(lost.into_iter().zip(gained)) {
            let cluster = forms.cluster(pin);
            assert_eq!(update(&cluster, "", &pod, &other).decision, lost, "{case} lost, {pin:?}");
            assert_eq!(update(&cluster, "", &other, &pod).decision, gained, "{case} gained, {pin:?}");
        }
        let mut more = pod.clone();
        more["metadata"]["labels"]["more"] = json!("1");
        for pin in ALL {
            assert_eq!(update(&forms.cluster(pin), "", &pod, &more).decision, Allowed, "{case}, {pin:?}");
        }
    }
}

#[test]
fn an_ephemeral_container_may_not_target_a_container_that_only_the_older_form_has() {
    let forms = Forms { older: "dns", current: "log" };
    let own = json!([{"name": "dns", "image": "mine:1"}]);
    for (has, own, expected) in
        [(Has::Older, json!([]), Denied), (Has::Current, own.clone(), Allowed), (Has::Nothing, own, Allowed)]
    {
        let old = forms.pod(has, &own);
        let mut new = old.clone();
        new["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "sh", "targetContainerName": "dns"}]);
        for pin in ALL {
            let found = update(&forms.cluster(pin), "ephemeralcontainers", &old, &new).decision;
            assert_eq!(found, expected, "{has:?}, {pin:?}");
        }
        new["spec"]["ephemeralContainers"][0]["targetContainerName"] = json!("app");
        assert_eq!(update(&forms.cluster(Pin::Missing), "ephemeralcontainers", &old, &new).decision, Allowed);
    }
}

#[test]
fn a_forged_record_gives_no_pod_another_form() {
    for forms in [Forms { older: "log", current: "log" }, Forms { older: "dns", current: "log" }] {
        for pin in ALL {
            let mut old = forms.pod(Has::Older, &json!([]));
            let record = old["metadata"]["annotations"]["outrider.dev/injected"].take();
            let container = forms.older;
            for forged in [json!("{}"), json!({"s": {"hash": "v1:0", "containers": []}}).to_string().into(), record] {
                old["metadata"]["annotations"]["outrider.dev/injected"] = forged;
                let reply = update(&forms.cluster(pin), "", &old, &changed(&old, container, "evil:1"));
                assert_eq!(reply.decision, Denied, "{container}, {pin:?}");
            }
        }
        let mut current = forms.pod(Has::Current, &json!([]));
        let older = forms.pod(Has::Older, &json!([]));
        current["metadata"]["annotations"] = older["metadata"]["annotations"].clone();
        let reply = update(&forms.cluster(Pin::Held), "", &current, &changed(&current, "log", "log:1"));
        assert_eq!(reply.decision, Denied, "the record of the older form, and the current one in the pod");
    }
}

#[test]
fn a_pod_carries_a_must_or_its_canary_whichever_it_was_created_with() {
    let must = json!({"optOut": "Denied"});
    let base = |tag: &str| {
        set("base", json!({"optOut": "Denied", "containers": [{"name": "proxy", "image": format!("proxy:{tag}")}]}))
    };
    let renamed = |name: &str| {
        let mut canary = canary("canary", "base", must.clone());
        canary["spec"]["containers"][0]["name"] = json!(name);
        canary
    };
    let of_base = Cluster::from_objects(&[base("1")]).mutate(&pod(json!({}))).pod;
    for name in ["proxy", "envoy"] {
        let of_canary = Cluster::from_objects(&[base("1"), renamed(name)]).mutate(&pod(json!({}))).pod;
        let cluster = Cluster::from_objects(&[base("2"), renamed(name)]);
        for (case, old, container, to, expected) in [
            ("the app's image", &of_canary, "app", "shop:2", Allowed),
            ("resources of the canary's container", &of_canary, name, "resized", Allowed),
            ("an image of nobody's in the canary's", &of_canary, name, "evil:1", Denied),
            ("an image of nobody's in the base's", &of_base, "proxy", "evil:1", Denied),
            ("a rollout of the base", &of_base, "proxy", "proxy:2", Allowed),
        ] {
            let reply = update(&cluster, "", old, &changed(old, container, to));
            assert_eq!(reply.decision, expected, "{case}, {name}: {}", reply.message);
        }
    }
}

/// One container of the current form beside one of the older form, without the record that would show it.
#[test]
fn a_pod_does_not_get_half_of_another_form() {
    let with = |names: &[&str], tag: u32, mut more: Value| {
        more["optOut"] = json!("Denied");
        form(names, tag, more)
    };
    let older = form(&["proxy", "dns"], 1, json!({}));
    let cluster =
        Cluster::from_objects(&[with(&["proxy", "log"], 2, pinned("Always", json!({}))), revision(&older, "s", "old")]);
    let mut old = cluster.mutate(&pod(json!({}))).pod;
    assert!(old["spec"]["containers"].as_array().unwrap().iter().any(|it| it["image"] == "dns:1"));
    old["metadata"]["annotations"] = json!({});
    assert_eq!(update(&cluster, "", &old, &changed(&old, "proxy", "proxy:2")).decision, Denied);
    assert_eq!(update(&cluster, "", &old, &changed(&old, "proxy", "resized")).decision, Allowed);
}

/// The container of a form that has fewer than another, as the other has it: the pod would lack the rest, and carry neither.
#[test]
fn a_pod_does_not_get_the_part_of_another_form_that_its_own_has_names_for() {
    let of = |name: &str, containers: &[(&str, &str)], mut more: Value| {
        more["optOut"] = json!("Denied");
        more["containers"] =
            containers.iter().map(|(name, image)| json!({"name": name, "image": image})).collect::<Vec<_>>().into();
        set(name, more)
    };
    let both = [("proxy", "proxy:1"), ("guard", "guard:1")];
    let mut small = canary("canary", "base", json!({"optOut": "Denied"}));
    small["spec"]["containers"] = json!([{"name": "proxy", "image": "whole:2"}]);
    let canaries = Cluster::from_objects(&[of("base", &both, json!({})), small]);
    let older = of("s", &[("proxy", "whole:2")], json!({}));
    let pins = Cluster::from_objects(&[of("s", &both, pinned("Always", json!({}))), revision(&older, "s", "old")]);
    for (case, cluster) in [("a canary", canaries), ("an older form", pins)] {
        let old = cluster.mutate(&pod(json!({}))).pod;
        let images: Vec<&Value> = old["spec"]["containers"].as_array().unwrap().iter().map(|it| &it["image"]).collect();
        assert!(images.contains(&&json!("whole:2")) && !images.contains(&&json!("guard:1")), "{case}: {images:?}");
        assert_eq!(update(&cluster, "", &old, &changed(&old, "proxy", "proxy:1")).decision, Denied, "{case}");
        assert_eq!(update(&cluster, "", &old, &changed(&old, "proxy", "resized")).decision, Allowed, "{case}");
        assert_eq!(update(&cluster, "", &old, &changed(&old, "app", "shop:2")).decision, Allowed, "{case}");
    }
}

/// Each container and set costs what it costs once, whatever their number.
#[test]
fn hundreds_of_musts_with_older_forms_are_judged_in_one_go() {
    let name = |number: u32| format!("s{number}");
    let of = |number: u32, tag: u32, more: Value| {
        let mut object = form(&["c"], tag, more);
        object["metadata"]["name"] = json!(name(number));
        object["spec"]["containers"][0]["name"] = json!(format!("c{number}"));
        object
    };
    let mut objects = Vec::new();
    for number in 0..300 {
        let mut more = pinned("Always", json!({}));
        more["optOut"] = json!("Denied");
        objects.push(of(number, 2, more));
        objects.push(revision(&of(number, 1, json!({})), &name(number), "old"));
    }
    let cluster = Cluster::from_objects(&objects);
    let old = cluster.mutate(&pod(json!({}))).pod;
    let mut new = old.clone();
    for container in new["spec"]["containers"].as_array_mut().unwrap() {
        container["resources"] = json!({"limits": {"cpu": "1"}});
    }
    let reply = update(&cluster, "resize", &old, &new);
    assert_eq!(reply.decision, Allowed, "{}", reply.message);
}

/// No form of the set says any more what they are to be.
#[test]
fn what_a_must_brought_and_has_no_longer_stays_as_it_is_until_the_pod_is_recreated() {
    let of = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "log:1"})).collect();
        set("s", json!({"optOut": "Denied", "containers": containers}))
    };
    let created = pod(json!({"containers": [{"name": "app", "image": "shop:1"}]}));
    let old = Cluster::from_objects(&[of(&["log", "helper"])]).mutate(&created).pod;
    let mut unlabelled = old.clone();
    unlabelled["metadata"]["labels"] = json!({"app": "other"});
    let mut debugged = old.clone();
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "d", "image": "d:1", "targetContainerName": "helper"}]);
    let evil = with(&old, "helper", "image", json!("evil:1"));
    for names in [&["log"][..], &["renamed"], &["log", "helper2"]] {
        let cluster = Cluster::from_objects(&[of(names)]);
        let refused = update(&cluster, "", &old, &evil);
        assert_eq!(refused.decision, Denied, "{names:?}");
        assert!(
            refused.message.contains("container helper, which an older form of the set brought"),
            "{}",
            refused.message
        );
        assert_eq!(update(&cluster, "", &old, &unlabelled).decision, Denied, "{names:?}");
        assert_eq!(update(&cluster, "ephemeralcontainers", &old, &debugged).decision, Denied, "{names:?}");
        let app = with(&old, "app", "image", json!("shop:2"));
        assert_eq!(update(&cluster, "", &old, &app).decision, Allowed, "{names:?}");
        // Of the form as it is now, so that the next update could change it.
        let mut forgotten = old.clone();
        forgotten["metadata"]["annotations"] = cluster.mutate(&created).pod["metadata"]["annotations"].clone();
        let refused = update(&cluster, "", &old, &forgotten);
        assert_eq!(refused.decision, Denied, "{names:?}");
        assert!(refused.message.contains("may not be taken out of its record"), "{}", refused.message);
        let resized = with(&old, "helper", "resources", json!({"limits": {"cpu": "1"}}));
        assert_eq!(update(&cluster, "resize", &old, &resized).decision, Allowed, "{names:?}");
    }
    // Another set that brings a container of that name says what it is to be.
    let other = set("t", json!({"optOut": "Denied", "containers": [{"name": "helper", "image": "log:2"}]}));
    let cluster = Cluster::from_objects(&[of(&["log"]), other]);
    assert_eq!(update(&cluster, "", &old, &with(&old, "helper", "image", json!("log:2"))).decision, Allowed);
    assert_eq!(update(&cluster, "", &old, &evil).decision, Denied);
}

/// The pod's author writes the record before there is any.
#[test]
fn no_record_that_the_author_of_a_pod_fills_up_hides_what_a_must_brought() {
    let must = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "log:1"})).collect();
        set("s", json!({"optOut": "Denied", "containers": containers}))
    };
    let other = set("t", json!({"containers": [{"name": "other", "image": "other:1"}]}));
    for count in [499, 500, 501, 502, 600] {
        for others in [&[][..], std::slice::from_ref(&other)] {
            let with_others = |must: Value| Cluster::from_objects(&[&[must], others].concat());
            let before = with_others(must(&["log", "helper"]));
            let junk: serde_json::Map<String, Value> = (0..count).map(|at| (format!("f{at:03}"), json!(0))).collect();
            let mut created = pod(json!({"containers": [{"name": "app", "image": "shop:1"}]}));
            created["metadata"]["annotations"] = json!({"outrider.dev/injected": Value::Object(junk).to_string()});
            let old = before.mutate(&created).pod;
            assert_eq!(before.mutate(&old).patch, None, "{count} {}", others.len());
            let evil = with(&old, "helper", "image", json!("evil:1"));
            let mut forgotten = old.clone();
            forgotten["metadata"]["annotations"].as_object_mut().unwrap().remove("outrider.dev/injected");
            for names in [&["log"][..], &["renamed"]] {
                // Also where the other set is gone by now.
                for cluster in [with_others(must(names)), Cluster::from_objects(&[must(names)])] {
                    for new in [&evil, &forgotten] {
                        let reply = update(&cluster, "", &old, new);
                        assert_eq!(reply.decision, Denied, "{count} {} {names:?}", others.len());
                    }
                    let app = with(&old, "app", "image", json!("shop:2"));
                    let reply = update(&cluster, "", &old, &app);
                    assert_eq!(reply.decision, Allowed, "{count} {names:?}: {}", reply.message);
                }
            }
        }
    }
}

/// Nothing checks what is in the container then.
#[test]
fn an_optional_set_with_a_container_of_that_name_frees_none_that_a_must_brought() {
    let must = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "log:1"})).collect();
        set("s", json!({"optOut": "Denied", "containers": containers}))
    };
    let created = pod(json!({"containers": [{"name": "app", "image": "shop:1"}]}));
    let old = Cluster::from_objects(&[must(&["log", "helper"])]).mutate(&created).pod;
    for paused in [false, true] {
        let spec =
            json!({"containers": [{"name": "helper", "image": "other:1"}], "injectionStrategy": {"paused": paused}});
        let cluster = Cluster::from_objects(&[must(&["log"]), set("t", spec)]);
        let evil = with(&old, "helper", "image", json!("evil:1"));
        assert_eq!(update(&cluster, "", &old, &evil).decision, Denied);
        let mut debugged = old.clone();
        debugged["spec"]["ephemeralContainers"] =
            json!([{"name": "d", "image": "d:1", "targetContainerName": "helper"}]);
        assert_eq!(update(&cluster, "ephemeralcontainers", &old, &debugged).decision, Denied);
    }
}
