//! Certificates: read in every form, swapped while serving, and never replaced by a worse one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use outrider::certs::expiry::Alarm;
use outrider::certs::files::{CertificateFiles, ClientNames, FilesError, FollowFiles, ReadResult, Recipients};
use outrider::certs::local::Local;
use outrider::certs::{Authority, PairError, Resolver, ServingPair};
use outrider::metrics::{Freshness, Metrics};
use outrider::readiness::Readiness;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::task::JoinHandle;

use crate::client::{Client, TIMEOUT};
use crate::harness::{DAY, TestServer, any_review, authority};
use crate::toys::path;

fn names() -> Vec<String> {
    vec!["localhost".to_owned()]
}

/// A client that may ask for these names.
fn anybody() -> ClientNames {
    ClientNames { names: names(), ..ClientNames::default() }
}

/// An API server that asks for these names, and trusts what ca.crt holds.
fn api_server() -> ClientNames {
    ClientNames { names_are_known: true, trust_authorities: true, ..anybody() }
}

fn pem_pair(authority: &Authority) -> (String, String) {
    authority.sign_pem(names(), DAY, Timestamp::now()).unwrap()
}

fn write(dir: &Path, certificate: &str, key: &str) {
    std::fs::write(dir.join("tls.crt"), certificate).unwrap();
    std::fs::write(dir.join("tls.key"), key).unwrap();
}

