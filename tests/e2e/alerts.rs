//! Alerts, evaluated by promtool on what Outrider and the API server exposed in a real run.
//!
//! Alerts wait for minutes, so each step of the run is stretched. Three alerts are not here, but on series that are written by hand, in
//! `tests/chart/alerts-test.yaml`: nothing outside makes the process panic, and for half a second of a review or five minutes without news
//! a test would wait for long.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::Cluster;
use jiff::{Span, Timestamp};
use outrider::certs::Authority;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, outrider};
use crate::promtool::{file, promtool};
use crate::replicas::{bundles_in_force, get, small_cluster, webhooks_at};
use crate::room::{POD, SET};
use crate::toy_webhook::Begun;

const ALERTS: &str = "charts/outrider/files/alerts.yaml";

/// Minutes that a step takes for promtool: longer than any alert waits.
const MINUTES: u32 = 40;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a step left behind: every series with its value then.
type Scrape = BTreeMap<String, f64>;

struct Run<'a> {
    cluster: &'a Cluster,
    account: &'a Path,
    certificates: &'a Path,
    authority: Authority,
    process: Option<Outrider>,
    scrapes: Vec<Scrape>,
    expected: Vec<&'static [&'static str]>,
}

impl Run<'_> {
    fn process(&self) -> &Outrider {
        self.process.as_ref().unwrap()
    }

    fn kubectl(&self, args: &[&str], input: &str) {
        self.cluster.kubectl_ok(args, Some(input)).unwrap();
    }

    /// Applies a fixture of rooms under a name of its own.
    fn apply(&self, fixture: &str, name: &str) {
        self.kubectl(
            &["apply", "-f", "-"],
            &fixture.replace("ROOM", name).replace("name: web,", &format!("name: {name},")),
        );
    }

    fn start(&mut self, flags: &[&str]) {
        let folder = format!("--cert-dir={}", self.certificates.display());
        let own =
            ["--certificates=files", "--write-ca-bundle", "--ca-bundle-settle=1s", "--ca-bundle-overlap=1s", &folder];
        let process = Outrider::start(self.cluster, self.account, &[&own, flags].concat());
        process.ready();
        self.process = Some(process);
    }

    /// Writes a certificate that began and ends so many days from now, as a mounted Secret has it.
    fn issue(&mut self, began: i64, ends: i64, authority: Option<Authority>) {
        if let Some(authority) = authority {
            self.authority = authority;
        }
        let days = u32::try_from(ends - began).unwrap();
        let names = ["outrider-webhook.outrider-system.svc", "localhost", "127.0.0.1"].map(str::to_owned);
        let (certificate, key) = self.authority.sign_pem(names.into(), DAY * days, days_from_now(began)).unwrap();
        self.mount(&certificate, &key);
    }

    fn mount(&self, certificate: &str, key: &str) {
        let (folder, now) = (self.certificates, Timestamp::now().as_nanosecond());
        let generation = format!("..{now}");
        fs::create_dir(folder.join(&generation)).unwrap();
        for (name, text) in [("tls.crt", certificate), ("tls.key", key), ("ca.crt", self.authority.certificate_pem())] {
            fs::write(folder.join(&generation).join(name), text).unwrap();
            drop(std::os::unix::fs::symlink(format!("..data/{name}"), folder.join(name)));
        }
        std::os::unix::fs::symlink(&generation, folder.join("..new")).unwrap();
        fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    }

    fn value(&self, begins: &str) -> f64 {
        let scrape = scrape(self.cluster, self.process.as_ref());
        scrape.iter().filter(|(series, _)| series.starts_with(begins)).map(|(_, value)| value).sum()
    }

    /// Ends a step, in which these alerts fire.
    fn ends(&mut self, expected: &'static [&'static str]) {
        self.scrapes.push(scrape(self.cluster, self.process.as_ref()));
        self.expected.push(expected);
    }
}

fn days_from_now(days: i64) -> Timestamp {
    Timestamp::now() + Span::new().hours(days * 24)
}

fn aged(name: &str, age: i64) -> Authority {
    Authority::create(name, DAY * 365, days_from_now(-age)).unwrap()
}

