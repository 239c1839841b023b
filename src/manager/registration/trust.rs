//! What the API server is to trust: the authorities of this process, and for a while those that it trusted before.
//!
//! The leaf that is served is of the authority before until the API server has trusted the next one for long enough.
//! A caBundle that held only the next one would have requests refused meanwhile.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::certs::ca_bundle::merge::{Bundle, Duty, merge};
use crate::certs::ca_bundle::object::{BundleLocation, RETIRING, Trust};
use crate::certs::trust_anchor::{self, TrustAnchor};

/// The authorities that are wanted in every caBundle.
#[derive(Debug, Clone)]
pub struct Trusted {
    /// The authorities of this process; there is one at least.
    pub wanted: Vec<TrustAnchor>,
    /// How long one that is wanted no more stays trusted.
    pub overlap: SignedDuration,
}

impl Trusted {
    /// What the caBundles of an object should hold, from what is stored: `None` where nothing is, or where the API server calls
    /// another process.
    pub fn bundle(&self, stored: Option<&Value>, place: BundleLocation, now: Timestamp) -> Bundle {
        let fresh = || Bundle { anchors: self.wanted.clone(), retiring: <_>::default() };
        let Some(stored) = stored else { return fresh() };
        let found = Trust::of(stored, place);
        if found.entries.is_empty() {
            return fresh();
        }
        merge(&found, &self.wanted, Duty::Keep { overlap: self.overlap }, now).unwrap_or_else(|| Bundle {
            anchors: found.anchors().into_iter().cloned().collect(),
            retiring: found.retiring,
        })
    }
}

/// A caBundle as the API has it.
pub fn encoded(bundle: &Bundle) -> String {
    STANDARD.encode(trust_anchor::bundle(&bundle.anchors))
}

/// The annotation that says since when certificates are kept; null where none is.
pub fn retiring(bundle: &Bundle) -> Value {
    if bundle.retiring.is_empty() { Value::Null } else { json!(bundle.retiring).to_string().into() }
}

/// Whether the object says of its certificates what it should.
pub fn says_retiring(stored: &Value, wanted: &Value) -> bool {
    let found = stored.pointer("/metadata/annotations").and_then(|all| all.get(RETIRING)).unwrap_or(&Value::Null);
    found == wanted
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::certs::Authority;

    const OVERLAP: i64 = 100;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn anchor(name: &str) -> TrustAnchor {
        Authority::create(name, Duration::from_secs(3600), now()).unwrap().anchor().clone()
    }

    /// The configuration with the bundle, as it is stored.
    fn stored(bundle: &Bundle) -> Value {
        json!({
            "metadata": {"annotations": {RETIRING: retiring(bundle)}},
            "webhooks": [{"clientConfig": {"caBundle": encoded(bundle)}}, {"clientConfig": {"caBundle": encoded(bundle)}}],
        })
    }

    #[test]
    fn an_authority_stays_trusted_while_a_leaf_of_it_may_be_served() {
        let (old, new) = (anchor("old"), anchor("new"));
        let trusted = |anchor: &TrustAnchor| Trusted {
            wanted: vec![anchor.clone()],
            overlap: SignedDuration::from_secs(OVERLAP),
        };
        let at = |seconds| now() + SignedDuration::from_secs(seconds);
        let first = trusted(&old).bundle(None, BundleLocation::Webhooks, now());
        assert_eq!(first.anchors, std::slice::from_ref(&old));

        let both = trusted(&new).bundle(Some(&stored(&first)), BundleLocation::Webhooks, now());
        assert_eq!(both.anchors, [new.clone(), old.clone()]);
        let again = trusted(&new).bundle(Some(&stored(&both)), BundleLocation::Webhooks, at(OVERLAP - 1));
        assert_eq!((encoded(&again), retiring(&again)), (encoded(&both), retiring(&both)), "nothing is written");
        let after = trusted(&new).bundle(Some(&stored(&both)), BundleLocation::Webhooks, at(OVERLAP));
        assert_eq!((after.anchors, after.retiring.len()), (vec![new.clone()], 0));

        // The one before is back, as when a Secret was restored.
        let back = trusted(&old).bundle(Some(&stored(&both)), BundleLocation::Webhooks, at(1));
        assert_eq!(back.anchors, [old, new]);
    }

    #[test]
    fn the_note_about_what_retires_goes_with_it() {
        let (old, new) = (anchor("old"), anchor("new"));
        let one = Bundle { anchors: vec![new.clone()], retiring: <_>::default() };
        let both = Bundle { retiring: [(old.fingerprint().to_owned(), now())].into(), anchors: vec![new, old] };
        assert!(says_retiring(&stored(&both), &retiring(&both)));
        assert!(!says_retiring(&stored(&both), &retiring(&one)));
        assert!(says_retiring(&json!({}), &retiring(&one)));
    }
}
