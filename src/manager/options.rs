//! What the manager is asked to do.

use std::path::PathBuf;
use std::time::Duration;

use crate::certs::lifetimes::CertificateLifetimes;
use crate::controller::options::ControllerOptions;
use crate::kinds::Kinds;
use crate::manager::lease::Times;
use crate::selection::{Unknown, choose};
use engine::snapshot::Exclusion;

/// What the manager is asked to do.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// Our own namespace: the Secret's, and excluded.
    pub namespace: String,
    /// The port of the probes, which every replica of a deployment has.
    pub health_port: Option<u16>,
    /// Further excluded namespaces.
    pub excluded_namespaces: Vec<String>,
    /// Kinds that are on.
    pub kinds: Kinds,
    /// Controllers to run.
    pub controllers: Controllers,
    /// How they run.
    pub controller_options: ControllerOptions,
    /// How long what runs may go on once the process is to end.
    pub grace_period: Duration,
    /// With several replicas: the election of the one that writes.
    pub election: Option<Election>,
    /// Where the serving certificate comes from.
    pub certificates: Certificates,
    /// How long certificates live, and changes of them take.
    pub lifetimes: CertificateLifetimes,
    /// Name of our own Deployment, if requests are to pass without us while it is scaled to zero.
    pub fail_open: Option<String>,
    /// The URL under which the API server is to call this process, outside the cluster.
    pub webhook_url: Option<String>,
    /// The port where this process serves webhooks, if it does.
    pub webhook_port: Option<u16>,
    /// The name that the API server asks the certificate for, where it is known.
    pub asked_name: Option<String>,
    /// Whether the API server is to ask only about pods that a set can match.
    pub narrow_webhooks: bool,
    /// Whether an on-demand entry may be for all resources.
    pub on_demand_all_resources: bool,
    /// Whether objects of `AdmissionPlugin` are read.
    pub plugins: bool,
}

impl ManagerOptions {
    /// Where pods are left alone.
    pub fn exclusion(&self) -> Exclusion {
        Exclusion::new(&self.namespace, self.excluded_namespaces.iter().cloned())
    }

    /// How long what serves lives, and an authority that was replaced stays trusted.
    pub fn supply_lifetimes(&self) -> CertificateLifetimes {
        if self.certificates == Certificates::Own { self.lifetimes.with_leaves() } else { self.lifetimes }
    }
}

/// Which lease makes a replica the leader.
#[derive(Debug, Clone)]
pub struct Election {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub lease: String,
    /// How long leadership lasts, and how often it is renewed.
    pub times: Times,
}

/// Where the serving certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificates {
    /// None is needed: webhooks are off, and metrics are plain.
    Off,
    /// From a directory.
    Files {
        /// The directory.
        dir: PathBuf,
        /// Whether its `ca.crt` is to be kept in the caBundles.
        write_ca_bundle: bool,
    },
    /// From our own authority.
    Own,
}

/// Which controllers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controllers(Vec<&'static str>);

impl Controllers {
    /// Reads the words of `--controllers`: `*`, `name`, `-name`, in any order. There are those of the kinds
    /// that are on.
    ///
    /// # Errors
    /// A word that names no controller.
    pub fn parse(words: &[impl AsRef<str>], kinds: &Kinds) -> Result<Self, Unknown> {
        let with_controller = kinds.iter().filter(|kind| kind.controller.is_some());
        let known: Vec<&str> = with_controller.map(|kind| kind.name).collect();
        choose("controller", words, &known).map(Self)
    }

    /// Whether the controller runs.
    pub fn run(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_of_a_kind_is_known_only_while_the_kind_is_on() {
        let on = "welcome".parse().unwrap();
        for (words, sidecarset, welcome) in [
            (vec!["*"], true, true),
            (vec!["*", "-welcome"], true, false),
            (vec!["welcome"], false, true),
            (vec![""], false, false),
        ] {
            let controllers = Controllers::parse(&words, &on).unwrap();
            assert_eq!((controllers.run("sidecarset"), controllers.run("welcome")), (sidecarset, welcome), "{words:?}");
        }
        assert!(!Controllers::parse(&["*"], &Kinds::default()).unwrap().run("welcome"));
        let error = Controllers::parse(&["welcome"], &Kinds::default()).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "there is no controller \"welcome\"; there are sidecarset, admissionplugin, clusterlimitrange, podsecurityprofile, * "
            ),
            "{error}"
        );
    }
}
