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
    let done = AtomicBool::new(false);
    let (asked, wrong) = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut asked, mut wrong) = (0, Vec::new());
            while !done.load(Ordering::Relaxed) || asked < FEWEST {
                let answer = workloads::try_create(node);
                asked += 1;
                if !answer.as_deref().is_ok_and(|containers| expected.contains(&containers)) {
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
    eprintln!("          {asked} pods asked for meanwhile, {} failed", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
