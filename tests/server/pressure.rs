//! Many clients at once, most of them bad: the others are served, and memory stays bounded.
//!
//! The figures that are printed are those of docs/availability.md, there with a release build:
//! `cargo test --release --test server -- --ignored --nocapture pressure`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::Client;
use crate::process::Process;

const PATH: &str = "/mutate--v1-pod?timeout=10s";

const SET: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: proxy, image: 'proxy:1'}]
";

/// What one of these tests measures, another must not disturb.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// The binary without a cluster.
struct Server {
    _turn: MutexGuard<'static, ()>,
    process: Process,
    address: SocketAddr,
    ca: Arc<str>,
}

impl Server {
    async fn start() -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        outrider::server::open_files::raise_limit();
        let dir = tempfile::tempdir().unwrap();
        let (ca_file, set) = (dir.path().join("ca.crt"), dir.path().join("set.yaml"));
        std::fs::write(&set, SET).unwrap();
        let more = ["--manifests", set.to_str().unwrap(), "--health-probe-bind-address=0", "--metrics-bind-address=0"];
        let mut process = Process::standalone_on(&ca_file, &more);
        let address = process.line("Listening")["webhooks"].as_str().unwrap().parse().unwrap();
        process.discard_log();
        Self { _turn: turn, process, address, ca: std::fs::read_to_string(&ca_file).unwrap().into() }
    }

    async fn client(&self) -> Client {
        Client::connect(self.address, &self.ca).await.unwrap()
    }
}

/// A review of a pod that the set selects, of about so many bytes.
fn review(bytes: usize) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE", "namespace": "default",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {
                "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"filler": "x".repeat(bytes)}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
    .to_string()
}

/// How the replies to some reviews were distributed.
#[derive(Default)]
struct Replies {
    by_status: BTreeMap<u16, usize>,
    took: Vec<Duration>,
}

impl Replies {
    fn add(&mut self, status: u16, took: Duration) {
        *self.by_status.entry(status).or_default() += 1;
        self.took.push(took);
    }

    fn of(&self, status: u16) -> usize {
        self.by_status.get(&status).copied().unwrap_or_default()
    }

    fn tell(&mut self, what: &str) {
        self.took.sort_unstable();
        let at = |percent: usize| self.took.get(self.took.len() * percent / 101).map_or(0, Duration::as_millis);
        println!("{what}: {:?}, p50 {} p99 {} max {} ms", self.by_status, at(50), at(99), at(100));
    }
}

/// As many reviews at one time as there are clients.
async fn ask_at_once(server: &Server, clients: usize, review: &Arc<str>) -> Replies {
    let mut connected = Vec::new();
    for _ in 0..clients {
        connected.push(server.client().await);
    }
    let ask = |client: Client| {
        let review = Arc::clone(review);
        async move {
            let begun = Instant::now();
            (client.post_until_answered(PATH, &review).await.unwrap(), begun.elapsed())
        }
    };
    let asking: JoinSet<_> = connected.into_iter().map(ask).collect();
    let mut replies = Replies::default();
    for (reply, took) in asking.join_all().await {
        assert_eq!(reply.header("retry-after"), (reply.status == 429).then_some("1"));
        replies.add(reply.status, took);
    }
    replies
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn overload_is_answered_within_bounded_memory_and_is_over_when_it_is_over() {
    let server = Server::start().await;
    // Just below the limit of a body. The memory for bodies holds 36 of these.
    let large: Arc<str> = review(7 * 1024 * 1024 - 1024).into();
    assert_eq!(ask_at_once(&server, 8, &large).await.of(200), 8);

    let mut many = ask_at_once(&server, 20 * 36, &large).await;
    let (_, most) = server.process.memory();
    many.tell("20 times as many large reviews as fit");
    println!("{most} MB at most");
    assert!(many.of(200) > 0 && many.of(429) > 0, "{:?}", many.by_status);
    // Those whose body did not come within the deadline on a machine that has enough to do.
    assert_eq!(many.of(200) + many.of(429) + many.of(504), 20 * 36, "{:?}", many.by_status);
    assert!(most < 640, "{most} MB");

    assert_eq!(ask_at_once(&server, 8, &large).await.of(200), 8, "the memory is free again");
}

/// Megabytes that may stay of hundreds of reviews at one time: what was between their small allocations.
const LEFT: u64 = 24;

/// Bodies of this size are decided where they are read, by hundreds at one time, and not one after the other in a thread of their own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn hundreds_of_reviews_with_thousands_of_annotations_take_little_memory_and_give_it_back() {
    let server = Server::start().await;
    let small: Arc<str> = review(10).into();
    assert_eq!(ask_at_once(&server, 300, &small).await.of(200), 300);
    let rest = server.process.memory().0;
    let filler = format!("\"filler\":\"{}\"", "x".repeat(10));
    let annotations = (0..9_000).map(|at| format!("\"{at:x}\":\"\"")).collect::<Vec<_>>().join(",");
    let large: Arc<str> = small.replace(&filler, &annotations).into();
    for _ in 0..3 {
        assert_eq!(ask_at_once(&server, 300, &large).await.of(200), 300);
    }
    let (_, most) = server.process.memory();
    let mut seconds = 0;
    while server.process.memory().0 > rest + LEFT && seconds < 60 {
        sleep(Duration::from_secs(1)).await;
        seconds += 1;
    }
    let left = server.process.memory().0;
    println!("{rest} MB at rest with as many connections, {most} MB at most, {left} MB after {seconds} s");
    assert!(most <= rest + 64, "{most} MB at most, {rest} MB at rest");
    assert!(left <= rest + LEFT, "{left} MB are left, {rest} MB were there before");
}

