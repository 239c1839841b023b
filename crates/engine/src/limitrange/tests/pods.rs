//! What containers and pods may ask for (4.8).

use serde_json::{Value, json};

use super::{bounded, pod, range, resources, said};
use crate::testing::Cluster;

/// Number, type, field of the limit, resource, amount, containers, init containers (a sidecar begins with `+`), and the end of
/// the message with which the pod is refused.
type Row<'r> = (u8, &'r str, &'r str, &'r str, &'r str, &'r [&'r str], &'r [&'r str], &'r str);

fn containers(resource: &str, written: &[&str]) -> Vec<Value> {
    let container = |(at, amounts): (usize, &&str)| match amounts.strip_prefix('+') {
        Some(amounts) => {
            json!({"name": format!("s{at}"), "restartPolicy": "Always", "resources": resources(resource, amounts)})
        }
        None => json!({"name": format!("c{at}"), "resources": resources(resource, amounts)}),
    };
    written.iter().enumerate().map(container).collect()
}

fn assert_rows(rows: &[Row<'_>]) {
    for (number, type_, field, resource, amount, main, init, expected) in rows {
        // As the validating webhook finds it: what is open is not filled in.
        let cluster = bounded(json!({"type": type_, *field: {*resource: amount}}));
        let spec = json!({"containers": containers(resource, main), "initContainers": containers(resource, init)});
        let beginning = match *field {
            _ if expected.is_empty() => String::new(),
            "min" => format!("minimum {resource} usage per {type_} is {amount}"),
            "max" => format!("maximum {resource} usage per {type_} is {amount}"),
            _ => format!("{resource} max limit to request ratio per {type_} is {amount}"),
        };
        assert_eq!(said(&cluster.validate(&pod(spec))), beginning + expected, "row {number}");
    }
}

#[test]
fn pods_within_the_limits_are_allowed() {
    const RATIO: &str = "maxLimitRequestRatio";
    assert_rows(&[
        (1, "Container", "min", "cpu", "50m", &["100m/-"], &[], ""),
        (2, "Container", "min", "cpu", "50m", &["100m/200m"], &[], ""),
        (3, "Container", "min", "memory", "50Mi", &["60Mi/-"], &[], ""),
        (4, "Container", "min", "memory", "50Mi", &["60Mi/100Mi"], &[], ""),
        (5, "Container", "max", "cpu", "2", &["500m/1"], &[], ""),
        (6, "Container", "max", "cpu", "2", &["-/1"], &[], ""),
        (7, "Container", "max", "memory", "1Gi", &["250Mi/500Mi"], &[], ""),
        (8, "Container", RATIO, "cpu", "1.5", &["500m/750m"], &[], ""),
        (9, "Pod", "min", "cpu", "100m", &["75m/-", "75m/-"], &[], ""),
        (10, "Pod", "min", "memory", "100Mi", &["60Mi/-", "60Mi/-"], &[], ""),
        (11, "Pod", "min", "memory", "100Mi", &["-/-"], &["100Mi/-"], ""),
        (12, "Pod", "max", "cpu", "2", &["500m/1", "500m/1"], &[], ""),
        (13, "Pod", "max", "cpu", "2", &["-/1", "-/1"], &["-/2", "-/1"], ""),
        (14, "Pod", "max", "memory", "1Gi", &["-/500Mi", "-/500Mi"], &[], ""),
        (15, "Pod", RATIO, "memory", "1.5", &["300Mi/450Mi", "300Mi/450Mi", "300Mi/450Mi"], &[], ""),
        (16, "Container", "min", "ephemeral-storage", "50Mi", &["60Mi/-"], &[], ""),
        (17, "Container", "min", "ephemeral-storage", "50Mi", &["60Mi/100Mi"], &[], ""),
        (18, "Container", "max", "ephemeral-storage", "1Gi", &["250Mi/500Mi"], &[], ""),
        (19, "Pod", "min", "ephemeral-storage", "100Mi", &["60Mi/-", "60Mi/-"], &[], ""),
        (20, "Pod", "min", "ephemeral-storage", "100Mi", &["-/-"], &["100Mi/-"], ""),
        (21, "Pod", "max", "ephemeral-storage", "1Gi", &["-/500Mi", "-/500Mi"], &[], ""),
        (22, "Pod", RATIO, "ephemeral-storage", "1.5", &["300Mi/450Mi", "300Mi/450Mi", "300Mi/450Mi"], &[], ""),
        // Not of the table: a sidecar and the init containers around it.
        (23, "Pod", "max", "cpu", "2", &["-/500m"], &["-/2", "+-/500m", "-/1500m"], ""),
        (24, "Pod", "max", "memory", "10Pi", &["-/10Pi"], &[], ""),
    ]);
}

#[test]
fn pods_beyond_the_limits_are_refused_with_the_words_of_the_api_server() {
    const RATIO: &str = "maxLimitRequestRatio";
    let storage = "ephemeral-storage";
    let (ratio, no_request, no_limit) =
        (", but provided ratio is 2.000000", ".  No request is specified", ".  No limit is specified");
    assert_rows(&[
        (1, "Container", "min", "cpu", "50m", &["40m/-"], &[], ", but request is 40m"),
        (2, "Container", "min", "cpu", "50m", &["40m/200m"], &[], ", but request is 40m"),
        (3, "Container", "min", "cpu", "50m", &["-/-"], &[], no_request),
        (4, "Container", "min", "memory", "50Mi", &["40Mi/-"], &[], ", but request is 40Mi"),
        (5, "Container", "min", "memory", "50Mi", &["-/-"], &[], no_request),
        (6, "Container", "max", "cpu", "2", &["-/2500m"], &[], ", but limit is 2500m"),
        (7, "Container", "max", "cpu", "2", &["500m/2500m"], &[], ", but limit is 2500m"),
        (8, "Container", "max", "cpu", "2", &["-/-"], &[], no_limit),
        (9, "Container", RATIO, "cpu", "1", &["1250m/2500m"], &[], ratio),
        (10, "Container", "max", "memory", "1Gi", &["-/2Gi"], &[], ", but limit is 2Gi"),
        (11, "Container", "max", "memory", "1Gi", &["-/-"], &[], no_limit),
        (12, "Pod", "min", "cpu", "100m", &["75m/-"], &[], ", but request is 75m"),
        (13, "Pod", "min", "memory", "100Mi", &["60Mi/-"], &[], ", but request is 60Mi"),
        (14, "Pod", "max", "cpu", "2", &["-/1", "-/1", "-/1"], &[], ", but limit is 3"),
        (15, "Pod", "max", "memory", "1Gi", &["-/500Mi", "-/500Mi", "-/500Mi"], &[], ", but limit is 1500Mi"),
        (16, "Pod", "max", "memory", "1Gi", &["-/-"], &["-/1.5Gi"], ", but limit is 1536Mi"),
        (17, "Pod", RATIO, "memory", "1500m", &["250Mi/500Mi"], &[], ratio),
        (18, "Container", "min", storage, "50Mi", &["40Mi/-"], &[], ", but request is 40Mi"),
        (19, "Container", "min", storage, "50Mi", &["-/-"], &[], no_request),
        (20, "Container", "max", storage, "1Gi", &["-/2Gi"], &[], ", but limit is 2Gi"),
        (21, "Container", "max", storage, "1Gi", &["-/-"], &[], no_limit),
        (22, "Pod", "min", storage, "100Mi", &["60Mi/-"], &[], ", but request is 60Mi"),
        (23, "Pod", "max", storage, "1Gi", &["-/500Mi", "-/500Mi", "-/500Mi"], &[], ", but limit is 1500Mi"),
        (24, "Pod", "max", storage, "1Gi", &["-/-"], &["-/1.5Gi"], ", but limit is 1536Mi"),
        (25, "Pod", RATIO, storage, "1500m", &["250Mi/500Mi"], &[], ratio),
        (26, "Pod", "max", "cpu", "2", &["-/1500m"], &["+-/1500m"], ", but limit is 3"),
        // Not of the table.
        (27, "Container", "min", "cpu", "50m", &["60m/40m"], &[], ", but limit is 40m"),
        (28, "Container", "max", "cpu", "2", &["3/1"], &[], ", but request is 3"),
        (29, "Container", RATIO, "cpu", "2", &["-/1"], &[], ", but no request is specified or request is 0"),
        (30, "Container", RATIO, "cpu", "2", &["1/-"], &[], ", but no limit is specified or limit is 0"),
        (31, "Container", "min", "cpu", "50m", &["100m/-"], &["40m/-"], ", but request is 40m"),
        (32, "Pod", "max", "cpu", "2", &["-/500m"], &["+-/1", "-/1500m"], ", but limit is 2500m"),
        // What is too much for thousandths is compared in whole units.
        (33, "Pod", "max", "memory", "10Pi", &["-/11Pi"], &[], ", but limit is 11Pi"),
        // The same words are said once.
        (34, "Container", "min", "cpu", "50m", &["40m/-", "40m/-"], &[], ", but request is 40m"),
    ]);
}

#[test]
fn each_message_is_said_once_and_amounts_as_the_api_server_stores_them() {
    let least = bounded(json!({"type": "Container", "min": {"cpu": "0.05"}}));
    let spec = json!({"containers": containers("cpu", &["40m/-", "30m/-", "40m/-"])});
    let text = "minimum cpu usage per Container is 50m, but request is";
    assert_eq!(said(&least.validate(&pod(spec))), format!("[{text} 40m, {text} 30m]"));
    let ratio = bounded(json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "1.5"}}));
    let spec = json!({"containers": containers("cpu", &["1/2"])});
    let text = "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000";
    assert_eq!(said(&ratio.validate(&pod(spec))), text);
}

