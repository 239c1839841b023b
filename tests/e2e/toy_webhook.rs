//! Another mutating webhook: a few lines that change pods as a test wants it. And TLS by hand in both directions.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// A webhook that answers until the test process ends.
pub struct ToyWebhook {
    /// Where.
    pub url: String,
    /// Whom to trust there, PEM.
    pub ca: String,
}

impl ToyWebhook {
    /// `change` gives the JSON patch for a pod; nothing means "not ready, ask again", as Outrider says it.
    pub fn start(change: impl Fn(&Value) -> Option<Vec<Value>> + Send + Sync + 'static) -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let (config, change) = (Arc::new(config), Arc::new(change));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tls = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                let change = Arc::clone(&change);
                // The API server hangs up as it likes.
                thread::spawn(move || drop(answer(tls, &*change)));
            }
        });
        Self { url, ca: made.cert.pem() }
    }
}

fn answer(stream: impl Read + Write, change: &dyn Fn(&Value) -> Option<Vec<Value>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let review: Value = serde_json::from_slice(&read_message(&mut stream)?).unwrap();
    let (status, body) = match change(&review["request"]["object"]) {
        None => ("503 Service Unavailable\r\nRetry-After: 1", String::new()),
        Some(patch) => {
            let patch = STANDARD.encode(json!(patch).to_string());
            let uid = &review["request"]["uid"];
            let response = json!({"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": patch});
            let reply = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            ("200 OK", reply.to_string())
        }
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close");
    write!(stream.get_mut(), "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    stream.get_mut().flush()
}

/// Reads an HTTP message and gives its body.
fn read_message(stream: &mut BufReader<impl Read>) -> std::io::Result<Vec<u8>> {
    read_head_and_body(stream).map(|(_, body)| body)
}

/// The first line, and the body.
fn read_head_and_body(stream: &mut BufReader<impl Read>) -> std::io::Result<(String, Vec<u8>)> {
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if first.is_empty() {
            first = line;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((first, body))
}

/// Trusts `ca` (PEM).
pub fn client_config(ca: &[u8]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca).unwrap()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// A request whose last byte has not been sent.
pub struct Begun {
    stream: StreamOwned<ClientConnection, TcpStream>,
    last: u8,
}

impl Begun {
    /// Begins to post, trusting `ca` (PEM).
    pub fn post(address: SocketAddr, ca: &[u8], path: &str, body: &str) -> Self {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(client_config(ca)), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close");
        let (last, rest) = body.as_bytes().split_last().unwrap();
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(rest).unwrap();
        stream.flush().unwrap();
        Self { stream, last: *last }
    }

    /// Sends the rest; gives the status line and the body of the reply.
    pub fn finish(mut self) -> (String, Vec<u8>) {
        self.stream.write_all(&[self.last]).unwrap();
        read_head_and_body(&mut BufReader::new(self.stream)).unwrap()
    }
}

/// Posts a review and gives the reply, trusting `ca` (PEM).
pub fn post(address: SocketAddr, ca: &[u8], path: &str, review: &Value) -> Value {
    let (_, body) = Begun::post(address, ca, path, &review.to_string()).finish();
    serde_json::from_slice(&body).unwrap()
}