fn leaf_of(resolver: &Resolver) -> Vec<u8> {
    resolver.current().unwrap().certified_key().end_entity_cert().unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_certificate_is_seen_by_the_next_handshake_and_no_connection_is_cut() {
    let server = TestServer::start().await;
    let mut before = server.client().await;
    assert_eq!(before.post(&path("allow"), &any_review()).await.status, 200);
    server.resolver.swap(server.authority.sign(names(), DAY, Timestamp::now()).unwrap());
    let mut after = server.client().await;
    assert_ne!(before.leaf(), after.leaf());
    for client in [&mut before, &mut after] {
        assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_authority_is_refused_by_the_client() {
    let server = TestServer::start().await;
    server.resolver.swap(authority().sign(names(), DAY, Timestamp::now()).unwrap());
    assert!(Client::connect(server.webhook, server.authority.certificate_pem()).await.is_err());
}

#[test]
fn pairs_are_read_in_every_form() {
    // The files are valid for a hundred years from 27 November 2026.
    let made: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
    let table: [(&str, &str, &str, &[&str]); 5] = [
        ("RSA, PKCS #8", include_str!("pairs/rsa.crt"), include_str!("pairs/rsa-pkcs8.key"), &["rsa.example"]),
        ("RSA, PKCS #1", include_str!("pairs/rsa.crt"), include_str!("pairs/rsa-pkcs1.key"), &["rsa.example"]),
        ("ECDSA, SEC1", include_str!("pairs/ec.crt"), include_str!("pairs/ec-sec1.key"), &["ec.example", "127.0.0.1"]),
        (
            "ECDSA, PKCS #8",
            include_str!("pairs/ec.crt"),
            include_str!("pairs/ec-pkcs8.key"),
            &["ec.example", "127.0.0.1"],
        ),
        ("Ed25519", include_str!("pairs/ed25519.crt"), include_str!("pairs/ed25519.key"), &[]),
    ];
    for (form, certificate, key, names) in table {
        let pair = ServingPair::from_pem(certificate.as_bytes(), key.as_bytes(), made);
        assert_eq!(pair.unwrap_or_else(|error| panic!("{form}: {error}")).names(), names, "{form}");
    }
}

#[test]
fn a_chain_is_served_whole() {
    let authority = authority();
    let (leaf, key) = pem_pair(&authority);
    let chain = leaf + authority.certificate_pem();
    let pair = ServingPair::from_pem(chain.as_bytes(), key.as_bytes(), Timestamp::now()).unwrap();
    assert_eq!(pair.certified_key().cert.len(), 2);
}

#[test]
fn pairs_that_cannot_serve_are_told_apart() {
    let authority = authority();
    let (certificate, key) = pem_pair(&authority);
    let (_, other_key) = pem_pair(&authority);
    let now = Timestamp::now();
    let read = |certificate: &str, key: &str, at: Timestamp| {
        ServingPair::from_pem(certificate.as_bytes(), key.as_bytes(), at).unwrap_err()
    };
    assert_eq!(read(&certificate, &other_key, now), PairError::Mismatch);
    assert!(matches!(read(&certificate, &key, now + 48.hours()), PairError::Expired(_)));
    assert!(matches!(read(&certificate, &key, now - 48.hours()), PairError::NotYetValid(_)));
    assert!(matches!(read("", &key, now), PairError::Certificate(_)));
    assert!(matches!(
        read("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &key, now),
        PairError::Certificate(_)
    ));
    assert!(matches!(read(&certificate, "", now), PairError::Key(_)));
    assert!(matches!(read(&certificate, &certificate, now), PairError::Key(_)));
}

#[tokio::test]
async fn what_a_directory_holds_is_served_only_when_it_is_swapped_in() {
    let authority = authority();
    let dir = tempfile::tempdir().unwrap();
    let resolver = Resolver::empty();
    let mut files = CertificateFiles::new(dir.path(), Arc::clone(&resolver), anybody());
    let now = Timestamp::now();
    let error = files.refresh(now).await.unwrap_err();
    assert!(error.to_string().contains("tls.crt"), "{error}");

    let (certificate, key) = pem_pair(&authority);
    write(dir.path(), &certificate, &key);
    assert_eq!(files.refresh(now).await.unwrap(), ReadResult::New);
    assert!(resolver.current().is_none());
    files.swap();
    assert_eq!(files.refresh(now).await.unwrap(), ReadResult::Unchanged);
    let first = leaf_of(&resolver);

    // One that waits goes with its files.
    let (renewed, renewed_key) = pem_pair(&authority);
    write(dir.path(), &renewed, &renewed_key);
    assert_eq!(files.refresh(now).await.unwrap(), ReadResult::New);
    write(dir.path(), &renewed, &key);
    assert!(matches!(files.refresh(now).await.unwrap_err(), FilesError::Pair { source: PairError::Mismatch, .. }));
    files.swap();
    assert_eq!(leaf_of(&resolver), first);
}

#[cfg(unix)]
#[tokio::test]
async fn a_secret_that_the_kubelet_swaps_is_picked_up_at_once() {
    let authority = authority();
    let dir = tempfile::tempdir().unwrap();
    let generation = |name: &str| {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let (certificate, key) = pem_pair(&authority);
        write(&folder, &certificate, &key);
        // As the kubelet does it: a new link beside the old one, renamed over it.
        let link = dir.path().join("..data_tmp");
        std::os::unix::fs::symlink(name, &link).unwrap();
        std::fs::rename(&link, dir.path().join("..data")).unwrap();
    };
    generation("..first");
    for file in ["tls.crt", "tls.key"] {
        std::os::unix::fs::symlink(format!("..data/{file}"), dir.path().join(file)).unwrap();
    }
    let follower = Follower::of(dir.path(), Resolver::empty(), &Readiness::default());
    let first = follower.another_than(&[]).await;
    generation("..second");
    follower.another_than(&first).await;
}

/// Waits until it holds.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, waiting).await.is_ok(), "in {TIMEOUT:?} it did not happen that {what}");
}

/// A directory that is followed.
struct Follower {
    resolver: Arc<Resolver>,
    readiness: Readiness,
    errors: Metrics,
    running: JoinHandle<()>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Follower {
    fn of(dir: &Path, resolver: Arc<Resolver>, readiness: &Readiness) -> Self {
        Self::asked_by(anybody(), dir, resolver, readiness)
    }

    fn asked_by(clients: ClientNames, dir: &Path, resolver: Arc<Resolver>, readiness: &Readiness) -> Self {
        let metrics = Metrics::new(Freshness::default());
        let files = CertificateFiles::new(dir, Arc::clone(&resolver), clients);
        let gate = readiness.gate("certificate");
        let told = Recipients { gate, metrics: metrics.clone(), alarm: Alarm::new(None), bundle: None };
        let running = tokio::spawn(FollowFiles::new(files, Arc::clone(&resolver), told, None).run());
        Self { resolver, readiness: readiness.clone(), errors: metrics, running }
    }

    /// Waits until another leaf is served.
    async fn another_than(&self, leaf: &[u8]) -> Vec<u8> {
        let served = || self.resolver.current().is_some() && leaf_of(&self.resolver) != leaf;
        until("another leaf is served", served).await;
        leaf_of(&self.resolver)
    }

    /// Waits until readiness says so.
    async fn says(&self, expected: &str) {
        until(&format!("readiness says: {expected}"), || self.detail().contains(expected)).await;
    }

    fn detail(&self) -> String {
        self.readiness.checks().pop().unwrap().detail
    }
}

/// A pair that begins so long after now, signed by an authority that does not matter.
fn not_yet_valid() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(names()).unwrap();
    params.not_before = rcgen::date_time_ymd(2999, 1, 1);
    params.not_after = rcgen::date_time_ymd(2999, 2, 1);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_on_disk_the_last_good_pair_is_served() {
    let server = TestServer::start().await;
    let (ours, dir) = (&server.authority, tempfile::tempdir().unwrap());
    let put = |certificate: &str, key: &str, ca: &str| {
        // The key first: so no look between the two finds a pair.
        std::fs::write(dir.path().join("tls.key"), "").unwrap();
        std::fs::write(dir.path().join("ca.crt"), ca).unwrap();
        std::fs::write(dir.path().join("tls.crt"), certificate).unwrap();
        std::fs::write(dir.path().join("tls.key"), key).unwrap();
    };
    let ca = ours.certificate_pem();
    let (certificate, key) = pem_pair(ours);
    put(&certificate, &key, ca);
    let before = leaf_of(&server.resolver);
    let follower = Follower::of(dir.path(), Arc::clone(&server.resolver), &server.readiness);
    let first = follower.another_than(&before).await;
    until("it is ready", || server.readiness.is_ready()).await;

    let (renewed, renewed_key) = pem_pair(ours);
    let ended = ours.sign_pem(names(), Duration::ZERO, Timestamp::now()).unwrap();
    let other_name = ours.sign_pem(vec!["other.example".to_owned()], DAY, Timestamp::now()).unwrap();
    let (foreign, foreign_key) = pem_pair(&authority());
    let half = &renewed[..renewed.len() / 2];
    let (future, future_key) = not_yet_valid();
    let table = [
        ("half-written", half, &*renewed_key, "no usable certificate: "),
        ("emptied", "", &*renewed_key, "no usable certificate: the file holds none"),
        ("the key is half-written", &*renewed, &renewed_key[..renewed_key.len() / 2], "no usable private key"),
        ("of two renewals", &*renewed, &*key, "the private key does not belong to the certificate"),
        ("ended", &*ended.0, &*ended.1, "the certificate ended at"),
        ("for later", &*future, &*future_key, "the certificate is not valid before"),
        ("of something else", &*other_name.0, &*other_name.1, "and not for localhost, as the one in use is"),
        ("of another authority", &*foreign, &*foreign_key, "no authority in ca.crt signed the certificate in tls.crt"),
    ];
    for (what, certificate, key, expected) in table {
        put(certificate, key, ca);
        follower.says(expected).await;
        let mut client = server.client().await;
        assert_eq!(client.leaf(), first, "{what}");
        assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200, "{what}");
        let verbose = server.probe("/readyz?verbose").await;
        assert!(verbose.0 == 200 && verbose.1.contains("[+]certificate ok: the newest is not usable"), "{}", verbose.1);
    }
    assert!(follower.errors.certificate_errors.get() >= 8);
    std::fs::remove_file(dir.path().join("tls.crt")).unwrap();
    follower.says("cannot read ").await;
    assert_eq!(server.client().await.leaf(), first);

    put(&renewed, &renewed_key, ca);
    let second = follower.another_than(&first).await;
    assert_eq!(server.client().await.leaf(), second);
    until("nothing is said any more", || follower.detail().is_empty()).await;
}

/// A pair that is signed by itself alone, as `openssl req -x509` makes it.
fn self_signed() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(names()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_pair_that_the_api_server_would_refuse_is_not_served_and_the_reason_is_told() {
    let (ours, dir) = (authority(), tempfile::tempdir().unwrap());
    let put = |(certificate, key): &(String, String), ca: &str| {
        std::fs::write(dir.path().join("tls.key"), "").unwrap();
        std::fs::write(dir.path().join("ca.crt"), ca).unwrap();
        write(dir.path(), certificate, key);
    };
    let for_names = |names: &[&str]| {
        ours.sign_pem(names.iter().map(|&name| name.to_owned()).collect(), DAY, Timestamp::now()).unwrap()
    };
    let readiness = Readiness::default();
    let follower = Follower::asked_by(api_server(), dir.path(), Resolver::empty(), &readiness);
    let table = [
        (
            for_names(&["other.example", "127.0.0.1"]),
            "for other.example, 127.0.0.1, and the API server asks for localhost",
        ),
        (for_names(&["other.example"]), "have it issued for that name"),
        (for_names(&[]), "for no name, as it has no subjectAltName, and the API server asks for localhost"),
        (ours.sign_pem(names(), Duration::ZERO, Timestamp::now()).unwrap(), "the certificate ended at"),
        (not_yet_valid(), "the certificate is not valid before"),
        (pem_pair(&authority()), "no authority in ca.crt signed the certificate in tls.crt, and caBundle is to hold"),
    ];
    for (pair, expected) in &table {
        put(pair, ours.certificate_pem());
        follower.says(expected).await;
        assert!(follower.resolver.current().is_none() && !readiness.is_ready(), "{expected}");
    }
    put(&pem_pair(&ours), ours.certificate_pem());
    follower.another_than(&[]).await;
    until("it is ready", || readiness.is_ready()).await;
}

#[tokio::test]
async fn a_first_pair_is_judged_only_by_what_is_known_of_those_who_ask() {
    let foreign = authority();
    let other_name = foreign.sign_pem(vec!["other.example".to_owned()], DAY, Timestamp::now()).unwrap();
    let ca = foreign.certificate_pem();
    let (self_signed, wildcard) =
        (self_signed(), foreign.sign_pem(vec!["*.shop.svc".to_owned()], DAY, Timestamp::now()).unwrap());
    let asked = |name: &str| ClientNames { names: vec![name.to_owned()], ..api_server() };
    for (what, pair, ca, clients) in [
        ("nobody said by which name they ask", &other_name, authority().certificate_pem(), anybody()),
        ("the name is another", &other_name, ca, asked("other.example")),
        ("a name for many", &wildcard, ca, asked("hook.shop.svc")),
        ("ca.crt is not there", &other_name, "", asked("other.example")),
        ("its own authority", &self_signed, &self_signed.0, api_server()),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &pair.0, &pair.1);
        std::fs::write(dir.path().join("ca.crt"), ca).unwrap();
        let looked = CertificateFiles::new(dir.path(), Resolver::empty(), clients).refresh(Timestamp::now()).await;
        assert_eq!(looked.unwrap(), ReadResult::New, "{what}");
    }
}

/// In place of a file, what a read of would wait for ever, or never end.
#[cfg(unix)]
#[tokio::test]
async fn what_is_no_file_shows_in_readiness_and_following_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let fifo = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(path(name)).status().unwrap();
        assert!(made.success());
    };
    let authority = authority();
    let readiness = Readiness::default();
    fifo("tls.crt");
    let follower = Follower::of(dir.path(), Resolver::empty(), &readiness);
    follower.says("tls.crt: it is a FIFO, and no regular file").await;
    assert!(!readiness.is_ready());

    std::fs::remove_file(path("tls.crt")).unwrap();
    let (certificate, key) = pem_pair(&authority);
    write(dir.path(), &certificate, &key);
    let first = follower.another_than(&[]).await;
    until("it is ready", || readiness.is_ready()).await;

    // The authorities count as well: they are not what a public authority leaves out.
    fifo("ca.crt");
    follower.says("the newest is not usable: cannot read").await;
    assert!(readiness.is_ready() && leaf_of(&follower.resolver) == first);
    std::fs::remove_file(path("ca.crt")).unwrap();
    until("the same files are in order again", || follower.detail().is_empty()).await;

    std::os::unix::fs::symlink("/dev/zero", path("ca.crt")).unwrap();
    follower.says("ca.crt: it is a device, and no regular file").await;
    std::fs::remove_file(path("ca.crt")).unwrap();
    std::fs::write(path("tls.key"), vec![b'a'; (1 << 20) + 1]).unwrap();
    follower.says("tls.key: it holds more than 1 MiB").await;
    let (certificate, key) = pem_pair(&authority);
    write(dir.path(), &certificate, &key);
    follower.another_than(&first).await;
    until("nothing is said any more", || follower.detail().is_empty()).await;
}

#[tokio::test]
async fn a_directory_that_comes_late_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let mount = dir.path().join("mount");
    let readiness = Readiness::default();
    let follower = Follower::of(&mount, Resolver::empty(), &readiness);
    follower.says("cannot read ").await;
    assert!(!readiness.is_ready());
    std::fs::create_dir(&mount).unwrap();
    let (certificate, key) = pem_pair(&authority());
    write(&mount, &certificate, &key);
    follower.another_than(&[]).await;
    until("it is ready", || readiness.is_ready()).await;
}

