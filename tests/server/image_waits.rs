//! Reviews that wait for an image backend that hangs: they hold a part of the memory for bodies, and those beyond it are refused at once.

use std::time::Duration;

use outrider::server::Limits;
use tokio::task::JoinSet;

use crate::image_reviewer::{Answer, ImageReviewer};
use crate::images::{Served, review, section};

/// Bytes of a body.
const BODY: usize = 100_000;
/// Bytes of all bodies.
const MEMORY: usize = 80 * BODY;
/// Reviews at one time, whose bodies all have room.
const MANY: usize = 16;

/// A review of so many bytes: what follows JSON is read, and means nothing.
fn padded(image: &str) -> String {
    let mut review = review(image);
    review.push_str(&" ".repeat(BODY - review.len()));
    review
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_that_wait_for_a_backend_hold_at_most_an_eighth_of_the_memory_for_bodies() {
    let reviewer = ImageReviewer::start(|_, _| Answer::Never);
    let served = Served::within(&section(false), Limits { body_memory: MEMORY, ..Limits::default() }).await;
    served.asks(&reviewer.kubeconfig());
    let mut clients = served.clients(MANY + 1).await;
    let mut other = clients.pop().unwrap();
    let mut waiting = JoinSet::new();
    for (at, mut client) in clients.into_iter().enumerate() {
        waiting.spawn(async move {
            let path = "/validate--v1-pod-imagepolicywebhook?timeout=5s";
            client.post(path, &padded(&format!("shop:{at}"))).await.status
        });
    }
    while reviewer.open() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Others have room meanwhile.
    for at in 0..20 {
        let reply = other.post("/mutate--v1-pod?timeout=5s", &padded(&format!("other:{at}"))).await;
        assert_eq!(reply.status, 200, "{at}");
    }
    let statuses = waiting.join_all().await;
    let count = |status: u16| statuses.iter().filter(|found| **found == status).count();
    // An eighth of the memory is for ten bodies, of which each takes a little more than its bytes.
    assert_eq!(count(200) + count(429), MANY, "{statuses:?}");
    assert!((7..=10).contains(&count(200)), "{statuses:?}");
}
