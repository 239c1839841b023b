//! Reviews beside an attack. All of them must be answered. How long they take is printed beside what they take at rest: time is not the
//! same on every machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Client;

const PATH: &str = "/mutate--v1-pod?timeout=10s";

/// Reviews at rest.
const AT_REST: usize = 200;

/// Between two reviews: they measure, and are no load themselves.
const PAUSE: Duration = Duration::from_millis(5);

/// A server of reviews.
#[derive(Clone)]
pub struct Server {
    pub webhooks: SocketAddr,
    /// A name or an address that its certificate has.
    pub name: &'static str,
    /// Whom to trust, as PEM.
    pub ca: Arc<str>,
}

/// How long the answered ones of some reviews took, in order, and how many there were.
struct Reviews {
    took: Vec<Duration>,
    asked: usize,
}

/// What reviews take without an attack.
pub struct AtRest(Reviews);

/// Reviews that are asked for while an attack lasts.
pub struct Beside {
    what: String,
    at_rest: String,
    is_over: Arc<AtomicBool>,
    asking: Option<JoinHandle<Reviews>>,
}

impl AtRest {
    pub fn of(server: &Server) -> Self {
        let asking = ask(server, |asked| asked == AT_REST);
        let reviews = asking.join().expect("reviews are answered");
        assert_eq!(reviews.took.len(), reviews.asked, "reviews at rest");
        Self(reviews)
    }

    /// Asks from now on, until [`Beside::end`].
    pub fn beside(&self, server: &Server, what: &str) -> Beside {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let asking = Some(ask(server, move |asked| asked > 0 && over.load(Ordering::Relaxed)));
        Beside { what: what.to_owned(), at_rest: self.0.times(), is_over, asking }
    }
}

impl Beside {
    /// The attack is over. Returns the number of reviews, all of which were answered.
    pub fn end(mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let reviews = self.asking.take().unwrap().join().expect("reviews are answered");
        let (answered, asked) = (reviews.took.len(), reviews.asked);
        println!(
            "attack {}: at rest {}, during {}, answered {answered} of {asked}",
            self.what,
            self.at_rest,
            reviews.times()
        );
        assert_eq!(answered, asked, "{}", self.what);
        asked
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Reviews {
    fn times(&self) -> String {
        let within = |share: usize| {
            let took = self.took.get(self.took.len() * share / 100).copied().unwrap_or_default();
            took.as_secs_f64() * 1e3
        };
        format!("p50 {:.1} ms p99 {:.1} ms", within(50), within(99))
    }
}

/// Asks for one review after the other, on a thread of its own.
fn ask(server: &Server, is_over: impl Fn(usize) -> bool + Send + 'static) -> JoinHandle<Reviews> {
    let server = server.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let review = review();
            let mut client = Client::connect_named(server.webhooks, server.name, &server.ca).await.unwrap();
            let mut reviews = Reviews { took: Vec::new(), asked: 0 };
            while !is_over(reviews.asked) {
                let begun = Instant::now();
                let reply = client.post(PATH, &review).await;
                reviews.asked += 1;
                if reply.status == 200 && reply.json()["response"]["allowed"] == true {
                    reviews.took.push(begun.elapsed());
                } else {
                    println!("{} {}", reply.status, reply.text());
                }
                tokio::time::sleep(PAUSE).await;
            }
            reviews.took.sort_unstable();
            reviews
        })
    })
}

fn review() -> String {
    let pod = json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}});
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let resource = json!({"group": "", "version": "v1", "resource": "pods"});
    let request = json!({
        "uid": "u", "kind": kind, "resource": resource, "namespace": "shop", "operation": "CREATE", "object": pod,
    });
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}
