//! Objects and files that the cluster starts with.

/// The two nodes that kwok plays the kubelet of.
pub(super) fn nodes() -> String {
    ["kwok-0", "kwok-1"].map(node).join("---\n")
}

fn node(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata:
  name: {name}
  annotations:
    kwok.x-k8s.io/node: fake
  labels:
    kubernetes.io/hostname: {name}
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    type: kwok
status:
  # What kwok gives a node that names nothing, and the storage that a kubelet would find.
  allocatable: &resources
    cpu: 1k
    memory: 1Ti
    pods: 1M
    ephemeral-storage: 1Ti
  capacity: *resources
"
    )
}

/// One audit event for each request, without its body.
pub(super) const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";