/// What is exposed now that alerts read.
fn scrape(cluster: &Cluster, process: Option<&Outrider>) -> Scrape {
    let of_webhooks = |line: &&str| line.starts_with("apiserver_admission_webhook_") && line.contains("outrider.dev\"");
    let of_api_server = cluster.kubectl_ok(&["get", "--raw", "/metrics"], None).unwrap();
    let own = process.map(Outrider::metrics).unwrap_or_default();
    let lines =
        own.lines().filter(|line| line.starts_with("outrider_")).chain(of_api_server.lines().filter(of_webhooks));
    let alerts = file(ALERTS);
    let is_read = |series: &str| alerts.contains(series.split('{').next().unwrap());
    let read = lines.filter_map(|line| line.rsplit_once(' ')).filter(|(series, _)| is_read(series));
    read.map(|(series, value)| (series.to_owned(), value.parse().unwrap())).collect()
}

/// The run as promtool reads it: counters grow during a step, everything else is as it was at its end.
fn series(scrapes: &[Scrape]) -> Vec<Value> {
    let began = Timestamp::now().as_duration().as_secs_f64();
    let names: std::collections::BTreeSet<&String> = scrapes.iter().flat_map(BTreeMap::keys).collect();
    let values = |series: &str| {
        let shift = if series.contains("_timestamp_seconds") { began } else { 0.0 };
        let grows =
            ["_total", "_count", "_bucket", "_sum"].iter().any(|end| series.split('{').next().unwrap().ends_with(end));
        let steps = scrapes.windows(2).flat_map(|step| {
            let (before, after) = (step[0].get(series), step[1].get(series));
            (1..=MINUTES).map(move |minute| match (before, after) {
                (_, None) => "_".to_owned(),
                (Some(before), Some(after)) if grows && after > before => {
                    (before + (after - before) * f64::from(minute) / f64::from(MINUTES)).to_string()
                }
                (_, Some(after)) => (after - shift).to_string(),
            })
        });
        steps.collect::<Vec<_>>().join(" ")
    };
    names.into_iter().map(|name| json!({"series": name, "values": values(name)})).collect()
}

/// Every expected alert fires in its step, nothing fires at the end of a step in which nothing is to.
fn checks(expected: &[&[&str]]) -> Vec<Value> {
    let mut checks = Vec::new();
    for (alerts, step) in expected.iter().zip(1..) {
        let end = format!("{}m", step * MINUTES - 1);
        for alert in *alerts {
            let fired = format!(
                "group(max_over_time(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}[{}m]))",
                MINUTES - 1
            );
            checks.push(json!({"expr": fired, "eval_time": end, "exp_samples": [{"labels": "{}", "value": 1}]}));
        }
        if alerts.is_empty() {
            checks.push(json!({"expr": "ALERTS{alertstate=\"firing\"}", "eval_time": end, "exp_samples": []}));
        }
    }
    checks
}

fn nothing_is_wrong(run: &mut Run<'_>) {
    run.apply(POD, "first");
    run.ends(&[]);
}

fn pods_are_refused_or_come_without_sidecars(run: &mut Run<'_>) {
    let clash = POD.replace("ROOM", "first").replace("name: web", "name: clash").replace("name: app", "name: proxy");
    let refused = run.cluster.kubectl(&["create", "-f", "-"], Some(&clash)).unwrap();
    assert!(refused.stderr.contains("has the name of"), "{refused:?}");
    run.ends(&["OutriderPodsWithoutSidecars"]);

    let pod: Value = engine::yaml::read(&POD.replace("ROOM", "first")).unwrap().remove(0).value;
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "default", "object": pod,
        },
    });
    let authority = run.authority.certificate_pem().as_bytes();
    let (address, authority) = (run.process().webhooks, authority.to_vec());
    let post = |path: &str, body: &str| drop(Begun::post(address, &authority, path, body).finish());
    post("/validate--v1-pod", &review.to_string());
    run.ends(&["OutriderPodsUninjected"]);
    // A rate does not see the first of a series: only requests that go on being unreadable are an alert.
    post("/mutate--v1-pod", "this is no review");
    run.ends(&[]);
    post("/mutate--v1-pod", "this is no review");
    run.ends(&["OutriderDoesNotDecide"]);

    run.apply(POD, "late");
    run.apply(SET, "late");
    let missing = "outrider_sidecarset_pods{state=\"missing\"}";
    eventually("the pod is counted", || run.value(missing) > 0.0);
    run.ends(&["OutriderPodsWithoutTheirSet"]);
    run.kubectl(&["delete", "pod", "late", "--force", "--grace-period=0"], "");
    eventually("no pod is without its set", || run.value(missing) == 0.0);
}

