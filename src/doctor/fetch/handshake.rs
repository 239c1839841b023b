//! Asks each webhook for its certificate, where it can be reached from here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certs::files::listed;
use crate::certs::pair::is_same_name;
use crate::doctor::certificates::{read, read_bundle};
use crate::doctor::entries::ConfigurationEntry;
use crate::doctor::facts::{Facts, Handshake};
use crate::doctor::serving::is_ready;
use crate::names::SERVICE_NAME_LABEL;

/// From outside a cluster most webhooks cannot be reached; that is no finding, and not worth a long wait.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

const AT_ONCE: usize = 8;

/// What each webhook that can be reached answers, by its key.
pub async fn all(facts: &Facts) -> BTreeMap<String, Handshake> {
    let entries = ConfigurationEntry::all(facts).into_iter().chain(ConfigurationEntry::converters(facts));
    let asked = entries.filter_map(|entry| Some((entry.key(), question(&entry, facts)?)));
    let answers = futures::stream::iter(asked).map(|(key, question)| async move {
        let answer = tokio::time::timeout(HANDSHAKE_TIMEOUT * 2, question.ask()).await.ok().flatten();
        answer.map(|answer| (key, answer))
    });
    answers.buffer_unordered(AT_ONCE).filter_map(|answer| async move { answer }).collect().await
}

pub(super) struct Question {
    address: (String, u16),
    name: ServerName<'static>,
    ca_bundle: Vec<u8>,
    /// An address in the cluster's network need not be reachable from here.
    by_url: bool,
}

pub(super) fn question(entry: &ConfigurationEntry<'_>, facts: &Facts) -> Option<Question> {
    let ca_bundle = entry.client.ca_bundle.clone().map(|ByteString(pem)| pem).unwrap_or_default();
    if let Some(url) = &entry.client.url {
        let uri: http::Uri = url.parse().ok()?;
        let host = uri.host()?.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host.clone()).ok()?;
        return Some(Question { address: (host, uri.port_u16().unwrap_or(443)), name, ca_bundle, by_url: true });
    }
    let service = entry.client.service.as_ref().filter(|_| !ca_bundle.is_empty())?;
    // The name that the API server asks for (`k8s.io/apiserver/pkg/util/webhook`, `HookClient`).
    let name = ServerName::try_from(format!("{}.{}.svc", service.name, service.namespace)).ok()?;
    let address = endpoint(&service.namespace, &service.name, facts)?;
    Some(Question { address, name, ca_bundle, by_url: false })
}

/// The address of a ready endpoint.
fn endpoint(namespace: &str, service: &str, facts: &Facts) -> Option<(String, u16)> {
    facts.endpoint_slices.iter().find_map(|slice| {
        let label = slice.metadata.labels.as_ref()?.get(SERVICE_NAME_LABEL)?;
        if label != service || slice.metadata.namespace.as_deref() != Some(namespace) {
            return None;
        }
        let port = slice.ports.iter().flatten().find_map(|port| u16::try_from(port.port?).ok())?;
        let ready = slice.endpoints.iter().flatten().find(|endpoint| is_ready(endpoint))?;
        Some((ready.addresses.first()?.clone(), port))
    })
}

impl Question {
    /// The answer; nothing where there is none, or none that says anything about trust.
    async fn ask(self) -> Option<Handshake> {
        match self.connect().await {
            Ok(stream) => {
                let leaf = stream.get_ref().1.peer_certificates()?.first()?;
                Some(Handshake::Trusted { not_after: read(leaf).ok()?.not_after })
            }
            Err(answer) => answer,
        }
    }

    /// The host, as a request names it.
    pub(super) fn host(&self) -> String {
        self.name.to_str().into_owned()
    }

