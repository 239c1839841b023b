//! The entries of admission plugins and a Helm release: an upgrade changes none, and what `--force` takes away the leader restores; with
//! certificates of our own, and with those that cert-manager's injector brings.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use cluster::{Cluster, Options};
use jiff::Timestamp;
use outrider::certs::Authority;
use serde_json::{Value, json};

use crate::cluster_objects::install_cert_manager;
use crate::helm::{CHART, helm, succeeded};
use crate::plugins::{apply, plugin};
use crate::process::{Outrider, eventually};

const VALIDATING: &str = "validatingwebhookconfiguration/outrider-validating";
const ON_DEMAND: &str = "validatingwebhookconfiguration/outrider-on-demand-validating";
const ENTRY: &str = "denyserviceexternalips.policy.outrider.dev";

struct Release {
    cluster: Cluster,
    flags: &'static [&'static str],
}

impl Release {
    fn install(flags: &'static [&'static str]) -> Self {
        let options = Options { kwok: false, controller_manager: false, ..Options::default() };
        let cluster = Cluster::start_with(&options).unwrap();
        install_cert_manager(&cluster);
        let release = Self { cluster, flags };
        release.helm(&["install", "outrider", CHART, "--create-namespace"]);
        release.cluster.wait_for_definitions().unwrap();
        release
    }

    fn helm(&self, args: &[&str]) {
        let own = ["--namespace=outrider-system"];
        succeeded(&helm(&self.cluster.kubeconfig(), &[args, &own, self.flags].concat()));
    }

    fn upgrade(&self, args: &[&str]) {
        self.helm(&[&["upgrade", "outrider", CHART], args].concat());
    }

    fn account(&self) -> PathBuf {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:outrider-system", "system:authenticated"];
        self.cluster.kubeconfig_for("system:serviceaccount:outrider-system:outrider", &groups).unwrap()
    }

    fn webhooks(&self, object: &str) -> Vec<Value> {
        let found = self.cluster.kubectl_ok(&["get", object, "-o", "json"], None).unwrap();
        let mut found: Value = serde_json::from_str(&found).unwrap();
        found["webhooks"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether there is the one entry, with a bundle.
    fn has_entry(&self) -> bool {
        let entries = self.webhooks(ON_DEMAND);
        entries.len() == 1 && entries[0]["name"] == ENTRY && entries[0]["clientConfig"]["caBundle"].is_string()
    }

    /// How often what the API server calls has changed: it counts each change of the entries.
    fn generation(&self) -> i64 {
        let found =
            self.cluster.kubectl_ok(&["get", ON_DEMAND, "-o", "jsonpath={.metadata.generation}"], None).unwrap();
        found.parse().unwrap()
    }

    fn patch(&self, object: &str, patch: &Value) {
        self.cluster.kubectl_ok(&["patch", object, "--type=json", "-p", &patch.to_string()], None).unwrap();
    }

    /// As cert-manager's injector does.
    fn inject(&self, object: &str) {
        let bundle =
            |at: usize| json!({"op": "add", "path": format!("/webhooks/{at}/clientConfig/caBundle"), "value": "Y2E="});
        let patch: Vec<Value> = (0..self.webhooks(object).len()).map(bundle).collect();
        self.patch(object, &patch.into());
    }

    /// No Service of this cluster leads anywhere, so the object must be created while no entry is there.
    fn switch_on(&self) {
        let kept = self.webhooks(VALIDATING);
        self.patch(VALIDATING, &json!([{"op": "remove", "path": "/webhooks"}]));
        let object = plugin("external", &json!({"plugin": "DenyServiceExternalIPs"}));
        eventually("the API server calls no webhook", || {
            let created = self.cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], Some(&object.to_string()));
            created.unwrap().success()
        });
        apply(&self.cluster, &[object]);
        self.patch(VALIDATING, &json!([{"op": "add", "path": "/webhooks", "value": kept}]));
    }
}

#[test]
#[ignore = "needs helm and a control plane: make test"]
fn an_upgrade_changes_no_entry_and_the_leader_restores_what_force_takes_with_own_certificates() {
    let release = Release::install(&["--set=certManager.enabled=false"]);
    let outrider = Outrider::start(&release.cluster, &release.account(), &["--certificates=self", "--leader-elect"]);
    outrider.ready();
    release.switch_on();
    eventually("the entry is there", || release.has_entry());
    let before = release.webhooks(ON_DEMAND);
    release.upgrade(&["--set=log.level=debug"]);
    assert_eq!(release.webhooks(ON_DEMAND), before);
    let generation = release.generation();
    release.upgrade(&["--force"]);
    eventually("the entry is taken and restored", || release.generation() >= generation + 2 && release.has_entry());
    assert_eq!(release.webhooks(ON_DEMAND), before);
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    // Without a leader they stay away, until there is one.
    outrider.end();
    release.upgrade(&["--force"]);
    assert_eq!(release.webhooks(ON_DEMAND), Vec::<Value>::new());
    let outrider = Outrider::start(&release.cluster, &release.account(), &["--certificates=self", "--leader-elect"]);
    outrider.ready();
    eventually("the next leader restores the entry", || release.has_entry());
}

#[test]
#[ignore = "needs helm and a control plane: make test"]
fn an_upgrade_changes_no_entry_and_the_leader_restores_what_force_takes_with_an_injector() {
    let release = Release::install(&[]);
    let day = Duration::from_secs(24 * 60 * 60);
    let authority = Authority::create("test", day, Timestamp::now()).unwrap();
    let name = vec!["outrider-webhook.outrider-system.svc".to_owned()];
    let (certificate, key) = authority.sign_pem(name, day, Timestamp::now()).unwrap();
    let folder = release.cluster.dir().join("certs");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("tls.crt"), certificate).unwrap();
    fs::write(folder.join("tls.key"), key).unwrap();
    let folder = format!("--cert-dir={}", folder.display());
    let flags = ["--certificates=files", folder.as_str(), "--leader-elect"];
    let outrider = Outrider::start(&release.cluster, &release.account(), &flags);
    outrider.ready();
    release.inject(VALIDATING);
    release.switch_on();
    eventually("the entry is there", || release.has_entry());
    // What the injector wrote stays.
    release.inject(ON_DEMAND);
    let before = release.webhooks(ON_DEMAND);
    release.upgrade(&["--set=log.level=debug"]);
    assert_eq!(release.webhooks(ON_DEMAND), before);
    let generation = release.generation();
    release.upgrade(&["--force"]);
    release.inject(VALIDATING);
    eventually("the entry is taken and restored", || release.generation() >= generation + 2 && release.has_entry());
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
}
