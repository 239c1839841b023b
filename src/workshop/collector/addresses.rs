//! The pods of a Collector: how many, and where they are. Pure.

use kube::ResourceExt as _;

use super::api::{CollectorSpec, PodAddress};
use super::watched::{PartialPod, PartialPodStatus};

/// An object must fit into one request to etcd, 1.5 MiB (`--max-request-bytes`), and there is more in it than this list.
const MOST_BYTES: usize = 1_000_000;

/// What is reported of pods.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PodAddresses {
    /// Pods that have not finished.
    pub matched: usize,
    /// Of these, those that are ready.
    pub ready: usize,
    /// Those that have an address, in the order given, as far as they may be listed.
    pub listed: Vec<PodAddress>,
    /// Those that have an address and are not listed.
    pub left_out: usize,
}

impl PodAddresses {
    /// Of these pods. One that has finished has given its address back: another may have it by now.
    pub fn of<'a>(pods: impl Iterator<Item = &'a PartialPod>, spec: &CollectorSpec) -> Self {
        let mut found = Self::default();
        let mut bytes = 0;
        for pod in pods {
            let status = pod.status.clone().unwrap_or_default();
            if status.finished {
                continue;
            }
            found.matched += 1;
            found.ready += usize::from(status.ready);
            let Some(address) = address(pod, status, spec.include_ipv6()) else { continue };
            bytes += size(&address);
            if found.listed.len() < spec.max_ips() && bytes <= MOST_BYTES {
                found.listed.push(address);
            } else {
                found.left_out += 1;
            }
        }
        found
    }
}

fn address(pod: &PartialPod, status: PartialPodStatus, include_ipv6: bool) -> Option<PodAddress> {
    let mut ips: Vec<String> = status.pod_ips.into_iter().flatten().map(|pod_ip| pod_ip.ip).collect();
    if ips.is_empty() {
        ips.extend(status.pod_ip);
    }
    ips.retain(|ip| !ip.is_empty() && (include_ipv6 || !ip.contains(':')));
    Some(PodAddress {
        pod: pod.name_any(),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        pod_ip: ips.first()?.clone(),
        pod_ips: ips,
        ready: status.ready,
    })
}

/// Bytes in JSON, no fewer than there are.
fn size(address: &PodAddress) -> usize {
    const NAMES_AND_MARKS: usize = r#"{"node":"","pod":"","podIP":"","podIPs":[],"ready":false},"#.len();
    let text = |text: &String| text.len() + r#""","#.len();
    let node = address.node.as_ref().map_or(0, text);
    let ips: usize = address.pod_ips.iter().map(text).sum();
    NAMES_AND_MARKS + text(&address.pod) + node + text(&address.pod_ip) + ips
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, status: &Value) -> PartialPod {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"nodeName": "n1"}, "status": status}))
            .unwrap()
    }

    fn spec(spec: Value) -> CollectorSpec {
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn a_pod_is_listed_once_it_has_an_address_and_until_it_has_finished() {
        let ready = json!([{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}]);
        let pods = [
            pod(
                "a",
                &json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "conditions": ready}),
            ),
            pod("b", &json!({"podIP": "10.0.0.2", "conditions": [{"type": "Ready", "status": "False"}]})),
            pod("c", &json!({"phase": "Pending"})),
            pod("d", &json!({"phase": "Succeeded", "podIP": "10.0.0.3", "conditions": ready})),
            pod("e", &json!({"podIP": "fd00::5", "podIPs": [{"ip": "fd00::5"}]})),
            pod("f", &Value::Null),
        ];
        let all = PodAddresses::of(pods.iter(), &spec(json!({})));
        assert_eq!((all.matched, all.ready, all.left_out), (5, 1, 0));
        assert_eq!(
            json!(all.listed),
            json!([
                {"pod": "a", "node": "n1", "podIP": "10.0.0.1", "podIPs": ["10.0.0.1", "fd00::1"], "ready": true},
                {"pod": "b", "node": "n1", "podIP": "10.0.0.2", "podIPs": ["10.0.0.2"], "ready": false},
                {"pod": "e", "node": "n1", "podIP": "fd00::5", "podIPs": ["fd00::5"], "ready": false},
            ])
        );
        let old = PodAddresses::of(pods.iter(), &spec(json!({"includeIPv6": false})));
        let ips: Vec<&Vec<String>> = old.listed.iter().map(|address| &address.pod_ips).collect();
        assert_eq!(ips, [&["10.0.0.1"], &["10.0.0.2"]]);
        let first = PodAddresses::of(pods.iter(), &spec(json!({"maxIPs": 1})));
        assert_eq!((first.matched, first.listed.len(), first.left_out), (5, 1, 2));
    }

    #[test]
    fn the_list_fits_into_an_object_however_long_its_names_are() {
        let long = "p".repeat(253);
        let pods: Vec<PartialPod> = (0..10_000).map(|_| pod(&long, &json!({"podIP": "10.0.0.1"}))).collect();
        let found = PodAddresses::of(pods.iter(), &spec(json!({"maxIPs": 10_000})));
        assert_eq!(found.listed.len() + found.left_out, 10_000);
        let bytes = json!(found.listed).to_string().len();
        assert!((MOST_BYTES * 9 / 10..=MOST_BYTES).contains(&bytes), "{bytes}");
    }
}
