//! Accepting connections.

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::connections::{ConnectionLimiter, ConnectionSlot};
use super::shutdown::Shutdown;

/// Pause after an error that the next accept would meet again, such as too many open files.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Accepts up to `connections` at one time and hands each to `serve`. Returns after the listener has closed and the connections
/// have ended or `finish` has passed.
pub async fn accept<F, S>(listener: TcpListener, connections: usize, finish: Duration, shutdown: Shutdown, serve: S)
where
    F: Future<Output = ()> + Send + 'static,
    S: Fn(TcpStream, ConnectionSlot) -> F,
{
    let limiter = ConnectionLimiter::new(connections);
    let tasks = TaskTracker::new();
    let accepting = async {
        let mut number = 0;
        loop {
            match listener.accept().await {
                Ok((stream, _peer)) => {
                    number += 1;
                    let place = limiter.seat(number).await;
                    tasks.spawn(serve(stream, place));
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "Connections cannot be accepted");
                    sleep(BACK_OFF).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = shutdown.stopping() => {}
    }
    drop(listener);
    tasks.close();
    if timeout(finish, tasks.wait()).await.is_err() {
        tracing::warn!(connections = tasks.len(), "Connections did not end in time and are cut");
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