/// One review after the other on each connection, for a while.
async fn ask_for(clients: &mut [Client], review: &str, time: Duration) -> Replies {
    let until = Instant::now() + time;
    let asking = clients.iter_mut().map(async |client| {
        let mut replies = Vec::new();
        while Instant::now() < until {
            let begun = Instant::now();
            replies.push((client.post(PATH, review).await.status, begun.elapsed()));
        }
        replies
    });
    let mut replies = Replies::default();
    for (status, took) in futures::future::join_all(asking).await.into_iter().flatten() {
        replies.add(status, took);
    }
    replies
}

/// A process runs a twentieth of the time until this is dropped, as in a container that has used up its share.
struct Throttled {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Throttled {
    fn start(process: &Process) -> Self {
        let (end, pid) = (Arc::<AtomicBool>::default(), process.pid());
        let ended = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for (signal, time) in [(Signal::STOP, 190), (Signal::CONT, 10)] {
                    kill_process(pid, signal).unwrap();
                    std::thread::sleep(Duration::from_millis(time));
                }
            }
        });
        Self { end, thread: Some(thread) }
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        // It may be about to stop the process once more.
        let joined = self.thread.take().map(JoinHandle::join);
        assert!(
            std::thread::panicking() || !matches!(joined, Some(Err(_))),
            "the process was not throttled to the end"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn a_process_that_is_short_of_time_answers_late_but_answers() {
    let server = Server::start().await;
    let review = review(1000);
    let mut clients = Vec::new();
    for _ in 0..400 {
        clients.push(server.client().await);
    }
    let second = Duration::from_secs(1);
    let mut before = ask_for(&mut clients, &review, second).await;
    let throttled = Throttled::start(&server.process);
    let mut meanwhile = ask_for(&mut clients, &review, second * 3).await;
    drop(throttled);
    let mut after = ask_for(&mut clients, &review, second).await;
    for (replies, what) in [
        (&mut before, "400 clients for a second"),
        (&mut meanwhile, "three seconds with a twentieth of the time"),
        (&mut after, "a second afterwards"),
    ] {
        replies.tell(what);
        assert_eq!(replies.by_status.len(), 1, "{:?}", replies.by_status);
        assert!(replies.of(200) >= 400, "{:?}", replies.by_status);
    }
}

/// Sends request after request, on one connection and on new ones, until the end.
async fn well_behaved(server: &Server, ended: impl Fn() -> bool) -> (Replies, Replies) {
    let review: Arc<str> = review(1000).into();
    let (mut kept, mut anew) = (Replies::default(), Replies::default());
    let mut client = server.client().await;
    while !ended() {
        let begun = Instant::now();
        kept.add(client.post(PATH, &review).await.status, begun.elapsed());
        let begun = Instant::now();
        anew.add(server.client().await.post(PATH, &review).await.status, begun.elapsed());
        sleep(Duration::from_millis(10)).await;
    }
    (kept, anew)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes its time: make test"]
async fn idle_slow_and_senseless_clients_stand_in_nobodys_way() {
    let server = Server::start().await;
    let bad = {
        let (address, ca) = (server.address, Arc::clone(&server.ca));
        tokio::spawn(async move { bad_clients(address, ca).await })
    };
    let (mut kept, mut anew) = well_behaved(&server, || bad.is_finished()).await;
    let (now, most) = server.process.memory();
    kept.tell("on a connection that is kept");
    anew.tell("on new connections");
    println!("{} idle connections; {now} MB, {most} MB at most", bad.await.unwrap());
    for replies in [kept, anew] {
        assert_eq!(replies.by_status.len(), 1, "{:?}", replies.by_status);
        assert!(replies.of(200) > 20, "{:?}", replies.by_status);
    }
    assert!(most < 256, "{most} MB");
}

/// Opens connections for nothing, and gives how many.
async fn bad_clients(address: SocketAddr, ca: Arc<str>) -> usize {
    let connect = || TcpStream::connect(address);
    let mut bad = JoinSet::new();
    for turn in 0..300 {
        let mut garbage = connect().await.unwrap();
        bad.spawn(async move { drop(garbage.write_all(b"GET / HTTP/1.1\r\nHost: this is no TLS\r\n\r\n").await) });
        // The first bytes of a ClientHello, then one a second.
        let hello = connect().await.unwrap();
        bad.spawn(dawdle(hello, [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3]));
        if turn % 3 == 0
            && let Ok(mut client) = Client::connect(address, &ca).await
        {
            bad.spawn(async move {
                let head =
                    format!("POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 999");
                drop(client.send_raw(format!("{head}\r\n\r\n{{").as_bytes()).await);
                dawdle(client.stream, *b"          ").await;
            });
        }
    }
    let mut idle = Vec::new();
    for _ in 0..10_000 {
        idle.push(connect().await.unwrap());
    }
    sleep(Duration::from_secs(2)).await;
    idle.len()
}

async fn dawdle(mut stream: impl tokio::io::AsyncWrite + Unpin, bytes: [u8; 10]) {
    for byte in bytes {
        if stream.write_all(&[byte]).await.and(stream.flush().await).is_err() {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
}
