//! Flags and the configuration file together: a flag that was given wins, then the file, then the flag's default.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::ServeArgs;
use crate::config::{GoDuration, LeaderElection, ProjectConfig, StopBudget};
use crate::controller::options::ControllerOptions;
use crate::manager::lease::Times;
use crate::server::{BindAddress, Limits, ProbePaths};

/// Which flags were given, on the command line or in the environment.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a>(pub &'a ArgMatches);

impl Given<'_> {
    pub(super) fn has(self, flag: &str) -> bool {
        matches!(self.0.value_source(flag), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    }

    /// Puts what the file says in place of a flag that was not given.
    fn fill<T>(self, flag: &str, value: &mut T, file: Option<T>) {
        if let Some(file) = file.filter(|_| !self.has(flag)) {
            *value = file;
        }
    }
}

/// How long to serve on after SIGTERM where nothing else is said.
const DRAIN_DELAY: Duration = Duration::from_secs(10);

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// How long to serve on after SIGTERM.
    pub drain_delay: Duration,
    /// How long to serve on after SIGINT. It comes from a person at a terminal, who waits.
    pub interrupted_drain_delay: Duration,
    /// How long what runs may go on after that.
    pub finish: Duration,
}

impl ServeArgs {
    /// Takes in what the file says.
    pub fn configure(&mut self, file: ProjectConfig, given: Given<'_>) {
        let address = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<BindAddress>().ok());
        let listen = &mut self.listen;
        given.fill("metrics_bind_address", &mut listen.metrics_bind_address, address(&file.metrics.bind_address));
        // controller-runtime serves no probes where the address is empty.
        let probes = match file.health.health_probe_bind_address.as_deref() {
            Some("") => Some(BindAddress::Off),
            _ => address(&file.health.health_probe_bind_address),
        };
        given.fill("health_probe_bind_address", &mut listen.health_probe_bind_address, probes);
        let webhook = webhook_address(&listen.webhook_bind_address, &file);
        given.fill("webhook_bind_address", &mut listen.webhook_bind_address, webhook);
        let cert_dir = text(file.webhook.cert_dir.as_ref()).map(Into::into);
        given.fill("cert_dir", &mut self.certificates.cert_dir, cert_dir);

