//! The Secret with the authorities: what it says, and what it should. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::certs::authority::Authority;
use crate::names::CA_SECRET;

const NEWEST: [&str; 2] = ["tls.crt", "tls.key"];
const PREVIOUS: [&str; 2] = ["previous.crt", "previous.key"];

/// Both authorities that the Secret can hold.
#[derive(Debug)]
pub struct Authorities {
    /// The one that signs, once it is trusted: `tls.crt` and `tls.key`.
    pub newest: Authority,
    /// The one before, while not everybody trusts the newest.
    pub previous: Option<Authority>,
}

/// Reads the Secret.
///
/// # Errors
/// In words, why its newest authority cannot sign. A previous one that cannot is as good as none.
pub fn read(secret: &Secret, now: Timestamp) -> Result<Authorities, String> {
    let newest = authority(secret, NEWEST, now)?;
    Ok(Authorities { newest, previous: previous(secret, now) })
}

/// The previous authority, if it can sign.
pub fn previous(secret: &Secret, now: Timestamp) -> Option<Authority> {
    authority(secret, PREVIOUS, now).ok()
}

fn authority(secret: &Secret, [certificate, key]: [&str; 2], now: Timestamp) -> Result<Authority, String> {
    let text = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key)).map(|ByteString(bytes)| bytes.clone());
        String::from_utf8(bytes.ok_or_else(|| format!("{key} is missing"))?).map_err(|_| format!("{key} is not PEM"))
    };
    let authority = Authority::from_pem(&text(certificate)?, &text(key)?)
        .map_err(|error| format!("{certificate}, {key}: {error}"))?;
    let (begin, end) = (authority.anchor().not_before(), authority.anchor().not_after());
    if now >= end {
        return Err(format!("the authority ended at {end}"));
    }
    if now < begin {
        return Err(format!("the authority is not valid before {begin}; is the clock right?"));
    }
    Ok(authority)
}

/// The Secret with these authorities in place of what it holds; the version of the one that was read keeps two replicas from
/// replacing each other's. What others put there stays.
pub fn written(newest: &Authority, previous: Option<&Authority>, found: Option<&Secret>) -> Secret {
    let mut secret = found.cloned().unwrap_or_else(|| Secret {
        metadata: ObjectMeta { name: Some(CA_SECRET.to_owned()), ..ObjectMeta::default() },
        // It cannot be changed later.
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    });
    secret.metadata.managed_fields = None;
    let data = secret.data.get_or_insert_default();
    put(data, NEWEST, Some(newest));
    put(data, PREVIOUS, previous);
    secret
}

fn put(data: &mut BTreeMap<String, ByteString>, [certificate, key]: [&str; 2], authority: Option<&Authority>) {
    data.remove(certificate);
    data.remove(key);
    if let Some(authority) = authority {
        data.insert(certificate.to_owned(), ByteString(authority.certificate_pem().as_bytes().to_vec()));
        data.insert(key.to_owned(), ByteString(authority.key_pem().into_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::SignedDuration;

    use super::*;

    const LIFE: Duration = Duration::from_secs(3600);

    fn now() -> Timestamp {
        Timestamp::now()
    }

    fn made() -> Authority {
        Authority::create("test", LIFE, now()).unwrap()
    }

    #[test]
    fn authorities_survive_their_secret_and_sign_for_every_name() {
        let (newest, previous) = (made(), made());
        let both = read(&written(&newest, Some(&previous), None), now()).unwrap();
        assert_eq!(both.newest.anchor(), newest.anchor());
        assert_eq!(both.previous.unwrap().anchor(), previous.anchor());
        let names = ["outrider-webhook.ns.svc", "127.0.0.1"];
        let pair = both.newest.sign(names.map(str::to_owned).into(), LIFE, now()).unwrap();
        assert_eq!(pair.names(), names);
        assert!(pair.is_trusted_by(std::slice::from_ref(newest.anchor()), now()));
        assert!(!pair.is_trusted_by(std::slice::from_ref(previous.anchor()), now()));
        assert!(pair.is_for("outrider-webhook.ns.svc") && pair.is_for("127.0.0.1") && !pair.is_for("other.ns.svc"));
    }

    #[test]
    fn what_cannot_sign_is_named() {
        let (authority, other) = (made(), made());
        let good = written(&authority, None, None);
        let with = |key: &str, value: Option<Vec<u8>>| {
            let mut secret = good.clone();
            let data = secret.data.as_mut().unwrap();
            match value {
                Some(value) => data.insert(key.to_owned(), ByteString(value)),
                None => data.remove(key),
            };
            secret
        };
        let leaf = authority.sign_pem(vec!["a".to_owned()], LIFE, now()).unwrap().0;
        let later = SignedDuration::from_hours(2);
        let cases = [
            (with("tls.key", None), now(), "tls.key is missing"),
            (with("tls.crt", Some(vec![0xff])), now(), "tls.crt is not PEM"),
            (
                with("tls.crt", Some(Vec::new())),
                now(),
                "tls.crt, tls.key: no certificate of an authority: expected PEM",
            ),
            (
                with("tls.crt", Some(leaf.into())),
                now(),
                "tls.crt, tls.key: no certificate of an authority: it may not sign",
            ),
            (with("tls.key", Some(b"broken".into())), now(), "tls.crt, tls.key: no usable private key"),
            (
                with("tls.key", Some(other.key_pem().into())),
                now(),
                "tls.crt, tls.key: the private key does not belong to the certificate",
            ),
            (good.clone(), now() + later, "the authority ended at"),
            (good.clone(), now() - later, "the authority is not valid before"),
        ];
        for (secret, now, expected) in cases {
            let reason = read(&secret, now).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        }
    }

    #[test]
    fn a_previous_authority_that_cannot_sign_is_as_good_as_none() {
        let mut secret = written(&made(), Some(&made()), None);
        secret.data.as_mut().unwrap().remove("previous.key");
        assert!(read(&secret, now()).unwrap().previous.is_none());
    }

    #[test]
    fn a_replacement_keeps_the_version_the_type_and_what_others_put_there() {
        let mut old = written(&made(), Some(&made()), None);
        old.metadata.resource_version = Some("7".to_owned());
        old.metadata.labels = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        old.type_ = Some("Opaque".to_owned());
        old.data.as_mut().unwrap().insert("theirs".to_owned(), ByteString(b"x".to_vec()));
        let new = written(&made(), None, Some(&old));
        assert_eq!((new.metadata.resource_version.as_deref(), new.type_.as_deref()), (Some("7"), Some("Opaque")));
        assert_eq!(new.metadata.labels, old.metadata.labels);
        let keys: Vec<&String> = new.data.as_ref().unwrap().keys().collect();
        assert_eq!(keys, ["theirs", "tls.crt", "tls.key"]);
    }
}