fn certificates_end(run: &mut Run<'_>) {
    let before = run.process().certificate_ends();
    run.issue(-95, 5, Some(aged("old", 350)));
    eventually("the old certificate is served", || run.process().certificate_ends() != before);
    run.ends(&["OutriderCertificateEnds", "OutriderAuthorityEnds"]);

    run.mount("no certificate", "no key");
    eventually("it is refused", || run.value("outrider_certificate_errors_total") > 0.0);
    run.ends(&["OutriderCertificateRefused"]);

    let before = run.process().certificate_ends();
    run.issue(0, 90, Some(aged("new", 0)));
    eventually("the new certificate is served", || run.process().certificate_ends() != before);
    run.ends(&[]);
}

fn a_controller_fails(run: &mut Run<'_>) {
    run.kubectl(&["delete", "clusterrolebinding", "outrider"], "");
    let sets: Vec<String> = (0..30).map(|number| SET.replace("ROOM", &format!("failing-{number}"))).collect();
    run.kubectl(&["apply", "-f", "-"], &sets.join("---"));
    eventually("reconciles fail", || {
        run.value("outrider_reconcile_total{controller=\"sidecarset\",result=\"error\"}") > 20.0
    });
    run.ends(&["OutriderControllerFails"]);
    run.kubectl(&["apply", "--server-side", "-f", "-"], &outrider(&["manifests", "rbac"]));
    run.kubectl(&["delete", "-f", "-"], &sets.join("---"));
}

fn nobody_answers(run: &mut Run<'_>) {
    let address = run.process().webhooks;
    run.process.take().unwrap().end();
    let refused = run.cluster.kubectl(&["create", "-f", "-"], Some(&POD.replace("name: web", "name: lost"))).unwrap();
    assert!(refused.stderr.contains("failed calling webhook"), "{refused:?}");
    let policy = |policy: &str| {
        let configurations = webhooks_at(address).replace("\"Fail\"", &format!("\"{policy}\""));
        run.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &configurations);
    };
    policy("Ignore");
    let open = POD.replace("name: web", "name: open");
    eventually("the API server knows the new policy", || {
        run.cluster.kubectl(&["create", "-f", "-"], Some(&open)).unwrap().success()
    });
    policy("Fail");
    run.ends(&["OutriderNotReady", "OutriderReplicaNotReady", "OutriderNotReached", "OutriderPassedBy"]);
    run.start(&[&format!("--webhook-bind-address={address}")]);
    run.apply(POD, "last");
    run.ends(&[]);
}

#[test]
#[ignore = "needs a control plane: make test"]
fn alerts_fire_and_end_on_what_a_real_run_exposed() {
    let (cluster, account): (Cluster, PathBuf) = small_cluster();
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run {
        cluster: &cluster,
        account: &account,
        certificates: folder.path(),
        authority: aged("first", 0),
        process: None,
        scrapes: Vec::new(),
        expected: Vec::new(),
    };
    run.issue(0, 90, None);
    run.start(&[]);
    run.kubectl(&["apply", "--server-side", "-f", "-"], &webhooks_at(run.process().webhooks));
    bundles_in_force(&cluster);
    run.apply(SET, "first");
    eventually("the set is observed", || get(&cluster, &["sidecarset", "first"])["status"]["observedGeneration"] == 1);
    run.scrapes.push(scrape(&cluster, run.process.as_ref()));
    nothing_is_wrong(&mut run);
    pods_are_refused_or_come_without_sidecars(&mut run);
    certificates_end(&mut run);
    a_controller_fails(&mut run);
    nobody_answers(&mut run);

    let mut input = series(&run.scrapes);
    // kube-state-metrics would expose it.
    let wanted = "kube_deployment_spec_replicas{namespace=\"outrider-system\",deployment=\"outrider\"}";
    input.push(json!({"series": wanted, "values": format!("1+0x{}", 20 * MINUTES)}));
    let test = json!({"interval": "1m", "input_series": input, "promql_expr_test": checks(&run.expected)});
    let tests = json!({"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": [test]});
    promtool(&[("alerts.yaml", &*file(ALERTS)), ("test.yaml", &*tests.to_string())], &["test", "rules", "test.yaml"]);
}
