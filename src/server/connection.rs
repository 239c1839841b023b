//! One connection: handshake, requests, end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::connections::ConnectionSlot;
use super::handshake;
use super::limits::Limits;
use super::shutdown::Shutdown;
use super::tls::Acceptor;
use super::webhooks::Webhooks;
use crate::metrics::{HandshakeFailure, HandshakeFailures};

/// HTTP/2 requests of one connection at one time, as Go's server has it.
const HTTP2_STREAMS: u32 = 250;

/// Bytes that an HTTP/2 client may send before they are read, on one connection altogether. Hyper's own 1 MiB would be 4 GB for all
/// connections.
const HTTP2_WINDOW: u32 = 128 * 1024;

/// How long a connection that has asked nothing yet outlives the listener.
const LATE: Duration = Duration::from_secs(1);

/// Bytes that a connection reads ahead, and so the longest head of a request. Most reviews fit; hyper's own 400 KiB would be 1.6 GB
/// for all connections.
const READ_BUFFER: usize = 64 * 1024;

/// What all connections of a listener share.
pub struct Front<W> {
    /// What answers.
    pub webhooks: Webhooks<W>,
    /// How connections are secured.
    pub acceptor: Acceptor,
    /// Counts handshakes that fail.
    pub handshake_failures: HandshakeFailures,
    /// Bounds.
    pub limits: Limits,
    /// The end of the process.
    pub shutdown: Shutdown,
}

/// A connection as its requests see it.
struct ServedConnection<W> {
    front: Arc<Front<W>>,
    end_of_age: Instant,
    place: ConnectionSlot,
}

impl<W: Send + Sync + 'static> Front<W> {
    /// Serves one connection to its end.
    pub async fn serve(self: Arc<Self>, stream: TcpStream, place: ConnectionSlot) {
        // Replies are one write each; waiting for more only delays them.
        let _ = stream.set_nodelay(true);
        let tls = tokio::select! {
            made = timeout(self.limits.handshake, self.acceptor.accept(stream)) => match made {
                Ok(Ok(tls)) => tls,
                // Debug: any client that reaches the port can fail as often as it likes.
                Ok(Err(error)) => {
                    self.handshake_failures.count(handshake::cause(&error));
                    return tracing::debug!(%error, "TLS handshake failed");
                }
                Err(_) => {
                    self.handshake_failures.count(HandshakeFailure::timeout);
                    return tracing::debug!("TLS handshake took too long");
                }
            },
            () = self.too_late() => return,
            () = place.activity.given_up() => return,
        };
        let is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
        let connection = Arc::new(ServedConnection {
            end_of_age: Instant::now() + age(&self.limits, place.activity.number),
            front: self,
            place,
        });
        let requests = Arc::clone(&connection);
        let service = service_fn(move |request| {
            let connection = Arc::clone(&requests);
            async move { Ok::<_, Infallible>(connection.answer(request).await) }
        });
        if is_http2 {
            let serving = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(HTTP2_STREAMS)
                .initial_stream_window_size(HTTP2_WINDOW)
                .initial_connection_window_size(HTTP2_WINDOW)
                .serve_connection(TokioIo::new(tls), service);
            connection.drive(serving, is_http2).await;
        } else {
            // hyper's header timeout also ends idle connections (hyperium/hyper#3828): `drive` has its own for the first request.
            let serving = http1::Builder::new()
                .header_read_timeout(None)
                .max_buf_size(READ_BUFFER)
                .serve_connection(TokioIo::new(tls), service);
            connection.drive(serving, is_http2).await;
        }
    }

    /// Waits until clients that connected before the listener closed have had time to send a request. No client repeats on another
    /// connection what was lost on a new one.
    async fn too_late(&self) {
        self.shutdown.stopping().await;
        sleep(LATE.min(self.limits.finish)).await;
    }
}

/// Spreads ages evenly over the spread, in an order without neighbours: the golden ratio's multiples, modulo one.
fn age(limits: &Limits, number: u64) -> Duration {
    const GOLDEN: u64 = 0x9E37_79B9;
    let fraction = u32::try_from(number.wrapping_mul(GOLDEN) & u64::from(u32::MAX)).unwrap_or_default();
    limits.connection_age + limits.connection_age_spread.mul_f64(f64::from(fraction) / f64::from(u32::MAX))
}

impl<W: Send + Sync + 'static> ServedConnection<W> {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let _asking = self.place.activity.ask();
        let version = request.version();
        let mut response = self.front.webhooks.answer(request, Some(&self.place.activity)).await;
        // HTTP/2 has no such header; `drive` says it with GOAWAY.
        if version < Version::HTTP_2 && self.is_last() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn is_last(&self) -> bool {
        self.front.shutdown.is_draining() || Instant::now() >= self.end_of_age
    }

    /// Polls the connection until it ends, or until it is to end and has had time for what runs.
    async fn drive<C: GracefulConnection>(&self, serving: C, is_http2: bool) {
        let (limits, shutdown, activity) = (&self.front.limits, &self.front.shutdown, &self.place.activity);
        let mut serving = pin!(serving);
        tokio::select! {
            biased;
            _ = serving.as_mut() => return,
            () = activity.first_request() => {}
            () = self.front.too_late() => {}
            () = activity.given_up() => return,
            () = sleep(limits.first_request) => return tracing::debug!("No request came in time"),
        }
        tokio::select! {
            biased;
            _ = serving.as_mut() => return,
            () = shutdown.stopping() => {}
            () = shutdown.draining(), if is_http2 => {}
            () = self.outlived(is_http2) => {}
            () = activity.given_up() => return tracing::debug!("Closed for another connection"),
        }
        serving.as_mut().graceful_shutdown();
        // An idle connection ends now. HTTP/2 clients learn of the end here, so what they began in the drain delay runs on.
        tokio::select! {
            _ = timeout(limits.finish, serving) => {}
            () = activity.given_up() => tracing::debug!("Closed for another connection"),
        }
    }

    /// Waits until the connection has been idle for too long, or, where no reply can announce the end, until it is too old.
    async fn outlived(&self, is_http2: bool) {
        let (mut before, _) = self.place.activity.requests();
        loop {
            sleep(self.front.limits.idle).await;
            let (begun, ended) = self.place.activity.requests();
            let is_idle = begun == before && begun == ended;
            if is_idle || (is_http2 && Instant::now() >= self.end_of_age) {
                return;
            }
            before = begun;
        }
    }
}
