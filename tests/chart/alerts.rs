//! The alerts fire when they should, by promtool's evaluation, and people can read what each means.

use serde_json::Value;

use crate::promtool::{file, promtool};

const ALERTS: &str = "charts/outrider/files/alerts.yaml";
const TESTS: &str = "tests/chart/alerts-test.yaml";

fn yaml(name: &str) -> Value {
    engine::yaml::read(&file(name)).unwrap().remove(0).value
}

/// The rules of all alerts.
fn rules() -> Vec<Value> {
    let alerts = yaml(ALERTS);
    let groups = alerts["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap().clone());
    let rules: Vec<Value> = rules.collect();
    assert!(rules.len() > 10);
    rules
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[test]
fn every_alert_has_a_time_in_which_it_is_silent_and_one_in_which_it_fires() {
    let tests = yaml(TESTS);
    let tests = tests["tests"].as_array().unwrap();
    let silent: Vec<&Value> =
        tests.iter().flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten()).collect();
    let fired = tests.iter().flat_map(|test| test["promql_expr_test"].as_array().into_iter().flatten());
    let fired: Vec<&Value> = fired.flat_map(|test| test["exp_samples"].as_array().unwrap()).collect();
    for rule in rules() {
        let alert = text(&rule, "alert");
        assert!(
            silent.iter().any(|it| text(it, "alertname") == alert && it["exp_alerts"] == Value::Array(vec![])),
            "{alert}"
        );
        let sample = format!("{{alertname=\"{alert}\"}}");
        assert!(fired.iter().any(|it| text(it, "labels") == sample && it["value"] != 0), "{alert}");
    }
}

#[test]
fn every_alert_has_a_row_that_says_what_it_means_and_what_to_do() {
    let page = file("docs/operations.md");
    for rule in rules() {
        let alert = text(&rule, "alert");
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{alert}` | {} |", text(&rule["labels"], "severity"))));
        let row = row.unwrap_or_else(|| panic!("docs/operations.md has no row for {alert} with its severity"));
        assert_eq!(row.matches(" | ").count(), 3, "{row}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `Outrider")).count();
    assert_eq!(rows, rules().len(), "a row for an alert that is no more");
}

#[test]
#[ignore = "needs promtool: make test"]
fn alerts_fire_when_promtool_evaluates_them_in_bad_times_and_not_in_good_ones() {
    let files = [("alerts.yaml", &*file(ALERTS)), ("test.yaml", &*file(TESTS))];
    promtool(&files, &["check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"]);
    promtool(&files, &["test", "rules", "test.yaml"]);
}
