//! Certificates: read in every form, swapped while serving, and never replaced by a worse one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use outrider::certs::files::{CertificateFiles, FilesError, Found};
use outrider::certs::{Authority, PairError, Resolver, ServingPair, local};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::client::Client;
use crate::harness::{DAY, TestServer, any_review, authority};
use crate::toys::path;

fn names() -> Vec<String> {
    vec!["localhost".to_owned()]
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
async fn a_directory_is_followed_and_the_last_good_pair_stays() {
    let authority = authority();
    let dir = tempfile::tempdir().unwrap();
    let resolver = Resolver::empty();
    let mut files = CertificateFiles::new(dir.path(), Arc::clone(&resolver));
    let now = Timestamp::now();

    let error = files.look(now).await.unwrap_err();
    assert!(error.to_string().contains("tls.crt"), "{error}");
    assert!(resolver.current().is_none());

    let (certificate, key) = pem_pair(&authority);
    write(dir.path(), &certificate, &key);
    assert_eq!(files.look(now).await.unwrap(), Found::Swapped);
    assert_eq!(files.look(now).await.unwrap(), Found::Unchanged);
    let first = leaf_of(&resolver);

    let (renewed, renewed_key) = pem_pair(&authority);
    write(dir.path(), &renewed, &key);
    assert!(matches!(files.look(now).await.unwrap_err(), FilesError::Pair { source: PairError::Mismatch, .. }));
    assert_eq!(leaf_of(&resolver), first);
    write(dir.path(), "broken", "broken");
    assert!(files.look(now).await.is_err());
    assert_eq!(leaf_of(&resolver), first);
    write(dir.path(), &renewed, &renewed_key);
    assert_eq!(files.look(now).await.unwrap(), Found::Swapped);
    assert_ne!(leaf_of(&resolver), first);
}

#[cfg(unix)]
#[tokio::test]
async fn a_secret_that_the_kubelet_swaps_is_picked_up() {
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
    let resolver = Resolver::empty();
    let mut files = CertificateFiles::new(dir.path(), Arc::clone(&resolver));
    assert_eq!(files.look(Timestamp::now()).await.unwrap(), Found::Swapped);
    let first = leaf_of(&resolver);
    generation("..second");
    assert_eq!(files.look(Timestamp::now()).await.unwrap(), Found::Swapped);
    assert_ne!(leaf_of(&resolver), first);
}

#[tokio::test]
async fn an_error_is_told_once_and_a_swap_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let (told, mut news) = tokio::sync::mpsc::unbounded_channel();
    let files = CertificateFiles::new(dir.path(), Resolver::empty());
    let following = tokio::spawn(files.follow(Duration::from_millis(2), move |result| {
        told.send(result.map_err(ToString::to_string)).unwrap();
    }));
    assert!(news.recv().await.unwrap().is_err());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(news.try_recv().is_err(), "the same error was told twice");
    let (certificate, key) = pem_pair(&authority());
    // The key first, so that no half pair is seen.
    std::fs::write(dir.path().join("tls.key"), key).unwrap();
    std::fs::write(dir.path().join("tls.crt"), certificate).unwrap();
    assert_eq!(news.recv().await.unwrap(), Ok(()));
    following.abort();
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
    let authority = local::serve(&resolver, "shop", &ca_file).unwrap();
    assert_eq!(std::fs::read_to_string(&ca_file).unwrap(), authority.certificate_pem());
    let names = resolver.current().unwrap().names().to_vec();
    for name in
        ["localhost", "127.0.0.1", "::1", "outrider-webhook.shop.svc", "outrider-webhook.shop.svc.cluster.local"]
    {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    let error = local::serve(&resolver, "shop", &dir.path().join("missing/ca.crt")).unwrap_err();
    assert!(error.to_string().contains("missing/ca.crt"), "{error}");
}
