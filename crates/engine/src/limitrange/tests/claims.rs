//! What claims may ask for (4.8).

use serde_json::{Value, json};

use super::{bounded, review, said};

const PATH: &str = "/validate--v1-persistentvolumeclaim-limitranger";

fn claim(storage: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "p"},
        "spec": {"resources": {"requests": {"storage": storage}}}})
}

fn judged(limit: &Value, old: Option<&Value>, new: &Value) -> String {
    let mut limit = limit.clone();
    limit["type"] = "PersistentVolumeClaim".into();
    said(&bounded(limit).ask(PATH, &review("PersistentVolumeClaim", "persistentvolumeclaims", "", old, new)).unwrap())
}

#[test]
fn claims_are_judged_by_what_they_ask_for() {
    let bounds = |min: Option<&str>, max: Option<&str>| {
        let mut limit = json!({});
        for (field, amount) in [("min", min), ("max", max)].into_iter().filter_map(|(field, it)| Some((field, it?))) {
            limit[field] = json!({"storage": amount});
        }
        limit
    };
    let of = "usage per PersistentVolumeClaim is";
    for (row, limit, storage, expected) in [
        (1, bounds(Some("1Gi"), None), "1Gi", String::new()),
        (2, bounds(None, Some("1Gi")), "1Gi", String::new()),
        (3, bounds(Some("1Gi"), Some("10Gi")), "5Gi", String::new()),
        (4, bounds(Some("1Gi"), None), "500Mi", format!("minimum storage {of} 1Gi, but request is 500Mi")),
        (5, bounds(None, Some("1Gi")), "100Gi", format!("maximum storage {of} 1Gi, but request is 100Gi")),
    ] {
        assert_eq!(judged(&limit, None, &claim(storage)), expected, "row {row}");
    }
    let open = json!({"metadata": {"name": "p"}, "spec": {}});
    let max = bounds(None, Some("1Gi"));
    assert_eq!(judged(&max, None, &open), format!("maximum storage {of} 1Gi.  No request is specified"));
    // Without limits for claims a claim may ask for anything.
    let cluster = bounded(json!({"type": "Pod", "max": {"cpu": "1"}}));
    let review = review("PersistentVolumeClaim", "persistentvolumeclaims", "", None, &claim("100Gi"));
    assert_eq!(said(&cluster.ask(PATH, &review).unwrap()), "");
}

#[test]
fn a_claim_that_changes_is_judged_only_where_it_asks_for_something_else() {
    let max = json!({"max": {"storage": "10Gi"}});
    let (old, more) = (claim("20Gi"), claim("30Gi"));
    let refused = "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 30Gi";
    assert_eq!(judged(&max, Some(&old), &more), refused);
    let mut labelled = old.clone();
    labelled["metadata"]["finalizers"] = json!([]);
    assert_eq!(judged(&max, Some(&old), &labelled), "");
    assert_eq!(judged(&max, Some(&old), &claim("20480Mi")), "");
    let mut leaving = old;
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(judged(&max, Some(&leaving), &more), "");
}
