//! What a reply takes of memory and of work. Measured in the fuzz targets alone: in the replay of `tests/fuzz`, other tests run beside.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Duration;

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

use crate::checks::cluster::{ALL, MUTATE_POD, PLUGINS, Cluster};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Bytes of the heap that a reply takes, and those for each byte of its body: an empty map of three bytes becomes a part of a pod.
/// Lists end at the limits of `docs/security.md`, so that a body of 7 MiB takes 64 MB.
const HEAP_OF_ANY: usize = 256 << 10;
const HEAP_OF_EACH_BYTE: usize = 128;

/// As in `make bench-hostile`: at most this many times the work of a harmless body of the same size. What the sets and plugins of a
/// world cost is in the harmless body's time only where they select its pod.
const TIMES_HARMLESS: u32 = 10;
const WORK_OF_ANY: Duration = Duration::from_millis(3);

/// How often a body is decided before it counts as expensive: a page fault or a cold cache is none of its doing.
const TRIES: usize = 5;

/// Checks memory and work of the replies of all endpoints to a body.
///
/// # Panics
/// If a reply takes more than the bounds.
pub fn hold(body: &[u8]) {
    for cluster in [&ALL[0], &PLUGINS] {
        for path in cluster.paths() {
            let most = HEAP_OF_ANY + HEAP_OF_EACH_BYTE * body.len();
            let heap = heap_of(cluster, path, body);
            assert!(heap <= most, "{path}: {heap} bytes of the heap for a body of {}, not {most}", body.len());
            let most = WORK_OF_ANY + TIMES_HARMLESS * work_of_harmless(body.len());
            let work = (0..TRIES).map(|_| work_of(cluster, path, body)).find(|work| *work <= most);
            assert!(work.is_some(), "{path}: more than {most:?} for a body of {}", body.len());
        }
    }
}

fn heap_of(cluster: &Cluster, path: &str, body: &[u8]) -> usize {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    drop(cluster.answer(path, body));
    HEAP.peak_usage().saturating_sub(before)
}

/// The processor's time, which other processes do not add to.
fn work_of(cluster: &Cluster, path: &str, body: &[u8]) -> Duration {
    let now = || clock_gettime(ClockId::ThreadCPUTime);
    let begin = now();
    drop(cluster.answer(path, body));
    Duration::try_from(now() - begin).unwrap_or_default()
}

/// The least work of a usual pod's review of that size, by sizes of powers of two.
fn work_of_harmless(bytes: usize) -> Duration {
    const SIZES: usize = 24;
    static WORK: LazyLock<[Duration; SIZES]> = LazyLock::new(|| {
        std::array::from_fn(|power| {
            let body = harmless(1 << power.min(20));
            (0..4 * TRIES).map(|_| work_of(&ALL[0], MUTATE_POD, &body)).min().unwrap_or_default()
        })
    });
    WORK[(bytes.max(1).ilog2() as usize).min(SIZES - 1)]
}

/// The creation of a pod whose container has as many variables as make up that many bytes.
fn harmless(bytes: usize) -> Vec<u8> {
    let mut env = String::from(r#"{"name":"FIRST","value":"1"}"#);
    let mut number = 0;
    while env.len() < bytes {
        // A String takes everything.
        let _ = write!(env, r#",{{"name":"VARIABLE_{number}","value":"the value of variable {number}"}}"#);
        number += 1;
    }
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"1","kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},"name":"p","namespace":"shop","operation":"CREATE","object":{{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"app","image":"app:1","env":[{env}]}}]}}}}}}}}"#
    )
    .into_bytes()
}