#[test]
fn what_is_asked_for_the_pod_as_a_whole_goes_before_what_its_containers_ask_for() {
    let both = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let (max, min) = (json!({"max": both("400m", "200Mi")}), json!({"min": both("160m", "200Mi")}));
    let (cpu, memory) =
        ("maximum cpu usage per Pod is 400m, but limit is 500m", "maximum memory usage per Pod is 200Mi");
    let rows = [
        (1, &max, json!({"requests": both("200m", "180Mi"), "limits": both("400m", "200Mi")}), String::new()),
        (2, &min, json!({"requests": both("160m", "200Mi")}), String::new()),
        (3, &json!({"max": both("160m", "200Mi")}), json!({"limits": both("160m", "200Mi")}), String::new()),
        (4, &max, json!({"limits": both("500m", "280Mi")}), format!("[{cpu}, {memory}, but limit is 280Mi]")),
        (
            5,
            &min,
            json!({"requests": both("100m", "200Mi")}),
            "minimum cpu usage per Pod is 160m, but request is 100m".to_owned(),
        ),
        (6, &max, json!({"limits": both("400m", "300Mi")}), format!("{memory}, but limit is 300Mi")),
    ];
    for (row, limit, of_pod, expected) in rows {
        let mut limit = limit.clone();
        limit["type"] = "Pod".into();
        // By their containers, all pods would be refused.
        for resources in [json!({"limits": both("7", "7Gi"), "requests": both("1m", "1")}), json!({})] {
            let spec = json!({"resources": of_pod, "containers": [{"name": "c", "resources": resources}]});
            assert_eq!(said(&bounded(limit.clone()).validate(&pod(spec))), expected, "row {row}");
        }
    }
    // Only CPU and memory can be asked for the pod as a whole, as far as limits go.
    let cluster = bounded(json!({"type": "Pod", "max": {"hugepages-2Mi": "4Mi"}}));
    let huge = |amount: &str| json!({"limits": {"hugepages-2Mi": amount}});
    let spec = json!({"resources": huge("2Mi"), "containers": [{"name": "c", "resources": huge("6Mi")}]});
    assert_eq!(said(&cluster.validate(&pod(spec))), "maximum hugepages-2Mi usage per Pod is 4Mi, but limit is 6Mi");
}

