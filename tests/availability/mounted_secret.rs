//! What cert-manager and the kubelet do: sign certificates, and put them into the directories that pods have mounted.

use std::cell::Cell;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use outrider::certs::local::service_names;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::toy_webhook::client_config;

const DAY: i64 = 24 * 60 * 60;

/// An issuer with an authority of its own.
pub struct Issuer {
    authority: CertifiedIssuer<'static, KeyPair>,
    issued: Cell<i64>,
}

/// What cert-manager writes into a Secret.
#[derive(Clone)]
pub struct Secret {
    pub ca: String,
    pub certificate: String,
    pub key: String,
    /// When the leaf ends, in seconds since 1970. No two leaves of one issuer end together.
    pub end: String,
}

impl Issuer {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { authority, issued: Cell::new(0) }
    }

    pub fn ca(&self) -> String {
        self.authority.pem()
    }

    /// A new leaf for the webhook's Service.
    pub fn issue(&self) -> Secret {
        self.issued.set(self.issued.get() + 1);
        let end = Timestamp::now().as_second() + DAY * 60 + self.issued.get();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(service_names("outrider-system")).unwrap();
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(end.unsigned_abs());
        let certificate = params.signed_by(&key, &self.authority).unwrap().pem();
        Secret { ca: self.ca(), certificate, key: key.serialize_pem(), end: end.to_string() }
    }
}

/// A Secret as a volume of one pod: the files are links through `..data`, which the kubelet swaps.
pub struct Mount {
    dir: PathBuf,
    versions: u32,
}

impl Mount {
    pub fn new(dir: PathBuf, secret: &Secret) -> Self {
        fs::create_dir_all(&dir).unwrap();
        let mut mount = Self { dir, versions: 0 };
        mount.update(secret);
        for name in ["ca.crt", "tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), mount.dir.join(name)).unwrap();
        }
        mount
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// As `AtomicWriter` of k8s.io/kubernetes/pkg/volume/util does it.
    pub fn update(&mut self, secret: &Secret) {
        let old = self.dir.join(format!("..version_{}", self.versions));
        self.versions += 1;
        let name = format!("..version_{}", self.versions);
        let new = self.dir.join(&name);
        fs::create_dir(&new).unwrap();
        for (file, text) in [("ca.crt", &secret.ca), ("tls.crt", &secret.certificate), ("tls.key", &secret.key)] {
            fs::write(new.join(file), text).unwrap();
        }
        let link = self.dir.join("..data_tmp");
        symlink(name, &link).unwrap();
        fs::rename(link, self.dir.join("..data")).unwrap();
        if self.versions > 1 {
            fs::remove_dir_all(old).unwrap();
        }
    }
}

/// Whether what is served at the address is for the webhook's Service and signed by this authority.
pub fn is_trusted(address: SocketAddr, ca: &str) -> bool {
    let name = ServerName::try_from("outrider-webhook.outrider-system.svc").unwrap();
    let mut connection = ClientConnection::new(Arc::new(client_config(ca.as_bytes())), name).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    while connection.is_handshaking() {
        if connection.complete_io(&mut stream).is_err() {
            return false;
        }
    }
    true
}
