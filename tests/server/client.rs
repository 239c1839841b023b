//! A client that shows every byte: one TLS connection, requests written by hand.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longer than anything here takes: a test that hangs fails instead.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Client {
    pub stream: BufReader<TlsStream<TcpStream>>,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// Trusts `ca`; shows a certificate of its own if it has one.
pub fn config(ca: &str, own: Option<(&str, &str)>, alpn: &[&str]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

impl Client {
    pub async fn connect(address: SocketAddr, ca: &str) -> io::Result<Self> {
        Self::connect_with(address, config(ca, None, &["http/1.1"])).await
    }

    pub async fn connect_with(address: SocketAddr, config: ClientConfig) -> io::Result<Self> {
        Self::handshake(TcpStream::connect(address).await?, "localhost", config).await
    }

    /// To a server whose certificate has this name.
    pub async fn connect_named(address: SocketAddr, name: &'static str, ca: &str) -> io::Result<Self> {
        Self::handshake(TcpStream::connect(address).await?, name, config(ca, None, &["http/1.1"])).await
    }

    /// On a connection that is there already.
    pub async fn over(stream: TcpStream, ca: &str) -> io::Result<Self> {
        Self::handshake(stream, "localhost", config(ca, None, &["http/1.1"])).await
    }

    async fn handshake(stream: TcpStream, name: &'static str, config: ClientConfig) -> io::Result<Self> {
        let connecting = TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(name).unwrap(), stream);
        let stream = tokio::time::timeout(TIMEOUT, connecting).await.expect("the handshake ends")?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends bytes as they are.
    pub async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    pub async fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> io::Result<()> {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{headers}\r\n");
        self.send_raw(&[head.as_bytes(), body].concat()).await
    }

    /// Posts a review and reads the reply.
    pub async fn post(&mut self, path: &str, body: &str) -> Reply {
        self.send("POST", path, "Content-Type: application/json\r\n", body.as_bytes()).await.unwrap();
        self.reply().await.unwrap()
    }

    /// As Go's transport: reads while it sends, and sends no more once the reply is there. The connection is of no use afterwards.
    pub async fn post_until_answered(mut self, path: &str, body: &str) -> io::Result<Reply> {
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
        self.send_raw(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes()).await?;
        let (from_server, mut to_server) = tokio::io::split(self.stream);
        let mut from_server = BufReader::new(from_server);
        let mut replied = pin!(tokio::time::timeout(TIMEOUT, read_reply(&mut from_server)));
        let sending = async {
            // A server that reads no more may have said why.
            drop(to_server.write_all(body.as_bytes()).await);
            drop(to_server.flush().await);
        };
        let reply = tokio::select! {
            reply = &mut replied => reply,
            () = sending => replied.await,
        };
        reply.expect("a reply comes")
    }

    pub async fn reply(&mut self) -> io::Result<Reply> {
        tokio::time::timeout(TIMEOUT, read_reply(&mut self.stream)).await.expect("a reply comes")
    }

    /// Reads until the server has closed the connection. True if it said so in TLS, or not at all.
    pub async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(TIMEOUT, self.stream.read_to_end(&mut rest)).await.expect("the server closes");
        rest.is_empty()
    }

    /// The names in the certificate that the server showed.
    pub fn leaf(&self) -> Vec<u8> {
        self.stream.get_ref().get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }

    pub fn alpn(&self) -> Option<String> {
        self.stream.get_ref().get_ref().1.alpn_protocol().map(|name| String::from_utf8(name.to_vec()).unwrap())
    }
}

async fn read_reply<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> io::Result<Reply> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Reply { status, headers, body })
}

/// GET without TLS, on a connection of its own.
pub async fn plain_get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let reply = tokio::time::timeout(TIMEOUT, read_reply(&mut stream)).await.expect("a reply comes").unwrap();
    (reply.status, reply.text())
}
