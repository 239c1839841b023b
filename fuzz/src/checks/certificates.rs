//! The PEM of a chain and of a key, one after the other, with a line of `=` in between.

use jiff::Timestamp;

use crate::process::pair::{ServingPair, is_same_name};
use crate::process::trust_anchor::TrustAnchor;

/// 2030, while the certificates of the seeds are valid.
const NOW: i64 = 1_893_456_000;

/// Checks that any PEM is read or refused, and that what is read of a bundle is written and read again.
pub fn check(data: &[u8]) {
    let Ok(now) = Timestamp::from_second(NOW) else { return };
    let at = data.windows(3).position(|window| window == b"\n=\n").unwrap_or(data.len());
    let (chain, key) = data.split_at(at);
    let anchors = TrustAnchor::read_all(data);
    for anchor in &anchors {
        let again = TrustAnchor::read_all(anchor.pem().as_bytes());
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].der(), anchor.der());
    }
    let Ok(pair) = ServingPair::from_pem(chain, key.get(3..).unwrap_or_default(), now) else { return };
    for name in pair.names() {
        assert!(is_same_name(name, name), "{name:?}");
        pair.is_for(name);
    }
    pair.is_trusted_by(&anchors, now);
    pair.is_foreign_to(&anchors, now);
}
