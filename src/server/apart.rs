//! A front with a thread and a runtime of its own, which no review can hold.

use std::future::Future;
use std::io;
use std::net::TcpListener as StdListener;
use std::thread;

use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::oneshot;

/// Ends the thread when it is dropped.
#[derive(Debug)]
pub struct Apart {
    _end: oneshot::Sender<()>,
}

/// Serves `listener` in a thread apart.
///
/// # Errors
/// When the system gives no thread, or the listener cannot change its runtime.
pub fn serve<F, S>(name: &'static str, listener: TcpListener, serve: S) -> io::Result<Apart>
where
    F: Future<Output = ()>,
    S: FnOnce(TcpListener) -> F + Send + 'static,
{
    let listener: StdListener = listener.into_std()?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (end, ended) = oneshot::channel();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        runtime.block_on(async move {
            match TcpListener::from_std(listener) {
                Ok(listener) => tokio::select! {
                    () = serve(listener) => {}
                    _ = ended => {}
                },
                Err(error) => tracing::error!(%error, name, "Cannot listen"),
            }
        });
    })?;
    Ok(Apart { _end: end })
}
