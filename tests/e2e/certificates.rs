//! Authorities that change, and modes, while pods are created.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::Cluster;
use jiff::Timestamp;
use outrider::certs::Authority;
use outrider::certs::trust_anchor::TrustAnchor;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually};
use crate::replicas::{
    CONFIGURATIONS, Endpoints, bundles_in_force, creating_pods, get, service, small_cluster, webhooks_at,
};
use crate::room::SET;

/// A new authority after 20 s.
const SHORT_LIFETIMES: [&str; 4] = [
    "--self-signed-ca-duration=30s",
    "--self-signed-leaf-duration=10s",
    "--ca-bundle-settle=2s",
    "--ca-bundle-overlap=30s",
];

/// No further authority while the test lasts, and what is not needed goes soon.
const QUIET_LIFETIMES: [&str; 4] = [
    "--self-signed-ca-duration=1h",
    "--self-signed-leaf-duration=10s",
    "--ca-bundle-settle=1s",
    "--ca-bundle-overlap=10s",
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What each webhook of ours trusts.
fn trusted(cluster: &Cluster) -> Vec<Vec<TrustAnchor>> {
    let list = get(cluster, &[CONFIGURATIONS]);
    let webhooks =
        list["items"].as_array().unwrap().iter().flat_map(|item| item["webhooks"].as_array().into_iter().flatten());
    let bundle = |webhook: &Value| webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned();
    webhooks.map(|webhook| TrustAnchor::read_all(&STANDARD.decode(bundle(webhook)).unwrap())).collect()
}

/// The newest authority in the Secret, and whether there is a previous one.
fn authority(cluster: &Cluster) -> (TrustAnchor, bool) {
    let data = get(cluster, &["secret", "-n", "outrider-system", "outrider-ca"])["data"].take();
    let newest = STANDARD.decode(data["tls.crt"].as_str().unwrap()).unwrap();
    (TrustAnchor::read_all(&newest).remove(0), data.get("previous.crt").is_some())
}

/// The authority that signs: while another is made known, the one before it, which every webhook trusts.
fn signing(cluster: &Cluster) -> TrustAnchor {
    let data = get(cluster, &["secret", "-n", "outrider-system", "outrider-ca"])["data"].take();
    let certificate = data.get("previous.crt").unwrap_or_else(|| &data["tls.crt"]).as_str().unwrap().to_owned();
    TrustAnchor::read_all(&STANDARD.decode(certificate).unwrap()).remove(0)
}

/// Writes a pair of this authority, as a mounted Secret has it.
fn issue(authority: &Authority, days: u32, dir: &Path) {
    issue_for("outrider-webhook.outrider-system.svc", authority, days, dir);
}

fn issue_for(service: &str, authority: &Authority, days: u32, dir: &Path) {
    let names = [service, "127.0.0.1"].map(str::to_owned);
    let (certificate, key) = authority.sign_pem(names.into(), DAY * days, Timestamp::now()).unwrap();
    let generation = dir.join(format!("..{days}"));
    fs::create_dir_all(&generation).unwrap();
    for (name, text) in [("tls.crt", certificate.as_str()), ("tls.key", &key), ("ca.crt", authority.certificate_pem())]
    {
        fs::write(generation.join(name), text).unwrap();
        drop(std::os::unix::fs::symlink(format!("..data/{name}"), dir.join(name)));
    }
    std::os::unix::fs::symlink(format!("..{days}"), dir.join("..new")).unwrap();
    fs::rename(dir.join("..new"), dir.join("..data")).unwrap();
}

fn made(name: &str) -> Authority {
    Authority::create(name, DAY * 365, Timestamp::now()).unwrap()
}

/// Replicas behind one address.
struct Rollout<'a> {
    cluster: &'a Cluster,
    account: &'a Path,
    endpoints: Arc<Endpoints>,
}

impl Rollout<'_> {
    /// Starts a replica, and waits until it is ready.
    fn start(&self, lifetimes: &[&str], flags: &[&str]) -> Outrider {
        let replica = self.begin(lifetimes, flags);
        replica.ready();
        replica
    }

    /// Starts a replica that need not get ready.
    fn begin(&self, lifetimes: &[&str], flags: &[&str]) -> Outrider {
        let common = [
            "--leader-elect",
            "--drain-delay=2s",
            "--leader-elect-lease-duration=4s",
            "--leader-elect-renew-deadline=3s",
        ];
        let short = ["--leader-elect-retry-period=1s"];
        let replica = Outrider::start(self.cluster, self.account, &[&common[..], &short, lifetimes, flags].concat());
        self.endpoints.add(&replica);
        replica
    }
}

/// The authority in the Secret is replaced because of its age.
fn rotation(cluster: &Cluster) {
    let (first, _) = authority(cluster);
    eventually("there is a new authority, and the old one signs on", || {
        let (newest, is_changing) = authority(cluster);
        newest != first && is_changing
    });
    let (second, _) = authority(cluster);
    eventually("both are trusted", || {
        trusted(cluster).iter().all(|anchors| anchors.contains(&first) && anchors.contains(&second))
    });
    eventually("the new one signs", || authority(cluster) == (second.clone(), false));
    assert!(trusted(cluster).iter().all(|anchors| anchors.contains(&first)), "the old one is trusted for a while");
}