#[test]
fn ephemeral_containers_have_no_resources_to_judge() {
    let spec = json!({"containers": [], "ephemeralContainers": [{"name": "e"}]});
    assert_eq!(said(&bounded(json!({"type": "Container", "min": {"cpu": "1"}})).validate(&pod(spec))), "");
}

#[test]
fn of_several_ranges_the_strictest_bound_of_each_resource_counts_and_its_range_refuses() {
    let of = |name: &str, bounds: Value| {
        let mut limit = bounds;
        limit["type"] = "Pod".into();
        range(name, json!([limit]))
    };
    let (one, two) = (json!({"cpu": "1", "memory": "2Gi"}), json!({"cpu": "2", "memory": "1Gi"}));
    let cluster = Cluster::from_objects(&[
        of("a", json!({"max": two})),
        of("b", json!({"max": one})),
        of("c", json!({"max": one, "min": {"cpu": "100m"}, "maxLimitRequestRatio": {"cpu": "4"}})),
        of("d", json!({"min": {"cpu": "200m"}, "maxLimitRequestRatio": {"cpu": "2"}})),
    ]);
    let asked = |requests: Value, limits: Value| {
        let reply = cluster.validate(&pod(
            json!({"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}]}),
        ));
        (said(&reply), reply.audit.get("limits").cloned())
    };
    let memory = json!("1Gi");
    let within = json!({"cpu": "500m", "memory": memory});
    assert_eq!(asked(within.clone(), json!({"cpu": "1", "memory": memory})), (String::new(), None));
    let (cpu, by) = ("maximum cpu usage per Pod is 1, but limit is 1500m", "b=PluginDenied,d=PluginDenied");
    let ratio = "cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000";
    assert_eq!(
        asked(within, json!({"cpu": "1500m", "memory": memory})),
        (format!("[{cpu}, {ratio}]"), Some(by.into()))
    );
    let (request, by) = ("minimum cpu usage per Pod is 200m, but request is 150m", "a=PluginDenied,d=PluginDenied");
    let memory = "maximum memory usage per Pod is 1Gi, but limit is 2Gi";
    assert_eq!(
        asked(json!({"cpu": "150m"}), json!({"cpu": "300m", "memory": "2Gi"})),
        (format!("[{request}, {memory}]"), Some(by.into()))
    );
}
