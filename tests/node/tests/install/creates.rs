//! Asking for pods all the time, while something is done to Outrider.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use node::Node;

use crate::workloads;

/// However short it is what is done.
const FEWEST: usize = 10;

/// Asks for pods while `disturb` runs and a while longer: every one must be allowed, and with its companion.
pub fn none_fails_while(node: &Node, disturb: impl FnOnce()) {
    all_are_while(node, &["companion web"], disturb);
}

/// The same, but every one must have these containers, or those.
pub fn all_are_while(node: &Node, expected: &[&str], disturb: impl FnOnce()) {
    let is_right = |answer: &Result<String, String>| answer.as_deref().is_ok_and(|names| expected.contains(&names));
    asked_while("pods", || workloads::try_create(node), is_right, disturb);
}

/// Asks for services all the time, which must be allowed.
pub fn no_service_fails_while(node: &Node, disturb: impl FnOnce()) {
    asked_while("services", || workloads::try_create_service(node, ""), Result::is_ok, disturb);
}

fn asked_while(
    what: &str,
    ask: impl Fn() -> Result<String, String> + Sync,
    is_right: impl Fn(&Result<String, String>) -> bool + Sync,
    disturb: impl FnOnce(),
) {
    let done = AtomicBool::new(false);
    let (asked, wrong) = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut asked, mut wrong) = (0, Vec::new());
            while !done.load(Ordering::Relaxed) || asked < FEWEST {
                let answer = ask();
                asked += 1;
                if !is_right(&answer) {
                    wrong.push(answer);
                }
                thread::sleep(Duration::from_millis(100));
            }
            (asked, wrong)
        });
        // Also when it panics, or the scope would wait for ever.
        let stop = StopWhenDropped(&done);
        disturb();
        drop(stop);
        asking.join().unwrap()
    });
    eprintln!("          {asked} {what} asked for meanwhile, {} failed", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