/// The authority is gone, with its key.
fn loss(cluster: &Cluster) {
    let first = signing(cluster);
    cluster.kubectl_ok(&["delete", "secret", "-n", "outrider-system", "outrider-ca"], None).unwrap();
    let secret = || cluster.kubectl(&["get", "secret", "-n", "outrider-system", "outrider-ca"], None).unwrap();
    eventually("there is another", || secret().success());
    let (second, _) = authority(cluster);
    assert_ne!(first, second);
    eventually("both are trusted", || {
        trusted(cluster).iter().all(|anchors| anchors.contains(&first) && anchors.contains(&second))
    });
}

/// From our own authority to files, to the files of another authority, and back.
fn modes(rollout: &Rollout<'_>, from: [Outrider; 2]) -> Outrider {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (made("one"), made("other"));
    issue_for("outrider-webhook.default.svc", &one, 9, dir.path());
    let cert_dir = format!("--cert-dir={}", dir.path().display());
    let files = ["--certificates=files", "--write-ca-bundle", "--namespace=outrider-system", &cert_dir];
    let files = rollout.begin(&SHORT_LIFETIMES, &files);
    eventually("the replica says that nobody would trust it by that name", || {
        files.checks().contains("and the API server asks for outrider-webhook.outrider-system.svc")
    });
    issue(&one, 10, dir.path());
    files.ready();
    let own = signing(rollout.cluster);
    let has = |anchor: &TrustAnchor| trusted(rollout.cluster).iter().all(|anchors| anchors.contains(anchor));
    assert!(has(one.anchor()) && has(&own), "both are trusted once the first replica of the other mode is ready");
    from.into_iter().for_each(Outrider::end);
    eventually("the one with files leads", || files.leads());

    let ends = files.certificate_ends();
    issue(&other, 20, dir.path());
    eventually("the pair of another authority is served", || files.certificate_ends() > ends);
    assert!(has(one.anchor()) && has(other.anchor()), "it was published first");

    let own = rollout.start(&QUIET_LIFETIMES, &["--certificates=self"]);
    assert!(has(other.anchor()) && has(&signing(rollout.cluster)));
    files.end();
    eventually("the one with its own authority leads", || own.leads());
    own
}

#[test]
#[ignore = "needs a control plane: make test"]
fn no_pod_is_refused_while_authorities_and_modes_change() {
    let (cluster, account) = small_cluster();
    let rollout = Rollout { cluster: &cluster, account: &account, endpoints: Arc::default() };
    let own = ["--certificates=self"];
    let replicas = [rollout.start(&SHORT_LIFETIMES, &own), rollout.start(&SHORT_LIFETIMES, &own)];
    let address = service(Arc::clone(&rollout.endpoints));
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks_at(address))).unwrap();
    bundles_in_force(&cluster);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&SET.replace("ROOM", "replicated"))).unwrap();

    let (last, created, failed) = creating_pods(&cluster, || {
        rotation(&cluster);
        loss(&cluster);
        modes(&rollout, replicas)
    });
    assert_eq!(failed, Vec::<String>::new());
    assert!(created > 20, "{created} pods were created");
    eventually("only what is needed is trusted", || {
        let (newest, is_changing) = authority(&cluster);
        !is_changing && trusted(&cluster).iter().all(|anchors| *anchors == [newest.clone()])
    });
    last.end();
}

