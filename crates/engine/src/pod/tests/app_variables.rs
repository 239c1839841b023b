//! Variables for the pod's own containers, of one set and of several, that refer to each other.

use serde_json::{Value, json};

use super::app_containers::{admitted, app, env, only};
use crate::reasons;
use crate::testing::Cluster;

/// The kubelet resolves a reference by the variables before it.
#[test]
fn no_order_of_the_containers_variables_changes_what_an_overwritten_one_refers_to() {
    let mut entries = json!([{"overwriteEnv": true, "env": [
        {"name": "ROOT", "value": "/agent"}, {"name": "AGENT", "value": "$(ROOT)/a.so"}, {"name": "LD_PRELOAD", "value": "$(AGENT)"},
    ]}]);
    let resolved = |pod: &Value| {
        let mut known = std::collections::BTreeMap::<String, String>::new();
        for (name, value) in env(pod) {
            let value =
                known.iter().fold(value.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value));
            known.insert(name.to_owned(), value);
        }
        ["AGENT", "LD_PRELOAD"].map(|name| known.remove(name).unwrap())
    };
    let names = ["ROOT", "AGENT", "LD_PRELOAD"];
    for more in [json!(null), json!([{"overwriteEnv": true, "env": [{"name": "LD_PRELOAD", "value": "$(AGENT)"}]}])] {
        if let Some(more) = more.as_array() {
            entries[0]["env"].as_array_mut().unwrap().pop();
            entries.as_array_mut().unwrap().extend(more.iter().cloned());
        }
        let cluster = Cluster::from_objects(&[only("s", entries.clone(), json!({"optOut": "Denied"}))]);
        // Every list of up to four of them, some of them there twice.
        for number in 0..=(1..=4).map(|length| names.len().pow(length)).sum::<usize>() {
            let (mut left, mut own) = (number, Vec::new());
            while left > 0 {
                own.push(json!({"name": names[(left - 1) % names.len()], "value": format!("mine{}", own.len())}));
                left = (left - 1) / names.len();
            }
            let pod = admitted(&cluster, &app(json!(own), Value::Null));
            assert_eq!(resolved(&pod), ["/agent/a.so", "/agent/a.so"], "{own:?}: {:?}", env(&pod));
        }
    }
}

/// What an earlier set has added is what the container has, when the API server asks again and when the pod is validated.
#[test]
fn a_set_that_overwrites_a_variable_also_overwrites_what_an_earlier_set_adds() {
    let earlier = only("a", json!([{"env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]}]), json!({}));
    let entries = json!([{"overwriteEnv": true, "env": [{"name": "Z", "value": "2"}, {"name": "X", "value": "$(Z)"}]}]);
    for must in [json!({}), json!({"optOut": "Denied"})] {
        let cluster = Cluster::from_objects(&[earlier.clone(), only("b", entries.clone(), must)]);
        let pod = admitted(&cluster, &app(Value::Null, Value::Null));
        assert_eq!(env(&pod), [("Z", "2"), ("X", "$(Z)"), ("Y", "1")]);
        let pod = admitted(&cluster, &app(json!([{"name": "X", "value": "own"}]), Value::Null));
        assert_eq!(env(&pod), [("Y", "1"), ("Z", "2"), ("X", "$(Z)")]);
    }
}

/// Whatever they refer to: a must would refuse every pod that it finds something missing in.
#[test]
fn nothing_is_missing_after_sets_that_share_variables_and_refer_to_them() {
    let names = ["X", "Y", "Z", "W"];
    // The same numbers each time: what fails can be found again.
    let mut state = 1_u64;
    let mut below = |count: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % count).unwrap()
    };
    let (mut admissions, mut conflicts) = (0, 0);
    for _ in 0..3000 {
        let count = 2 + below(2);
        let sets: Vec<Value> = (0..count)
            .map(|at| {
                let mut left = names.to_vec();
                let entries: Vec<Value> = (0..=below(2))
                    .map(|_| {
                        let mut env = Vec::new();
                        for _ in 0..=below(3) {
                            if left.is_empty() {
                                break;
                            }
                            let name = left.remove(below(left.len() as u64));
                            let value = ["1".to_owned(), format!("$({})", names[below(4)])][below(2)].clone();
                            env.push(json!({"name": name, "value": value}));
                        }
                        json!({"overwriteEnv": below(3) > 0, "env": env})
                    })
                    .collect();
                let must = if below(2) == 0 { json!({"optOut": "Denied"}) } else { json!({}) };
                only(&format!("s{at}"), json!(entries), must)
            })
            .collect();
        let own: Vec<Value> =
            (0..below(4)).map(|at| json!({"name": names[below(4)], "value": format!("own{at}")})).collect();
        let cluster = Cluster::from_objects(&sets);
        let first = cluster.mutate(&app(json!(own), Value::Null));
        if first.reason != reasons::INJECTED || !first.warnings.is_empty() {
            conflicts += 1;
            continue;
        }
        admissions += 1;
        let again = cluster.mutate(&first.pod);
        assert_eq!(again.patch, None, "{sets:#?} {own:?} {:?}", env(&first.pod));
        assert_eq!(cluster.validate(&first.pod).reason, reasons::ALREADY_INJECTED, "{sets:?} {own:?}");
    }
    assert!(admissions > 1000 && conflicts > 100, "{admissions} {conflicts}");
}

#[test]
fn of_two_entries_with_one_variable_the_first_that_overwrites_it_counts() {
    let entry =
        |value: &str, overwrite: bool| json!({"overwriteEnv": overwrite, "env": [{"name": "X", "value": value}]});
    for (entries, expected) in [
        (json!([entry("1", false), entry("2", true)]), "2"),
        (json!([entry("1", true), entry("2", true)]), "1"),
        (json!([entry("1", true), entry("2", false)]), "1"),
    ] {
        let cluster = Cluster::from_objects(&[only("s", entries.clone(), json!({"optOut": "Denied"}))]);
        for own in [json!(null), json!([{"name": "X", "value": "own"}])] {
            assert_eq!(env(&admitted(&cluster, &app(own, Value::Null))), [("X", expected)], "{entries}");
        }
    }
}
