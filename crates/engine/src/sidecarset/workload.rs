//! The workload that a pod is of, as far as it decides which form of a set a new pod gets.

use ring::digest::{Context, SHA256};

/// In how many parts workloads are divided: a percentage has two digits after the point at most.
pub const BUCKETS: u16 = 10_000;

/// Bytes of a part of the workload that count: no object has a longer name, and a new pod may say anything of its owner.
const MAX_BYTES: usize = 253;

/// The label by which a Deployment distinguishes its `ReplicaSet`s; its value ends their names.
pub const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";

/// What a percentage of a partial injection is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload<'p> {
    /// Namespace of the workload and of its pods.
    pub namespace: &'p str,
    /// Kind of the controller, such as `Deployment`; `Pod` for a pod that is its own workload.
    pub kind: &'p str,
    /// Name of the controller; of a Deployment, without the hash of a `ReplicaSet`.
    pub name: &'p str,
}

/// What a pod says of itself that its workload follows from.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfPod<'p> {
    /// Namespace.
    pub namespace: &'p str,
    /// Name; empty where the API server has yet to make one up.
    pub name: &'p str,
    /// The beginning of a name that the API server makes up.
    pub generate_name: &'p str,
    /// Kind and name of the owner that controls it.
    pub controller: Option<(&'p str, &'p str)>,
    /// The value of [`TEMPLATE_HASH_LABEL`].
    pub template_hash: Option<&'p str>,
}

impl<'p> Workload<'p> {
    /// That of a pod: whatever changes from one of its pods to the next does not count.
    pub fn of(pod: OfPod<'p>) -> Self {
        let (kind, name) = match pod.controller {
            Some(("StatefulSet", _)) => ("Pod", pod.name),
            Some((kind, name)) => of_controller(kind, name, pod.template_hash),
            // The name is made up after the first webhook: with it, the second one would see another workload.
            None if !pod.generate_name.is_empty() => ("Pod", pod.generate_name),
            None => ("Pod", pod.name),
        };
        Self { namespace: pod.namespace, kind, name }
    }

    /// The part that the workload falls into for a set, the same for ever: one that is held back at a percentage is so at each
    /// higher one.
    pub fn bucket(&self, set: &str) -> u16 {
        let Self { namespace, kind, name } = self;
        let mut sum = Context::new(&SHA256);
        sum.update(set.as_bytes());
        for part in [namespace, kind, name] {
            let bytes = part.as_bytes();
            sum.update(b"/");
            sum.update(bytes.get(..MAX_BYTES).unwrap_or(bytes));
        }
        let sum = sum.finish();
        // The remainder of the whole number, digit by digit: it stays below 2,560,000.
        let buckets = u32::from(BUCKETS);
        let rest = sum.as_ref().iter().fold(0, |rest, byte| (rest * 256 + u32::from(*byte)) % buckets);
        u16::try_from(rest).unwrap_or_default()
    }
}

/// Kind and name of the workload of a controller: of a `ReplicaSet` whose name ends with this hash its Deployment, otherwise itself.
pub fn of_controller<'p>(kind: &'p str, name: &'p str, template_hash: Option<&str>) -> (&'p str, &'p str) {
    let without = |hash: &str| name.strip_suffix(hash)?.strip_suffix('-').filter(|name| !name.is_empty());
    match template_hash.filter(|hash| kind == "ReplicaSet" && !hash.is_empty()).and_then(without) {
        Some(deployment) => ("Deployment", deployment),
        None => (kind, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_that_of_the_documented_digest_and_each_set_has_its_own() {
        let web = Workload { namespace: "shop", kind: "Deployment", name: "web" };
        // printf s/shop/Deployment/web | sha256sum, mod 10000.
        assert_eq!(web.bucket("s"), 9666);
        assert_ne!(web.bucket("s"), web.bucket("t"));
    }

    #[test]
    fn the_bucket_follows_from_a_limited_part_of_a_name() {
        let of = |kind: &str, name: &str| Workload { namespace: "n", kind, name }.bucket("s");
        let longest = "k".repeat(MAX_BYTES);
        // printf s/n/k…/w and s/n/k/k… | sha256sum, mod 10000.
        assert_eq!((of(&longest, "w"), of("k", &longest)), (6558, 9771));
        let longer = longest.repeat(1_000);
        assert_eq!((of(&longer, "w"), of("k", &longer)), (6558, 9771));
        assert_ne!(of("k", &longest[1..]), 9771, "what counts of a shorter one is all of it");
        // The last byte that counts is the first of two of one character.
        let [one, other] = ["\u{e8}", "\u{e9}"].map(|last| format!("{}{last}", &longest[1..]));
        assert_eq!(of("k", &one), of("k", &other));
    }

    #[test]
    fn the_workload_is_the_deployment_otherwise_the_controller_otherwise_the_pod() {
        let pod = OfPod { namespace: "n", name: "web-1a-x", generate_name: "web-1a-", ..OfPod::default() };
        let of = |kind: &'static str, name: &'static str, template_hash: Option<&'static str>| {
            let workload = Workload::of(OfPod { controller: Some((kind, name)), template_hash, ..pod });
            (workload.kind, workload.name)
        };
        assert_eq!(of("ReplicaSet", "web-1a", Some("1a")), ("Deployment", "web"));
        assert_eq!(of("ReplicaSet", "web-1a", None), ("ReplicaSet", "web-1a"), "one without a Deployment");
        assert_eq!(of("ReplicaSet", "-1a", Some("1a")), ("ReplicaSet", "-1a"));
        assert_eq!(of("ReplicaSet", "web", Some("")), ("ReplicaSet", "web"));
        assert_eq!(of("Rollout", "web-1a", Some("1a")), ("Rollout", "web-1a"));
        assert_eq!(of("StatefulSet", "web", None), ("Pod", "web-1a-x"), "one by one");
        let bare = |pod| (Workload::of(pod).kind, Workload::of(pod).name);
        assert_eq!(bare(pod), ("Pod", "web-1a-"));
        assert_eq!(bare(OfPod { name: "", ..pod }), ("Pod", "web-1a-"), "before the API server has made up the name");
        assert_eq!(bare(OfPod { generate_name: "", ..pod }), ("Pod", "web-1a-x"));
    }
}
