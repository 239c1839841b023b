//! What the namespaces look like before anything runs in them.

use std::process::Command;

/// Of the range for documentation (RFC 5737): it must not be a loopback address, and exists nowhere else.
pub(crate) const ADDRESS: &str = "192.0.2.1";

/// `/run` and changes below `/var` live in memory, so that they end with the namespaces. The interface of the node leads
/// nowhere; kubelet and kube-proxy want a default route.
const COMMANDS: [&str; 15] = [
    "mount --make-rprivate /",
    "mount -t proc proc /proc",
    "mount -t tmpfs -o mode=755 tmpfs /run",
    "mkdir -p /run/var/upper /run/var/work",
    "mount -t overlay -o lowerdir=/var,upperdir=/run/var/upper,workdir=/run/var/work overlay /var",
    "mkdir -p /run/lock /var/lib/kubelet /var/log/pods",
    "ip link set lo up",
    "ip link add node0 type veth peer name node1",
    "ip address add 192.0.2.1/24 dev node0",
    "ip link set node0 up",
    "ip link set node1 up",
    "ip route add default via 192.0.2.254",
    "sysctl -q -w net.ipv4.ip_forward=1",
    "sysctl -q -w net.ipv4.conf.all.route_localnet=1",
    "sysctl -q -w net.ipv6.conf.all.disable_ipv6=1",
];

/// Mounts and addresses.
///
/// # Panics
/// If a command fails.
pub(crate) fn prepare() {
    for command in COMMANDS {
        let mut words = command.split(' ');
        let output = Command::new(words.next().unwrap_or_default()).args(words).output();
        let output = output.unwrap_or_else(|error| panic!("cannot run `{command}`: {error}"));
        assert!(output.status.success(), "`{command}` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
}
