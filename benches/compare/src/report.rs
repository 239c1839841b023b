//! The figures, as a table for people and as JSON.

use std::fmt::Write;

use serde::Serialize;

use crate::load;
use crate::rows::{ONE_OF_5000, ONE_OF_ONE, PLUGINS, PLUGINS_ELSEWHERE};

/// What the project wants; the gate may be wider, because shared machines are noisy.
const AIM: f64 = 1.4;

/// One run of wrk against one server.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Complete responses.
    pub requests: u64,
    /// Throughput.
    pub requests_per_second: f64,
    /// CPU time of the server a request.
    pub cpu_microseconds: f64,
    /// Latency, median.
    pub p50_microseconds: u64,
    /// Latency, 99th percentile.
    pub p99_microseconds: u64,
}

impl Sample {
    /// From wrk's report and the CPU time that the server spent meanwhile.
    #[allow(clippy::cast_precision_loss)] // Counts of a run of seconds are far below 2^52.
    pub fn new(report: &load::Report, spent_microseconds: u64) -> Self {
        let requests = report.requests as f64;
        Self {
            requests: report.requests,
            requests_per_second: requests * 1e6 / report.microseconds as f64,
            cpu_microseconds: spent_microseconds as f64 / requests,
            p50_microseconds: report.p50,
            p99_microseconds: report.p99,
        }
    }
}

/// One turn of both servers.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// The yardstick.
    pub null: Sample,
    /// The server under test.
    pub server: Sample,
}

impl Round {
    /// CPU time of the server in units of the null server's.
    pub fn ratio(&self) -> f64 {
        self.server.cpu_microseconds / self.null.cpu_microseconds
    }
}

/// One row on one review.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// The row's name.
    pub row: &'static str,
    /// The row's title.
    pub title: &'static str,
    /// The review's name.
    pub body: &'static str,
    /// Size of the posted body.
    pub body_bytes: usize,
    /// Resident memory of the null server after the load.
    pub null_rss_kib: u64,
    /// Resident memory of the server after the load.
    pub server_rss_kib: u64,
    /// Every turn.
    pub rounds: Vec<Round>,
}

impl Measurement {
    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
        f64::midpoint(at(figures.len().saturating_sub(1) / 2), at(figures.len() / 2))
    }

    /// The median over the rounds: the two servers of a round share what the machine did meanwhile.
    pub fn ratio(&self) -> f64 {
        self.median(Round::ratio)
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    #[serde(flatten)]
    measurement: &'a Measurement,
    null_requests_per_second: f64,
    server_requests_per_second: f64,
    null_cpu_microseconds: f64,
    server_cpu_microseconds: f64,
    ratio: f64,
}

impl<'a> Summary<'a> {
    fn new(measurement: &'a Measurement) -> Self {
        Self {
            measurement,
            null_requests_per_second: measurement.median(|round| round.null.requests_per_second),
            server_requests_per_second: measurement.median(|round| round.server.requests_per_second),
            null_cpu_microseconds: measurement.median(|round| round.null.cpu_microseconds),
            server_cpu_microseconds: measurement.median(|round| round.server.cpu_microseconds),
            ratio: measurement.ratio(),
        }
    }
}

/// What a pod with every plugin of pods and one set costs at most, in units of the pod with the set alone.
const PLUGINS_AIM: f64 = 1.5;

#[derive(Debug, Serialize)]
struct PluginCost {
    row: &'static str,
    body: &'static str,
    times: f64,
}

/// What 4,999 sets that do not match cost.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Flatness {
    body: &'static str,
    one_of_one_cpu_microseconds: f64,
    one_of_5000_cpu_microseconds: f64,
    /// Growth of the ratio, in which the machine's mood between the two rows cancels out.
    ratio_growth: f64,
}

/// All rows.
#[derive(Debug)]
pub struct Report {
    /// In the order of measuring.
    pub measurements: Vec<Measurement>,
}

impl Report {
    /// The rows whose ratio is above the gate, described.
    pub fn above(&self, gate: f64) -> Vec<String> {
        self.measurements
            .iter()
            // Written so that a ratio that is not a number is above every gate.
            .filter(|measurement| !matches!(measurement.ratio().partial_cmp(&gate), Some(order) if order.is_le()))
            .map(|measurement| format!("{} ({}) {:.2}", measurement.row, measurement.body, measurement.ratio()))
            .collect()
    }

    fn flatness(&self) -> Vec<Flatness> {
        let of = |row: &'static str| self.measurements.iter().filter(move |measurement| measurement.row == row);
        of(ONE_OF_ONE)
            .flat_map(|one| of(ONE_OF_5000).filter(|many| many.body == one.body).map(move |many| (one, many)))
            .map(|(one, many)| Flatness {
                body: one.body,
                one_of_one_cpu_microseconds: Summary::new(one).server_cpu_microseconds,
                one_of_5000_cpu_microseconds: Summary::new(many).server_cpu_microseconds,
                ratio_growth: many.ratio() / one.ratio() - 1.0,
            })
            .collect()
    }