/// A process outside the cluster that registers itself, while the namespace of its authority's Secret appears, and the Secret
/// and then the namespace go.
#[test]
#[ignore = "needs a control plane: make test"]
fn no_pod_is_refused_while_a_process_outside_the_cluster_gets_another_authority() {
    let (cluster, _) = small_cluster();
    let flags =
        ["--namespace=outside", "--ca-bundle-settle=3s", "--ca-bundle-overlap=15s", "--self-signed-leaf-duration=10s"];
    let process = Outrider::registered_as(&cluster, &cluster.kubeconfig(), &flags);
    process.ready();
    eventually("it is registered", || {
        let trusted = trusted(&cluster);
        !trusted.is_empty() && trusted.iter().all(|anchors| anchors.len() == 1)
    });
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&SET.replace("ROOM", "replicated"))).unwrap();
    let in_memory = trusted(&cluster).remove(0).remove(0);

    let secret = ["secret", "-n", "outside", "outrider-ca"];
    let stored = || {
        let found = cluster.kubectl(&[&["get", "-o", "json"], &secret[..]].concat(), None).unwrap();
        let found: Value = serde_json::from_str(&found.stdout).unwrap_or_default();
        let certificate = STANDARD.decode(found["data"]["tls.crt"].as_str().unwrap_or_default()).unwrap();
        TrustAnchor::read_all(&certificate).pop()
    };
    let is_trusted = |anchor: &TrustAnchor| trusted(&cluster).iter().all(|anchors| anchors.contains(anchor));
    let is_served = |anchor: &TrustAnchor| {
        process.log().lines().any(|line| line.contains("Signed a serving") && line.contains(anchor.fingerprint()))
    };
    let ((), created, failed) = creating_pods(&cluster, || {
        cluster.kubectl_ok(&["create", "namespace", "outside"], None).unwrap();
        eventually("the Secret holds what was in memory", || stored().as_ref() == Some(&in_memory));
        cluster.kubectl_ok(&[&["delete"], &secret[..]].concat(), None).unwrap();
        eventually("there is another authority", || stored().is_some_and(|anchor| anchor != in_memory));
        let second = stored().unwrap();
        eventually("both are trusted", || is_trusted(&in_memory) && is_trusted(&second));
        eventually("the second signs", || is_served(&second));
        assert!(is_trusted(&in_memory), "the first is trusted for a while");
        cluster.kubectl_ok(&["delete", "namespace", "outside", "--wait=false"], None).unwrap();
        // This cluster has no controller that empties a namespace.
        let finalize = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "outside"}}).to_string();
        cluster.kubectl_ok(&[&["delete"], &secret[..]].concat(), None).unwrap();
        cluster
            .kubectl_ok(&["replace", "--raw", "/api/v1/namespaces/outside/finalize", "-f", "-"], Some(&finalize))
            .unwrap();
        // It signs a certificate every few seconds.
        let signers = || {
            let log = process.log();
            let signed = log.lines().filter(|line| line.contains("Signed a serving certificate"));
            let authority = |line: &str| line.split_once("authority=")?.1.split(' ').next().map(str::to_owned);
            signed.filter_map(authority).collect::<BTreeSet<String>>().len()
        };
        eventually("the third signs", || signers() == 3);
        assert!(is_trusted(&second), "the second is trusted for a while");
    });
    assert_eq!(failed, Vec::<String>::new());
    assert!(created > 20, "{created} pods were created");
    eventually("only what is needed is trusted", || trusted(&cluster).iter().all(|anchors| anchors.len() == 1));
    let configuration = get(&cluster, &["mutatingwebhookconfiguration", "outrider-mutating"]);
    assert_eq!(configuration["metadata"]["annotations"].get("outrider.dev/ca-retiring"), None, "{configuration}");
    process.end();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn what_belongs_to_the_injector_is_left_alone() {
    let (cluster, account) = small_cluster();
    let other = made("other");
    cluster
        .kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks_at("127.0.0.1:1".parse().unwrap())))
        .unwrap();
    let annotate = |annotation: &str| {
        let arguments = ["annotate", "mutatingwebhookconfiguration", "outrider-mutating", annotation];
        cluster.kubectl_ok(&arguments, None).unwrap();
    };
    annotate("cert-manager.io/inject-ca-from=outrider-system/outrider");
    let bundle = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": STANDARD.encode(other.certificate_pem())}]);
    let patch =
        ["patch", "mutatingwebhookconfiguration", "outrider-mutating", "--type=json", "-p", &bundle.to_string()];
    cluster.kubectl_ok(&patch, None).unwrap();

    let replica = Outrider::start(&cluster, &account, &["--certificates=self", "--ca-bundle-settle=1s"]);
    eventually("the replica says why it is not ready", || {
        replica
            .checks()
            .contains("[-]certificate failed: caBundle of mutatingwebhookconfiguration/outrider-mutating does not hold")
    });
    let mutating = || {
        let found = get(&cluster, &["mutatingwebhookconfiguration", "outrider-mutating"]);
        let bundle = found["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap().to_owned();
        TrustAnchor::read_all(&STANDARD.decode(bundle).unwrap())
    };
    assert_eq!(mutating(), [other.anchor().clone()]);
    annotate("cert-manager.io/inject-ca-from-");
    replica.ready();
    let both = mutating();
    assert!(both.len() == 2 && both.contains(other.anchor()) && both.contains(&authority(&cluster).0));
    let retiring = get(&cluster, &["mutatingwebhookconfiguration", "outrider-mutating"])["metadata"]["annotations"]
        ["outrider.dev/ca-retiring"]
        .take();
    assert!(retiring.as_str().unwrap().contains(other.anchor().fingerprint()), "{retiring}");

    // A Secret that cannot be used is replaced, and an event reports it.
    let broken =
        ["patch", "secret", "-n", "outrider-system", "outrider-ca", "-p", r#"{"data":{"tls.key":"YnJva2Vu"}}"#];
    let old = authority(&cluster).0;
    cluster.kubectl_ok(&broken, None).unwrap();
    eventually("there is another", || authority(&cluster).0 != old);
    eventually("an event tells", || {
        let events = ["events", "-n", "default", "--for=mutatingwebhookconfiguration/outrider-mutating"];
        cluster.kubectl_ok(&events, None).unwrap().contains("AuthorityReplaced")
    });
    assert!(mutating().contains(&old), "the replica is still served by the old one");
    replica.end();
}
