//! JSON that is seldom read, as what it has in common with other texts, and the rest. The spec of a set says again what its containers
//! are kept as for injection: as it is, it would be a quarter of what a set takes, in each of thousands of sets.
//!
//! `lz4_flex` takes a dictionary too; it would be a further dependency for what is sixty lines here.

use std::sync::Arc;

/// What most specs have: after defaulting, in the order in which it is written.
const COMMON: &str = concat!(
    r#"{"selector":{"matchLabels":{"app":"#,
    r#"{"matchExpressions":[{"key":"app","operator":"In","values":["#,
    r#""namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":""#,
    r#""initContainers":[{"containers":[{"args":["command":["#,
    r#""env":[{"name":"valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"#,
    r#""imagePullPolicy":"IfNotPresent","name":""#,
    r#""podInjectPolicy":"BeforeAppContainer","AfterAppContainer","#,
    r#""resources":{"limits":{"cpu":"memory":"requests":{"cpu":"securityContext":{"#,
    r#""shareVolumePolicy":{"type":"disabled"},"enabled"},"shareVolumeDevicePolicy":{"type":"disabled"},"#,
    r#""terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","transferEnv":["#,
    r#""upgradeStrategy":{"upgradeType":"ColdUpgrade"},"volumeMounts":[{"mountPath":""#,
    r#"}],"volumes":[{"emptyDir":{},"name":""#,
    r#""updateStrategy":{"type":"RollingUpdate","paused":false,"partition":0,"maxUnavailable":1,"recreate":false,"repair":"Never"},"#,
    r#""injectionStrategy":{"paused":false},"imagePullSecrets":[{"name":""#,
    r#""revisionHistoryLimit":10,"patchPodMetadata":[{"annotations":{"patchPolicy":"Retain"}],"#,
    r#""clashPolicy":"Refuse","optOut":"Allowed","Denied","order":0,"jobPods":"NativeSidecar","platform":"linux","podSecurity":"AsWritten"}"#,
);

/// Before a part that is elsewhere. No JSON that `serde_json` writes has a control character in it.
const ELSEWHERE: u8 = 1;
/// A part that is elsewhere takes up to five bytes.
const SHORTEST: usize = 6;
const MOST_PLACES: usize = 1 << 16;
const MOST_TRIED: usize = 8;

/// A packed text, and the texts that parts of it are in.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    beside: Box<[Arc<str>]>,
}

impl Packed {
    /// Packs JSON beside texts that are kept anyway.
    pub(super) fn of(json: &str, beside: impl IntoIterator<Item = Arc<str>>) -> Self {
        let beside: Box<[Arc<str>]> = beside.into_iter().collect();
        let known = known(&beside);
        let places = Places::of(&known);
        let (mut bytes, mut rest) = (Vec::with_capacity(json.len() / 4), json.as_bytes());
        while let Some(first) = rest.first() {
            let (at, len) = places.longest(&known, rest);
            if len < SHORTEST {
                bytes.push(*first);
                rest = rest.get(1..).unwrap_or_default();
            } else {
                bytes.push(ELSEWHERE);
                push_number(&mut bytes, at);
                push_number(&mut bytes, len);
                rest = rest.get(len..).unwrap_or_default();
            }
        }
        Self { bytes: bytes.into(), beside }
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        let known = known(&self.beside);
        let (mut text, mut bytes) = (Vec::with_capacity(self.bytes.len() * 4), self.bytes.iter().copied());
        while let Some(byte) = bytes.next() {
            if byte == ELSEWHERE {
                let (at, len) = (number(&mut bytes), number(&mut bytes));
                text.extend_from_slice(known.get(at..at.saturating_add(len)).unwrap_or_default());
            } else {
                text.push(byte);
            }
        }
        String::from_utf8(text).unwrap_or_default()
    }

    /// Shares these texts, where they are the same as those that it has, and copies the others.
    pub(super) fn detach(&mut self, texts: &[&Arc<str>]) {
        for own in &mut self.beside {
            let same = texts.iter().find(|text| **text == own);
            *own = same.map_or_else(|| Arc::from(&**own), |same| Arc::clone(same));
        }
    }
}

fn known(beside: &[Arc<str>]) -> Vec<u8> {
    let mut known = COMMON.as_bytes().to_vec();
    for text in beside {
        known.extend_from_slice(text.as_bytes());
    }
    known
}

/// Where a text has which four bytes.
struct Places {
    // By what the bytes are mapped to.
    last: Vec<u32>,
    // The place before, by place.
    before: Vec<u32>,
}

impl Places {
    const NONE: u32 = u32::MAX;

    fn of(known: &[u8]) -> Self {
        let slots = known.len().next_power_of_two().min(MOST_PLACES);
        let mut places = Self { last: vec![Self::NONE; slots], before: Vec::with_capacity(known.len()) };
        for (at, bytes) in (0_u32..).zip(known.windows(4)) {
            let slot = places.slot(bytes);
            places.before.push(places.last[slot]);
            places.last[slot] = at;
        }
        places
    }

    fn slot(&self, bytes: &[u8]) -> usize {
        let number = bytes.iter().take(4).fold(0_u32, |all, byte| (all << 8) | u32::from(*byte));
        (number.wrapping_mul(0x9E37_79B1) >> 12) as usize & (self.last.len() - 1)
    }

    /// Of the last few places where the text may begin like this, the one where it goes on for longest, and how far.
    fn longest(&self, known: &[u8], text: &[u8]) -> (usize, usize) {
        let before = |at: &u32| self.before.get(*at as usize).copied();
        let places = std::iter::successors(self.last.get(self.slot(text)).copied(), before);
        let length = |at: u32| {
            let there = known.get(at as usize..).unwrap_or_default();
            (at as usize, there.iter().zip(text).take_while(|(one, other)| one == other).count())
        };
        places.take(MOST_TRIED).map(length).max_by_key(|(_, length)| *length).unwrap_or_default()
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that there are more.
fn push_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number > 0x7F {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn number(bytes: &mut impl Iterator<Item = u8>) -> usize {
    let mut number = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = bytes.next().unwrap_or_default();
        number |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::sidecarset::test_objects::arbitrary_json;

    proptest! {
        #[test]
        fn a_packed_text_is_what_it_was_made_of(
            one in arbitrary_json(), two in arbitrary_json(), beside in vec(arbitrary_json(), 0..3),
        ) {
            let beside: Vec<Arc<str>> = beside.iter().chain([&two]).map(|value| value.to_string().into()).collect();
            let text = json!([one, two, "ü\u{1}\u{7f}"]).to_string();
            let mut packed = Packed::of(&text, beside.clone());
            prop_assert_eq!(packed.text(), text.clone());
            packed.detach(&beside.iter().skip(1).collect::<Vec<_>>());
            prop_assert_eq!(packed.text(), text);
        }
    }

    #[test]
    fn what_is_elsewhere_takes_a_few_bytes() {
        let numbers = (0..300).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        let container: Arc<str> = format!(r#"{{"args":["{numbers}"],"name":"c"}}"#).into();
        let spec = format!(r#"{{"selector":{{"matchLabels":{{"app":"web"}}}},"containers":[{container}]}}"#);
        let packed = Packed::of(&spec, [Arc::clone(&container)]);
        assert!(packed.bytes.len() < 50, "{} bytes", packed.bytes.len());
        assert!(packed.beside.iter().all(|text| Arc::ptr_eq(text, &container)));
    }
}