    /// What admission plugins cost: the review with them, in units of the review with one set alone, each measured by the null server.
    fn plugins(&self) -> Vec<PluginCost> {
        let of = |row: &'static str| self.measurements.iter().filter(move |measurement| measurement.row == row);
        let beside = |row: &'static str| {
            of(ONE_OF_ONE).flat_map(move |one| {
                of(row).filter(|with| with.body == one.body).map(move |with| PluginCost {
                    row,
                    body: one.body,
                    times: with.ratio() / one.ratio(),
                })
            })
        };
        beside(PLUGINS).chain(beside(PLUGINS_ELSEWHERE)).collect()
    }

    /// The table, the flatness, and what misses the aim.
    ///
    /// # Errors
    /// None; writing to a `String` cannot fail.
    pub fn table(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        writeln!(
            text,
            "{:<24}{:<14}{:>7}{:>12}{:>14}{:>13}{:>15}{:>7}{:>12}{:>14}",
            "row",
            "body",
            "KB",
            "null req/s",
            "server req/s",
            "null CPU µs",
            "server CPU µs",
            "ratio",
            "null RSS MB",
            "server RSS MB",
        )?;
        for measurement in &self.measurements {
            let summary = Summary::new(measurement);
            writeln!(
                text,
                "{:<24}{:<14}{:>7}{:>12.0}{:>14.0}{:>13.1}{:>15.1}{:>7.2}{:>12}{:>14}",
                measurement.title,
                measurement.body,
                format!("{}.{}", measurement.body_bytes / 1000, measurement.body_bytes % 1000 / 100),
                summary.null_requests_per_second,
                summary.server_requests_per_second,
                summary.null_cpu_microseconds,
                summary.server_cpu_microseconds,
                summary.ratio,
                measurement.null_rss_kib / 1024,
                measurement.server_rss_kib / 1024,
            )?;
        }
        for PluginCost { row, body, times } in self.plugins() {
            writeln!(text, "{row} {body}: {times:.2} times 1-of-1, at most {PLUGINS_AIM} with every plugin of pods")?;
        }
        for flat in self.flatness() {
            writeln!(
                text,
                "flat? {}: {:.1} µs with 1 of 1 set, {:.1} µs with 1 of 5,000; measured by the null server {:+.1} %",
                flat.body,
                flat.one_of_one_cpu_microseconds,
                flat.one_of_5000_cpu_microseconds,
                flat.ratio_growth * 100.0,
            )?;
        }
        let missed = self.above(AIM);
        if missed.is_empty() {
            writeln!(text, "every row is within the aim of {AIM:.1}")?;
        } else {
            writeln!(text, "above the aim of {AIM:.1}: {}", missed.join(", "))?;
        }
        Ok(text)
    }

    /// Every figure.
    ///
    /// # Errors
    /// None that is known; serialising may fail in principle.
    pub fn json(&self) -> serde_json::Result<String> {
        let rows: Vec<Summary> = self.measurements.iter().map(Summary::new).collect();
        let report =
            serde_json::json!({"aim": AIM, "rows": rows, "flatness": self.flatness(), "plugins": self.plugins()});
        serde_json::to_string_pretty(&report).map(|text| text + "\n")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sample(cpu_microseconds: f64) -> Sample {
        Sample {
            requests: 10,
            requests_per_second: 1e6 / cpu_microseconds,
            cpu_microseconds,
            p50_microseconds: 1,
            p99_microseconds: 2,
        }
    }

    fn measurement(row: &'static str, pairs: &[(f64, f64)]) -> Measurement {
        let rounds = pairs.iter().map(|(null, server)| Round { null: sample(*null), server: sample(*server) });
        Measurement {
            row,
            title: row,
            body: "pod",
            body_bytes: 6_543,
            null_rss_kib: 4_096,
            server_rss_kib: 20_480,
            rounds: rounds.collect(),
        }
    }

    #[test]
    fn the_ratio_is_the_median_of_the_paired_rounds() {
        for (pairs, ratio) in [
            (vec![(10.0, 13.0)], 1.3),
            (vec![(10.0, 13.0), (100.0, 120.0), (10.0, 90.0)], 1.3),
            (vec![(10.0, 10.0), (10.0, 20.0)], 1.5),
        ] {
            let found = measurement("r", &pairs).ratio();
            assert!((found - ratio).abs() < 1e-9, "{pairs:?}: {found}");
        }
    }

    #[test]
    fn the_gate_names_only_rows_above_it_and_rows_without_a_figure() {
        let report = Report {
            measurements: vec![
                measurement("at", &[(10.0, 20.0)]),
                measurement("above", &[(10.0, 20.1)]),
                measurement("unknown", &[]),
            ],
        };
        assert_eq!(report.above(2.0), ["above (pod) 2.01", "unknown (pod) NaN"]);
    }

    #[test]
    fn the_table_shows_rows_flatness_and_missed_aims() {
        let report = Report {
            measurements: vec![measurement(ONE_OF_ONE, &[(10.0, 13.0)]), measurement(ONE_OF_5000, &[(20.0, 30.0)])],
        };
        let expected = "\
row                     body               KB  null req/s  server req/s  null CPU µs  server CPU µs  ratio null RSS MB server RSS MB
1-of-1                  pod               6.5      100000         76923         10.0           13.0   1.30           4            20
1-of-5000               pod               6.5       50000         33333         20.0           30.0   1.50           4            20
flat? pod: 13.0 µs with 1 of 1 set, 30.0 µs with 1 of 5,000; measured by the null server +15.4 %
above the aim of 1.4: 1-of-5000 (pod) 1.50
";
        assert_eq!(report.table().unwrap(), expected);
    }

    #[test]
    fn the_json_holds_medians_and_every_round() {
        let report =
            Report { measurements: vec![measurement(ONE_OF_ONE, &[(10.0, 13.0), (10.0, 14.0), (10.0, 15.0)])] };
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_eq!(json["rows"][0]["serverCpuMicroseconds"], 14.0);
        assert_eq!(json["rows"][0]["rounds"].as_array().unwrap().len(), 3);
        assert_eq!(json["flatness"], serde_json::json!([]));
    }
}