        let (flags, election) = (&mut self.controllers, &file.leader_election);
        let time = |given: Option<GoDuration>| given.map(|GoDuration(duration)| duration);
        let name = text(election.resource_name.as_ref());
        given.fill("leader_elect", &mut flags.leader_elect, election.leader_elect);
        given.fill("leader_elect_resource_name", &mut flags.leader_elect_resource_name, name);
        let namespace = text(election.resource_namespace.as_ref()).map(Some);
        given.fill("leader_elect_resource_namespace", &mut flags.leader_elect_resource_namespace, namespace);
        let (lease, renew, retry) = (election.lease_duration, election.renew_deadline, election.retry_period);
        given.fill("leader_elect_lease_duration", &mut flags.leader_elect_lease_duration, time(lease));
        given.fill("leader_elect_renew_deadline", &mut flags.leader_elect_renew_deadline, time(renew));
        given.fill("leader_elect_retry_period", &mut flags.leader_elect_retry_period, time(retry));
        self.file = file;
    }

    /// The configuration that counts: what flags say and what only the file can say, as a file would say it.
    pub fn effective(&self) -> ProjectConfig {
        let (file, options, ending, probes) =
            (&self.file, self.controller_options(), self.ending(), self.probe_paths());
        let mut effective = file.clone();
        effective.sync_period = Some(GoDuration(options.sync_period));
        effective.cache_namespace = options.namespace;
        let unlimited = ending.finish == Duration::MAX;
        let budget = StopBudget::AtMost(ending.drain_delay.saturating_add(ending.finish));
        effective.graceful_shut_down = Some(if unlimited { StopBudget::Unlimited } else { budget });
        effective.metrics.bind_address = Some(self.listen.metrics_bind_address.to_string());
        effective.health.health_probe_bind_address = Some(self.listen.health_probe_bind_address.to_string());
        effective.health.readiness_endpoint_name = Some(probes.readiness);
        effective.health.liveness_endpoint_name = Some(probes.liveness);
        (effective.webhook.host, effective.webhook.port) = match self.listen.webhook_bind_address {
            BindAddress::Off => (None, None),
            BindAddress::AllInterfaces(port) => (Some(String::new()), Some(port)),
            BindAddress::One(address) => (Some(address.ip().to_string()), Some(address.port())),
        };
        effective.webhook.cert_dir = Some(self.certificates.cert_dir.display().to_string());
        let (flags, times) = (&self.controllers, self.lease_times());
        effective.leader_election = LeaderElection {
            leader_elect: Some(flags.leader_elect),
            resource_name: Some(flags.leader_elect_resource_name.clone()),
            resource_namespace: Some(self.lease_namespace().to_owned()),
            resource_lock: Some("leases".to_owned()),
            lease_duration: Some(GoDuration(times.duration)),
            renew_deadline: Some(GoDuration(times.renew_deadline)),
            retry_period: Some(GoDuration(times.retry_period)),
        };
        effective
    }

    /// How the process ends: the file's budget covers the drain delay too.
    pub fn ending(&self) -> Ending {
        // Without a cluster there is no controller that needs the change.
        let default = if self.standalone.standalone { Duration::ZERO } else { DRAIN_DELAY };
        let wanted = self.drain_delay.unwrap_or(default);
        let (drain_delay, finish) = match self.file.graceful_shut_down {
            None => (wanted, Limits::default().finish),
            Some(StopBudget::Unlimited) => (wanted, Duration::MAX),
            Some(StopBudget::AtMost(budget)) => (wanted.min(budget), budget.saturating_sub(wanted.min(budget))),
        };
        Ending {
            drain_delay,
            interrupted_drain_delay: self.drain_delay.map_or(Duration::ZERO, |_| drain_delay),
            finish,
        }
    }

    /// Where the probes are.
    pub fn probe_paths(&self) -> ProbePaths {
        let default = ProbePaths::default();
        let path = |name: Option<&String>, default| {
            text(name).map_or(default, |name| format!("/{}", name.trim_start_matches('/')))
        };
        ProbePaths {
            readiness: path(self.file.health.readiness_endpoint_name.as_ref(), default.readiness),
            liveness: path(self.file.health.liveness_endpoint_name.as_ref(), default.liveness),
        }
    }

    /// How controllers run.
    pub fn controller_options(&self) -> ControllerOptions {
        let (file, default) = (&self.file, ControllerOptions::default());
        ControllerOptions {
            namespace: text(file.cache_namespace.as_ref()),
            sync_period: file.sync_period.map_or(default.sync_period, |GoDuration(period)| period),
            cache_sync_timeout: file.controller.cache_sync_timeout.map(Duration::from_nanos),
            workers: file.controller.group_kind_concurrency.clone(),
        }
    }

    /// The namespace of the lease.
    pub fn lease_namespace(&self) -> &str {
        self.controllers.leader_elect_resource_namespace.as_deref().unwrap_or(&self.namespace)
    }

    /// The times of the election, not checked.
    pub fn lease_times(&self) -> Times {
        Times {
            duration: self.controllers.leader_elect_lease_duration,
            renew_deadline: self.controllers.leader_elect_renew_deadline,
            retry_period: self.controllers.leader_elect_retry_period,
        }
    }
}

/// An empty text is Go's zero value: as if it were not there.
fn text(value: Option<&String>) -> Option<String> {
    value.filter(|text| !text.is_empty()).cloned()
}

/// The address that the file says, where it says only a part together with the flag's default.
fn webhook_address(default: &BindAddress, file: &ProjectConfig) -> Option<BindAddress> {
    let (host, port) = (text(file.webhook.host.as_ref()), file.webhook.port);
    if host.is_none() && port.is_none() {
        return None;
    }
    let port = port.unwrap_or_else(|| match default {
        BindAddress::Off => 0,
        BindAddress::AllInterfaces(port) => *port,
        BindAddress::One(address) => address.port(),
    });
    Some(match host.as_deref() {
        None => BindAddress::AllInterfaces(port),
        Some(host) => {
            let ip = host.parse().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
            BindAddress::One(SocketAddr::new(ip, port))
        }
    })
}

#[cfg(test)]
mod tests;
