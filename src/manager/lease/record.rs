//! What a Lease says.

use std::env;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use ring::rand::{SecureRandom as _, SystemRandom};

/// The duration of a lease that was given back.
const GIVEN_BACK: Duration = Duration::from_secs(1);

/// The content of a Lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseRecord {
    /// Who holds it; empty when it was given back.
    pub holder: String,
    /// How long the holder may stay silent.
    pub duration: Duration,
    /// When the holder began, by its clock.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed, by its clock.
    pub renewed: Option<Timestamp>,
    /// How often the holder changed.
    pub transitions: i32,
    /// The version of the stored object; a write with an older one fails.
    pub version: Option<String>,
}

impl LeaseRecord {
    /// Reads a Lease. Missing fields are empty.
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            duration: Duration::from_secs(seconds),
            acquired: spec.acquire_time.map(|MicroTime(time)| time),
            renewed: spec.renew_time.map(|MicroTime(time)| time),
            transitions: spec.lease_transitions.unwrap_or_default(),
            version: lease.metadata.resource_version.clone(),
        }
    }

    /// The record that gives the lease back.
    #[must_use]
    pub fn given_back(self, wall: Timestamp) -> Self {
        // As client-go does: a candidate that does not know what an empty holder means waits no longer.
        Self { holder: String::new(), duration: GIVEN_BACK, renewed: Some(wall), ..self }
    }

    /// Whether it has no holder: it was released, or never held. One that was emptied by hand keeps its
    /// duration, and its holder knows nothing yet.
    pub fn is_given_back(&self) -> bool {
        self.holder.is_empty() && self.duration <= GIVEN_BACK
    }

    /// The Lease of this content.
    pub fn lease(&self, name: &str) -> Lease {
        let seconds = self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0);
        let mut lease = Lease::default();
        lease.metadata.name = Some(name.to_owned());
        lease.metadata.resource_version.clone_from(&self.version);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
            acquire_time: self.acquired.map(MicroTime),
            renew_time: self.renewed.map(MicroTime),
            lease_transitions: Some(self.transitions),
            ..LeaseSpec::default()
        });
        lease
    }
}

/// An identity for this process: the pod's or host's name, and eight characters of chance for two processes on one host.
pub fn identity() -> String {
    let host = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    let mut chance = [0_u8; 4];
    if SystemRandom::new().fill(&mut chance).is_err() {
        // Without randomness, the process id still distinguishes processes of one host.
        chance = std::process::id().to_be_bytes();
    }
    format!("{}_{:08x}", host.as_deref().unwrap_or("outrider"), u32::from_be_bytes(chance))
}
