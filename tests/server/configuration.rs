//! `outrider serve --config FILE`, as a process.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::client::plain_get;
use crate::process::{OUTRIDER, Process};

const HEADER: &str = "apiVersion: config.outrider.dev/v2\nkind: ProjectConfig\n";

struct Folder(TempDir);

impl Folder {
    /// With a file of this text, if there is to be one.
    fn with(text: Option<&str>) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        if let Some(text) = text {
            fs::write(folder.config(), text).unwrap();
        }
        folder
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("outrider.yaml")
    }

    fn start(&self, more: &[&str]) -> Process {
        let config = format!("--config={}", self.config().display());
        let own = [config.as_str(), "--log-level=debug", "--drain-delay=0"];
        Process::standalone_on(&self.0.path().join("ca.crt"), &[&own, more].concat())
    }
}

/// The object in the log.
fn effective(process: &mut Process) -> Value {
    let line = process.line("Effective configuration");
    serde_json::from_str(line["configuration"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_does_what_the_file_says() {
    let text = format!(
        "{HEADER}clusterName: east\nmetrics: {{bindAddress: '0', port: 1}}\n\
         health: {{healthProbeBindAddress: '127.0.0.1:0', livenessEndpointName: /alive}}\n\
         leaderElection: {{leaderElect: true, resourceName: dc61ccc6.outrider.dev}}\n"
    );
    let folder = Folder::with(Some(&text));
    let mut process = folder.start(&["--leader-elect=false", "--validate=warn"]);
    assert_eq!(process.line("unknown field \"metrics.port\"; known here: bindAddress")["level"], "WARN");
    assert_eq!(process.line("Configuration read")["cluster_name"], "east");
    let effective = effective(&mut process);
    assert_eq!(effective["leaderElection"]["leaderElect"], false, "the flag was given");
    assert_eq!(effective["leaderElection"]["resourceName"], "dc61ccc6.outrider.dev");
    let listening = process.line("Listening");
    assert_eq!(listening["metrics"], "off");
    let health = listening["health"].as_str().unwrap().parse().unwrap();
    assert_eq!(plain_get(health, "/alive").await.0, 200);
    assert_eq!(plain_get(health, "/healthz").await.0, 404);
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
}

/// Acceptance check 27: a flag wins.
#[test]
fn a_flag_that_is_given_wins_over_the_file() {
    let text = format!("{HEADER}metrics: {{bindAddress: '127.0.0.1:0'}}\nhealth: {{healthProbeBindAddress: '0'}}\n");
    let folder = Folder::with(Some(&text));
    let mut process = folder.start(&["--metrics-bind-address=0"]);
    assert_eq!(effective(&mut process)["metrics"]["bindAddress"], "0");
    let listening = process.line("Listening");
    assert_eq!((&listening["metrics"], &listening["health"]), (&"off".into(), &"off".into()));
}

#[test]
fn a_budget_of_nothing_ends_the_process_without_a_drain_delay() {
    let text = format!(
        "{HEADER}gracefulShutDown: 0s\nmetrics: {{bindAddress: '0'}}\nhealth: {{healthProbeBindAddress: '0'}}\n"
    );
    let folder = Folder::with(Some(&text));
    let config = format!("--config={}", folder.config().display());
    let mut process = Process::standalone_on(&folder.0.path().join("ca.crt"), &[&config, "--drain-delay=1h"]);
    process.line("gracefulShutDown ends the process before --drain-delay is over; requests may be refused meanwhile");
    process.line("Listening");
    process.signal("TERM");
    process.line("Ended in order");
    assert_eq!(process.end().code(), Some(0));
}

/// Acceptance check 27: a file that is not there, or is none.
#[test]
fn a_file_that_cannot_be_used_ends_the_process_with_exit_code_2() {
    let not_ours = "it must be one object with apiVersion: config.outrider.dev/v2 and kind: ProjectConfig\n";
    for (text, told) in [
        (None, "could not read file at FILE: No such file or directory (os error 2)\n".to_owned()),
        (
            Some("apiVersion: v1\nkind: ConfigMap\n".to_owned()),
            format!(
                "could not decode file into runtime.Object: FILE: \
                 it holds apiVersion: \"v1\" and kind: \"ConfigMap\"; {not_ours}"
            ),
        ),
        (
            Some(format!("{HEADER}syncPeriod: often\n")),
            "FILE cannot be used:\n  \
             syncPeriod: Invalid value: \"often\": write a duration such as 10s, 1m30s or 500ms\n"
                .to_owned(),
        ),
    ] {
        let folder = Folder::with(text.as_deref());
        let output =
            Command::new(OUTRIDER).args(["serve", "--standalone", "--config"]).arg(folder.config()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{text:?}");
        let wanted = format!("error: unable to load the config file: {told}");
        let file = folder.config().display().to_string();
        assert_eq!(String::from_utf8(output.stderr).unwrap().replace(&file, "FILE"), wanted);
        assert!(output.stdout.is_empty());
    }
}
