//! One stream of creates, and everything that happens to certificates and replicas meanwhile.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use cluster::in_own_network;

use crate::mounted_secret::{Issuer, Mount, Secret};
use crate::pods::{Pods, Tally, report};
use crate::process::eventually;
use crate::stage::{Replica, Stage};

const CERTIFICATE_END: &str = "outrider_certificate_not_after_timestamp_seconds";

/// How long a phase lasts at least, and how many creates are begun in it.
#[derive(Clone, Copy)]
struct Length {
    at_least: Duration,
    creates: usize,
}

/// `make soak` sets this.
fn length() -> Length {
    if std::env::var_os("OUTRIDER_SOAK").is_some() {
        return Length { at_least: Duration::from_secs(60), creates: 3000 };
    }
    Length { at_least: Duration::from_secs(4), creates: 150 }
}

/// Replicas whose certificates come from a mounted Secret.
struct Mounted {
    replica: Replica,
    mount: Mount,
}

struct Show {
    stage: Stage,
    length: Length,
    mounts: u32,
}

impl Show {
    fn mounted(&mut self, secret: &Secret) -> Mounted {
        self.mounts += 1;
        let dir: PathBuf = self.stage.cluster.dir().join(format!("mount-{}", self.mounts));
        let mount = Mount::new(dir, secret);
        let cert_dir = format!("--cert-dir={}", mount.dir().display());
        let replica = self.stage.replica(&["--certificates=files", &cert_dir]);
        Mounted { replica, mount }
    }

    /// Names what is going on, lets it happen, and gives it time to show.
    fn phase<T>(&mut self, pods: &Pods, name: &str, happens: impl FnOnce(&mut Self) -> T) -> T {
        pods.phase(name);
        let (begun, (before, _)) = (std::time::Instant::now(), pods.so_far());
        let outcome = happens(self);
        let Length { at_least, creates } = self.length;
        sleep(at_least.saturating_sub(begun.elapsed()));
        eventually("enough pods are created", || pods.so_far().0 >= before + creates);
        outcome
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn no_create_fails_while_certificates_and_replicas_change() {
    let body = || {
        let tallies = run();
        println!("{}", report(&tallies));
        let failed: usize = tallies.iter().map(Tally::failed).sum();
        assert_eq!(failed, 0, "{}", report(&tallies));
    };
    in_own_network("stream::no_create_fails_while_certificates_and_replicas_change", body).unwrap();
}

fn run() -> Vec<Tally> {
    let mut show = Show { stage: Stage::set_up(), length: length(), mounts: 0 };
    let issuer = Issuer::new("first");
    let mut secret = issuer.issue();
    let mut replicas = vec![show.mounted(&secret), show.mounted(&secret)];
    show.stage.register();
    show.stage.inject_ca(&issuer.ca());
    show.stage.apply_set();

    let pods = show.stage.create_pods("nothing happens");
    sleep(show.length.at_least);
    show.phase(&pods, "files: a leaf is renewed", |_| {
        secret = issuer.issue();
        for Mounted { replica, mount } in &mut replicas {
            mount.update(&secret);
            eventually("the new leaf is served", || {
                replica.process.metric(CERTIFICATE_END).as_ref() == Some(&secret.end)
            });
        }
    });
    show.phase(&pods, "files: a rolling restart", |show| {
        for _ in 0..replicas.len() {
            replicas.push(show.mounted(&secret));
            show.stage.end(replicas.remove(0).replica);
        }
    });
    show.phase(&pods, "the leader loses its lease", |show| {
        let leader = || replicas.iter().position(|mounted| mounted.replica.process.leads());
        eventually("one leads", || leader().is_some());
        show.stage.steal_lease();
        eventually("nobody leads", || leader().is_none());
        eventually("one leads again", || leader().is_some());
    });
    let tallies = pods.end(show.stage.runtime.handle());
    for mounted in replicas {
        show.stage.end(mounted.replica);
    }
    tallies
}