    /// A connection that the API server would trust; else the answer.
    pub(super) async fn connect(&self) -> Result<TlsStream<TcpStream>, Option<Handshake>> {
        let (host, port) = &self.address;
        let connect = TcpStream::connect((host.as_str(), *port));
        let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, connect).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if self.by_url => return Err(Some(Handshake::Unreachable(error.to_string()))),
            Err(_) if self.by_url => {
                let why = format!("no connection within {} s", HANDSHAKE_TIMEOUT.as_secs());
                return Err(Some(Handshake::Unreachable(why)));
            }
            Ok(Err(_)) | Err(_) => return Err(None),
        };
        // The API server trusts the certificates of its own system, which are not ours.
        let config = self.config().ok_or(None)?;
        let connecting = TlsConnector::from(Arc::new(config)).connect(self.name.clone(), stream);
        connecting.await.map_err(|error| refused(error.get_ref()?.downcast_ref::<rustls::Error>()?))
    }

    fn config(&self) -> Option<ClientConfig> {
        if self.ca_bundle.is_empty() {
            return None;
        }
        let mut roots = RootCertStore::empty();
        for certificate in read_bundle(&self.ca_bundle).ok()? {
            roots.add(certificate.der.into()).ok()?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
        Some(config.with_root_certificates(roots).with_no_client_auth())
    }
}

/// Why a certificate is refused, if the API server would refuse it too: Go is more lenient than rustls in other respects, such
/// as a serving certificate that is its own authority.
fn refused(error: &rustls::Error) -> Option<Handshake> {
    use CertificateError as E;
    let rustls::Error::InvalidCertificate(why) = error else { return None };
    let untrusted = |why: &str| Some(Handshake::Untrusted(why.to_owned()));
    match why {
        E::UnknownIssuer | E::BadSignature => untrusted("no certificate in caBundle signed it"),
        E::Expired | E::ExpiredContext { .. } => untrusted("it has ended"),
        E::NotValidYet | E::NotValidYetContext { .. } => untrusted("it is not valid yet"),
        E::NotValidForNameContext { expected, presented } => {
            let names: Vec<String> = presented.iter().map(|name| bare(name)).collect();
            let is_taken = |name: &String| is_same_name(name, &expected.to_str());
            if matches!(expected, ServerName::DnsName(_)) && names.iter().any(is_taken) {
                return None;
            }
            let what = format!("is for {}, and the API server asks for {}", listed(&names), expected.to_str());
            Some(Handshake::Misnamed(what))
        }
        E::NotValidForName => Some(Handshake::Misnamed("is for another name".to_owned())),
        _ => None,
    }
}

/// A name without what rustls-webpki writes around it, as in `DnsName("example.com")`.
fn bare(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::{CertificateDer, UnixTime};

    use super::*;
    use crate::certs::Authority;

    #[test]
    fn a_certificate_for_other_names_is_told_with_its_names_and_the_one_asked_for() {
        let (day, now) = (Duration::from_secs(24 * 60 * 60), Timestamp::now());
        let authority = Authority::create("authority", day, now).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.anchor().der().to_vec())).unwrap();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), default_provider().into()).build().unwrap();
        let refused_for = |names: &[&str], asked: &'static str| {
            let pair = authority.sign(names.iter().map(|&name| name.to_owned()).collect(), day, now).unwrap();
            let (key, asked) = (pair.certified_key(), ServerName::try_from(asked).unwrap());
            refused(&verifier.verify_server_cert(&key.cert[0], &[], &asked, &[], UnixTime::now()).unwrap_err())
        };
        assert_eq!(refused_for(&["*.internal"], "hook.internal"), None, "Go takes it");
        for (names, expected) in [
            (
                &["shop.example.com", "127.0.0.1"][..],
                "is for shop.example.com, 127.0.0.1, and the API server asks for hook.shop.svc",
            ),
            (&[], "is for no name, as it has no subjectAltName, and the API server asks for hook.shop.svc"),
        ] {
            assert_eq!(refused_for(names, "hook.shop.svc"), Some(Handshake::Misnamed(expected.to_owned())));
        }
    }
}
