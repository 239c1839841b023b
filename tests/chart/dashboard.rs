//! Every panel of the dashboard shows something: promtool evaluates its expressions.

use serde_json::{Value, json};

use crate::promtool::{file, promtool};

pub const DASHBOARD: &str = "charts/outrider/files/dashboard.json";

/// A query of a panel.
struct Query {
    expr: String,
    legend: String,
}

/// All queries, with values in the place of Grafana's variables.
fn queries() -> Vec<Query> {
    let dashboard: Value = serde_json::from_str(&file(DASHBOARD)).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let variables: Vec<String> = variables.map(|it| format!("${}", it["name"].as_str().unwrap())).collect();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for target in panel["targets"].as_array().into_iter().flatten() {
            let mut expr = text(&target["expr"]).replace("$__rate_interval", "5m").replace("$__range", "1h");
            for variable in &variables {
                expr = expr.replace(variable, ".+");
            }
            queries.push(Query { expr, legend: text(&target["legendFormat"]) });
        }
    }
    queries
}

fn labels_of(legend: &str) -> impl Iterator<Item = &str> {
    legend.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0))
}

/// The tests of a query: it has a value, which is a number, and its legend names labels that it has.
fn tests_of(query: &Query) -> Vec<String> {
    let expr = &query.expr;
    let number = format!("({expr}) == ({expr})");
    let labels = labels_of(&query.legend).map(|label| format!("({expr}) unless on ({label}) vector(0)"));
    [number].into_iter().chain(labels).map(|shown| format!("clamp_max(count({shown}), 1)")).collect()
}

/// What Grafana's own linter of dashboards asks for.
#[test]
fn every_panel_explains_itself_and_can_be_narrowed_to_a_job_and_a_replica() {
    let dashboard: Value = serde_json::from_str(&file(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    for panel in panels {
        for field in ["/title", "/description", "/fieldConfig/defaults/unit", "/targets/0/expr"] {
            assert_ne!(panel.pointer(field).and_then(Value::as_str).unwrap_or_default(), "", "{field} of {panel}");
        }
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            let expr = target["expr"].as_str().unwrap();
            let narrowed = expr.matches(r#"{job=~"$job", instance=~"$instance"}"#).count();
            assert_eq!(narrowed, expr.matches("outrider_").count(), "{expr}");
            assert_eq!(expr.contains("rate("), expr.contains("[$__rate_interval]"), "{expr}");
        }
    }
    assert!(queries().iter().all(|query| !query.expr.contains('$')), "a variable without a value");
}

#[test]
#[ignore = "needs promtool: make test"]
fn every_panel_shows_a_number_when_promtool_evaluates_it() {
    let series = engine::yaml::read(&file("tests/chart/dashboard-series.yaml")).unwrap().remove(0).value;
    let of_expr =
        |expr: String| json!({"expr": expr, "eval_time": "30m", "exp_samples": [{"labels": "{}", "value": 1}]});
    let tests: Vec<Value> = queries().iter().flat_map(tests_of).map(of_expr).collect();
    let test = json!({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]});
    promtool(&[("test.json", &test.to_string())], &["test", "rules", "test.json"]);
}
