//! One stream of creates, and everything that happens to certificates and replicas meanwhile.

use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::in_own_network;

use crate::mounted_secret::{Issuer, Mount, Secret, is_trusted};
use crate::pods::{Pods, Tally, report};
use crate::process::eventually;
use crate::stage::{Replica, Stage};

const CERTIFICATE_END: &str = "outrider_certificate_not_after_timestamp_seconds";

/// The lives of docs/certificates.md, compressed.
const FILES: [&str; 4] =
    ["--certificates=files", "--write-ca-bundle", "--ca-bundle-settle=1s", "--ca-bundle-overlap=20s"];
const SELF: [&str; 5] = [
    "--certificates=self",
    "--self-signed-ca-duration=30s",
    "--self-signed-leaf-duration=15s",
    "--ca-bundle-settle=1s",
    "--ca-bundle-overlap=20s",
];

/// How long a phase lasts at least, and how many creates it has.
#[derive(Clone, Copy)]
struct Length {
    at_least: Duration,
    creates: usize,
    /// Whether users have stored hostile objects before, which each leader reads and each replica converts.
    is_attacked: bool,
}

/// `make soak` sets the variable; with the value `short`, phases are as short as without it.
fn length() -> Length {
    let soak = std::env::var("OUTRIDER_SOAK").ok();
    if soak.as_deref().is_some_and(|value| value != "short") {
        return Length { at_least: Duration::from_secs(60), creates: 3000, is_attacked: true };
    }
    Length { at_least: Duration::from_secs(4), creates: 150, is_attacked: soak.is_some() }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn no_create_fails_while_certificates_and_replicas_change() {
    let body = || {
        let tallies = Show::run(length());
        println!("{}", report(&tallies));
        let failed: usize = tallies.iter().map(Tally::failed).sum();
        assert_eq!(failed, 0, "{}", report(&tallies));
    };
    in_own_network("stream::no_create_fails_while_certificates_and_replicas_change", body).unwrap();
}

/// A replica, and the Secret that it has mounted if its certificate comes from there.
struct Running {
    replica: Replica,
    mount: Option<Mount>,
}

struct Show {
    // Dropped before the stage, whose folder holds their logs.
    running: Vec<Running>,
    stage: Stage,
    length: Length,
    issuer: Issuer,
    secret: Secret,
    mounts: u32,
}

impl Show {
    fn run(length: Length) -> Vec<Tally> {
        let issuer = Issuer::new("first");
        let secret = issuer.issue();
        let mut show = Self { stage: Stage::set_up(), length, issuer, secret, mounts: 0, running: Vec::new() };
        if length.is_attacked {
            show.stage.store_hostile_objects();
        }
        show.stage.register();
        for _ in 0..2 {
            show.start_with_files();
        }
        show.stage.apply_set();
        let pods = show.stage.create_pods("nothing happens");
        show.last(&pods, |_| ());
        show.phase(&pods, "files: a leaf is renewed", Self::renew_files);
        show.phase(&pods, "files: another authority", Self::change_issuer);
        show.phase(&pods, "files: a rolling restart", |show| show.roll(Self::start_with_files));
        show.phase(&pods, "another leader", Self::change_leader);
        show.phase(&pods, "from files to self", |show| {
            if show.running.iter().any(|running| running.mount.is_none()) {
                show.roll(Self::start_with_files);
            }
            show.roll(Self::start_with_self);
        });
        show.phase(&pods, "self: a leaf is renewed", Self::renew_self);
        show.phase(&pods, "self: another authority", Self::change_own_authority);
        show.phase(&pods, "self: a rolling restart", |show| show.roll(Self::start_with_self));
        show.phase(&pods, "from self to files", |show| {
            if show.running.iter().any(|running| running.mount.is_some()) {
                show.roll(Self::start_with_self);
            }
            show.roll(Self::start_with_files);
        });
        if length.is_attacked {
            show.stage.all_are_converted();
        }
        pods.end(show.stage.runtime.handle())
    }

    /// Names what is going on, and lets it happen for as long as it takes to show.
    fn phase(&mut self, pods: &Pods, name: &str, happens: impl FnMut(&mut Self)) {
        pods.phase(name);
        self.last(pods, happens);
    }

    fn last(&mut self, pods: &Pods, mut happens: impl FnMut(&mut Self)) {
        let (begun, (before, _)) = (Instant::now(), pods.so_far());
        let is_over = |length: Length| begun.elapsed() >= length.at_least && pods.so_far().0 >= before + length.creates;
        loop {
            happens(self);
            sleep(Duration::from_secs(1));
            if begun.elapsed() >= self.length.at_least / 2 {
                break;
            }
        }
        while !is_over(self.length) {
            sleep(Duration::from_millis(100));
        }
    }

    fn start_with_files(&mut self) {
        self.mounts += 1;
        let mount = Mount::new(self.stage.cluster.dir().join(format!("mount-{}", self.mounts)), &self.secret);
        let cert_dir = format!("--cert-dir={}", mount.dir().display());
        let replica = self.stage.replica(&[&FILES[..], &[cert_dir.as_str()]].concat());
        self.running.push(Running { replica, mount: Some(mount) });
    }

    fn start_with_self(&mut self) {
        let replica = self.stage.replica(&SELF);
        self.running.push(Running { replica, mount: None });
    }

    /// As a Deployment with `maxSurge: 1` and `maxUnavailable: 0` does.
    fn roll(&mut self, start: impl Fn(&mut Self)) {
        for _ in 0..2 {
            start(self);
            let old = self.running.remove(0);
            self.stage.end(old.replica);
        }
    }

    /// The kubelets bring the new Secret one after the other. A replica may wait for the leader's, so none is waited for before.
    fn renew_files(&mut self) {
        self.secret = self.issuer.issue();
        for mount in self.running.iter_mut().filter_map(|running| running.mount.as_mut()) {
            mount.update(&self.secret);
            sleep(Duration::from_millis(500));
        }
        for Running { replica, .. } in &self.running {
            eventually("the new leaf is served", || {
                replica.process.metric(CERTIFICATE_END).as_ref() == Some(&self.secret.end)
            });
        }
    }

    fn change_issuer(&mut self) {
        self.issuer = Issuer::new("next");
        self.renew_files();
    }

    fn change_leader(&mut self) {
        let leader = |show: &Self| show.running.iter().position(|running| running.replica.process.leads());
        let mut first = None;
        eventually("one leads", || {
            first = leader(self);
            first.is_some()
        });
        let first = &self.running[first.unwrap()].replica.process;
        // The time without a leader may be over before it is seen.
        let losses = || first.log().matches("No longer the leader").count();
        let before = losses();
        self.stage.steal_lease();
        eventually("it leads no longer", || losses() > before);
        eventually("one leads again", || leader(self).is_some());
    }

    fn renew_self(&mut self) {
        for Running { replica, .. } in &self.running {
            let end = || replica.process.metric(CERTIFICATE_END);
            let before = end();
            eventually("a new leaf is served", || end() != before);
        }
    }

    fn change_own_authority(&mut self) {
        let before = self.stage.own_ca();
        for Running { replica, .. } in &self.running {
            // On a busy machine that one may be replaced in its turn before it is seen.
            eventually("a leaf of another authority is served", || {
                let newest = self.stage.own_ca();
                newest != before && is_trusted(replica.process.webhooks, &newest)
            });
        }
    }
}
