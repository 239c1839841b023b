//! The configuration files of containerd, kubelet, CNI and kube-proxy.

use std::path::Path;

use serde_json::json;

use crate::APP;
use crate::host::ADDRESS;

/// The first /24 of what the control plane knows as the range of pods.
const POD_SUBNET: &str = "10.1.0.0/24";

/// `dir` holds its data, `cni` the network's configuration. Nothing is pulled: the image of sandboxes is there already.
pub(crate) fn containerd(dir: &Path, cni: &Path, socket: &Path) -> String {
    format!(
        "version = 3
root = '{root}'
state = '/run/containerd'
[grpc]
address = '{socket}'
[plugins.'io.containerd.cri.v1.images']
snapshotter = 'native'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{APP}'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['/usr/lib/cni']
conf_dir = '{cni}'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
",
        root = dir.join("containerd").display(),
        socket = socket.display(),
        cni = cni.display(),
    )
}

/// One bridge for all pods.
pub(crate) fn cni() -> String {
    let bridge = json!({
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": true,
        "hairpinMode": true,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni",
            "ranges": [[{"subnet": POD_SUBNET}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    });
    let portmap = json!({"type": "portmap", "capabilities": {"portMappings": true}});
    json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap]}).to_string()
}

/// Limits that a kubelet sets on the node are off: it shares the machine with others.
pub(crate) fn kubelet(ca: &Path, socket: &Path) -> String {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": false},
            "x509": {"clientCAFile": ca},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": format!("unix://{}", socket.display()),
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "registerNode": true,
        // Changed Secrets reach volumes with the next sync; a minute by default.
        "syncFrequency": "5s",
        "fileCheckFrequency": "5s",
    })
    .to_string()
}

/// `minor` is that of the Kubernetes release, as in 36 of v1.36.3.
pub(crate) fn kube_proxy(kubeconfig: &Path, minor: u32) -> Vec<String> {
    let mut args: Vec<String> = ["--proxy-mode=nftables", "--conntrack-max-per-core=0", "--cluster-cidr=10.1.0.0/16"]
        .iter()
        .map(ToString::to_string)
        .collect();
    args.extend([
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--hostname-override={}", crate::node::NAME),
        format!("--bind-address={ADDRESS}"),
    ]);
    // On by default from then on, and unknown to releases in which it cannot be switched off any more.
    if minor < 31 {
        args.push("--feature-gates=NFTablesProxyMode=true".to_owned());
    }
    args
}