#[test]
fn an_authority_read_back_signs_for_the_same_clients() {
    let authority = authority();
    let again = Authority::from_pem(authority.certificate_pem(), &authority.key_pem()).unwrap();
    let pair = again.sign(names(), DAY, Timestamp::now()).unwrap();
    let ca = CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let leaf = pair.certified_key();
    let outcome = rustls::client::danger::ServerCertVerifier::verify_server_cert(
        verifier.as_ref(),
        leaf.end_entity_cert().unwrap(),
        &[],
        &rustls::pki_types::ServerName::try_from("localhost").unwrap(),
        &[],
        rustls::pki_types::UnixTime::now(),
    );
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn a_local_certificate_is_for_this_machine_and_for_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let (resolver, ca_file) = (Resolver::empty(), dir.path().join("ca.crt"));
    let local = Local::serve(&resolver, "shop", &ca_file, Timestamp::now()).unwrap();
    assert_eq!(std::fs::read_to_string(&ca_file).unwrap(), local.authority().certificate_pem());
    let names = resolver.current().unwrap().names().to_vec();
    for name in
        ["localhost", "127.0.0.1", "::1", "outrider-webhook.shop.svc", "outrider-webhook.shop.svc.cluster.local"]
    {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    let missing = dir.path().join("missing/ca.crt");
    let error = Local::serve(&resolver, "shop", &missing, Timestamp::now()).err().unwrap();
    assert!(error.to_string().contains("missing/ca.crt"), "{error}");
}

/// As one that had ended before it was found: in readiness, the log and the metric; and as long as it is not renewed.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_ends_while_it_is_served_is_told() {
    let (ours, dir) = (authority(), tempfile::tempdir().unwrap());
    let (certificate, key) = ours.sign_pem(names(), Duration::from_secs(5), Timestamp::now()).unwrap();
    write(dir.path(), &certificate, &key);
    let readiness = Readiness::default();
    let follower = Follower::of(dir.path(), Resolver::empty(), &readiness);
    let first = follower.another_than(&[]).await;
    assert_eq!(follower.errors.certificate_errors.get(), 0);
    follower.says("the certificate ended at").await;
    assert_eq!(follower.errors.certificate_errors.get(), 1);
    assert_eq!(leaf_of(&follower.resolver), first, "it is served until there is another");

    let (renewed, renewed_key) = pem_pair(&ours);
    write(dir.path(), &renewed, &renewed_key);
    follower.another_than(&first).await;
    until("readiness forgets it", || follower.detail().is_empty()).await;
    assert_eq!(follower.errors.certificate_errors.get(), 1);
}
