//! A way to the API server that can be slow, cut, or both by turns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::sleep;

/// What the way is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Open,
    /// Every piece takes so long.
    Slow(Duration),
    /// What is under way breaks off, and nothing new gets through.
    Cut,
}

pub struct Proxy {
    pub address: SocketAddr,
    way: Arc<watch::Sender<Way>>,
}

impl Proxy {
    /// To `target`, open.
    pub fn start(runtime: &Handle, target: SocketAddr) -> Self {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, way) = (listener.local_addr().unwrap(), Arc::new(watch::Sender::new(Way::Open)));
        let ways = Arc::clone(&way);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, target, ways.subscribe()));
            }
        });
        Self { address, way }
    }

    pub fn set(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn connect(client: TcpStream, target: SocketAddr, way: watch::Receiver<Way>) {
    if *way.borrow() == Way::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else { return };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let mut cut = way.clone();
    tokio::select! {
        () = pass(from_client, to_server, &way) => {}
        () = pass(from_server, to_client, &way) => {}
        _ = cut.wait_for(|way| *way == Way::Cut) => {}
    }
}

async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, way: &watch::Receiver<Way>) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        let way = *way.borrow();
        if let Way::Slow(time) = way {
            sleep(time).await;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
