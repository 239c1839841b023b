//! One request over one connection: enough of HTTP/1.1 to ask a server on the loopback interface.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::BenchError;

/// Where the API server would send a pod review.
pub const POD_PATH: &str = "/mutate--v1-pod?timeout=10s";

const TIME_LIMIT: Duration = Duration::from_secs(10);
/// A reply to a 64 KB review is far smaller; a server that sends more is broken.
const REPLY_LIMIT: usize = 16 << 20;

/// A whole response.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// Bytes of status line, headers and body together.
    pub wire_bytes: usize,
}

/// Posts a review over TLS.
///
/// # Errors
/// No connection, or a response that this client cannot read.
pub async fn post_review(tls: &Arc<ClientConfig>, address: SocketAddr, body: &str) -> Result<Response, BenchError> {
    let head = format!(
        "POST {POD_PATH} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let exchange_tls = async {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let name = ServerName::IpAddress(address.ip().into());
        let mut stream =
            TlsConnector::from(Arc::clone(tls)).connect(name, stream).await.map_err(|error| error.to_string())?;
        exchange(&mut stream, &head, body).await
    };
    within_time_limit(address, exchange_tls).await
}

/// Gets a plain HTTP path, as kubelet gets a probe.
///
/// # Errors
/// No connection, or a response that this client cannot read.
pub async fn get(address: SocketAddr, path: &str) -> Result<Response, BenchError> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let exchange_plain = async {
        let mut stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        exchange(&mut stream, &head, "").await
    };
    within_time_limit(address, exchange_plain).await
}

async fn within_time_limit(
    address: SocketAddr,
    exchange: impl Future<Output = Result<Response, String>>,
) -> Result<Response, BenchError> {
    let outcome = timeout(TIME_LIMIT, exchange)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} s", TIME_LIMIT.as_secs())));
    outcome.map_err(|found| BenchError::Http { address: address.to_string(), found })
}

async fn exchange<S>(stream: &mut S, head: &str, body: &str) -> Result<Response, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(head.as_bytes()).await.map_err(|error| error.to_string())?;
    stream.write_all(body.as_bytes()).await.map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())?;
    let mut received = Vec::new();
    loop {
        if let Some(response) = parse(&received)? {
            return Ok(response);
        }
        if received.len() > REPLY_LIMIT {
            return Err(format!("more than {REPLY_LIMIT} bytes"));
        }
        let read = stream.read_buf(&mut received).await.map_err(|error| error.to_string())?;
        if read == 0 {
            return Err(format!("closed within the response: {:?}", String::from_utf8_lossy(&received)));
        }
    }
}

/// The response, once all of it has arrived. Only `Content-Length` framing: what a reply of known size has.
fn parse(received: &[u8]) -> Result<Option<Response>, String> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(head_end) = received.windows(END.len()).position(|window| window == END) else {
        return Ok(None);
    };
    let (head, rest) = received.split_at(head_end);
    let head = String::from_utf8_lossy(head);
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| format!("no HTTP status in {head:?}"))?;
    let length: usize = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(|| format!("no Content-Length in {head:?}"))?;
    let body = rest.get(END.len()..).unwrap_or_default();
    Ok(body.get(..length).map(|body| Response {
        status,
        body: body.to_vec(),
        wire_bytes: head_end + END.len() + length,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_response_is_complete_when_its_length_has_arrived() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        for cut in 0..whole.len() {
            assert!(parse(whole.get(..cut).unwrap()).unwrap().is_none(), "{cut}");
        }
        let response = parse(whole).unwrap().unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.body, b"ok");
        assert_eq!(response.wire_bytes, whole.len());
    }

    #[test]
    fn a_response_without_status_or_length_is_refused() {
        for text in ["nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
