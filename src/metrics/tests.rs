//! What a scrape shows.

use admission::Decision;
use engine::reasons;

use super::path::{DECISIONS, PODS, is_misfit};
use super::*;

fn misfits(metrics: &Metrics) -> Vec<String> {
    let text = metrics.encode().unwrap();
    text.lines().filter(|line| line.contains("reason=\"ContainerClash\"")).map(str::to_owned).collect()
}

#[test]
fn refusals_of_pods_are_there_at_zero_before_the_first() {
    let metrics = Metrics::new(Freshness::default());
    let (pods, others) = (metrics.path(PODS), metrics.path("/validate--v1-pod"));
    let found = misfits(&metrics);
    assert_eq!(found.len(), DECISIONS.len(), "{found:?}");
    let labels = r#"path="/mutate--v1-pod",verdict="denied",reason="ContainerClash",dry_run="false""#;
    assert!(found.contains(&format!("outrider_reviews_total{{{labels}}} 0")), "{found:?}");
    pods.decided(Decision::Denied, reasons::CONTAINER_CLASH, false);
    assert!(misfits(&metrics).contains(&format!("outrider_reviews_total{{{labels}}} 1")));
    others.decided(Decision::Allowed, reasons::CONTAINER_CLASH, false);
    assert_eq!(misfits(&metrics).len(), DECISIONS.len() + 1);
}

#[test]
fn pods_that_are_stored_without_a_set_are_there_at_zero_before_the_first() {
    let metrics = Metrics::new(Freshness::default());
    metrics.path("/validate--v1-pod");
    let text = metrics.encode().unwrap();
    let series = r#"path="/validate--v1-pod",verdict="allowed",reason="Uninjected",dry_run="false"} 0"#;
    assert!(text.contains(series), "{text}");
}

#[test]
fn a_dry_run_is_counted_apart() {
    let metrics = Metrics::new(Freshness::default());
    let pods = metrics.path(PODS);
    for _ in 0..2 {
        pods.decided(Decision::Denied, reasons::CONTAINER_CLASH, true);
    }
    let found = misfits(&metrics);
    let of = |dry_run: &str, count: u32| {
        format!(
            "outrider_reviews_total{{path=\"{PODS}\",verdict=\"denied\",reason=\"ContainerClash\",dry_run=\"{dry_run}\"}} {count}"
        )
    };
    assert!(found.contains(&of("true", 2)) && found.contains(&of("false", 0)), "{found:?}");
}

/// What the alert is about and what starts at zero are one list.
#[test]
fn the_alert_on_pods_without_sidecars_names_what_starts_at_zero() {
    let alerts = include_str!("../../charts/outrider/files/alerts.yaml");
    let (_, behind) = alerts.split_once("reason=~\"").unwrap();
    let (words, _) = behind.split_once('"').unwrap();
    for (reason, _) in reasons::ALL {
        let word = reason.as_str();
        let is_named = words.split('|').any(|it| it.strip_prefix(".*").map_or(it == word, |end| word.ends_with(end)));
        assert_eq!(is_named, is_misfit(*reason), "{word}");
    }
}
