//! Mutations of requests and limits, of containers and of the pod as a whole.

use serde_json::{Value, json};

use crate::pair::{KINDS, Pair};
use crate::random::Random;

fn amounts(random: &mut Random, cpu: &[&str]) -> Value {
    let mut amounts = json!({});
    for name in ["cpu", "memory"] {
        if random.once_in(2) {
            let amount = random.pick(cpu);
            amounts[name] =
                if name == "cpu" { json!(amount) } else { json!(format!("{}Mi", amount.trim_end_matches('m'))) };
        }
    }
    amounts
}

/// Requests that are no higher than the limits.
fn resources(random: &mut Random) -> Value {
    match random.pick(&[0, 1, 2]) {
        0 => json!({"requests": amounts(random, &["100m", "200m"])}),
        1 => json!({"limits": amounts(random, &["300m", "600m"])}),
        _ => json!({"requests": amounts(random, &["100m", "200m"]), "limits": amounts(random, &["300m", "600m"])}),
    }
}

pub fn pod_resources(random: &mut Random, pair: &mut Pair) {
    let whole =
        json!({"requests": amounts(random, &["200m", "400m", "900m"]), "limits": amounts(random, &["900m", "1200m"])});
    pair.spec().insert("resources".to_owned(), whole);
    containers_with_resources(random, pair);
}

pub fn pod_limits_alone(random: &mut Random, pair: &mut Pair) {
    pair.spec().insert("resources".to_owned(), json!({"limits": amounts(random, &["200m", "400m", "700m"])}));
    containers_with_resources(random, pair);
}

fn containers_with_resources(random: &mut Random, pair: &mut Pair) {
    if random.once_in(2) {
        let own = json!({"requests": amounts(random, &["50m", "100m"])});
        pair.app().insert("resources".to_owned(), own);
    }
    if random.once_in(3) {
        let mut init = json!({"name": "setup", "image": "registry.example/setup:1", "resources": resources(random)});
        if random.once_in(2) {
            init["restartPolicy"] = json!("Always");
        }
        pair.push("initContainers", init);
    }
    for kind in KINDS {
        if random.once_in(2) {
            let own = resources(random);
            let sidecar = pair.sidecar(kind);
            sidecar.insert("resources".to_owned(), own);
            sidecar.insert(
                "podInjectPolicy".to_owned(),
                random.pick(&[json!("BeforeAppContainer"), json!("AfterAppContainer")]),
            );
        }
    }
}

pub fn huge_pages(random: &mut Random, pair: &mut Pair) {
    let pages = |amount: &str| json!({"limits": {"cpu": "100m", "hugepages-2Mi": amount}});
    let mut whole = json!({"limits": {"cpu": "1"}});
    if let Some(amount) = random.pick(&[Some("4Mi"), Some("8Mi"), None]) {
        whole["limits"]["hugepages-2Mi"] = json!(amount);
    }
    if random.once_in(2) {
        whole["requests"] = whole["limits"].clone();
    }
    pair.spec().insert("resources".to_owned(), whole);
    if random.once_in(2) {
        pair.app().insert("resources".to_owned(), pages("2Mi"));
    }
    let amount = random.pick(&["2Mi", "4Mi", "6Mi"]);
    pair.any_sidecar(random).insert("resources".to_owned(), pages(amount));
}
