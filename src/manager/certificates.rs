//! Where the serving certificate of a process with a cluster comes from.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::watch;

use crate::certs::ca_bundle::CaBundles;
use crate::certs::ca_bundle::publisher::{Publisher, Writer};
use crate::certs::expiry::Alarm;
use crate::certs::files::{CertificateFiles, ClientNames, FollowFiles, Recipients};
use crate::certs::lifetimes::CertificateLifetimes;
use crate::certs::local;
use crate::certs::own::{AuthorityStore, OwnCertificates, Setup, Storage};
use crate::certs::warnings::Warnings;
use crate::manager::Shared;
use crate::manager::options::{Certificates, ManagerOptions};
use crate::readiness::Gate;

/// Makes what supplies the certificate.
pub struct Supply<'a> {
    pub options: &'a ManagerOptions,
    pub client: &'a Client,
    pub shared: &'a Shared,
    /// True while this replica leads.
    pub leading: watch::Receiver<bool>,
}

impl Supply<'_> {
    /// Works until it is dropped. The gate is open while there is a certificate that the API server trusts; `bundle` receives
    /// the authorities, for the registration.
    pub fn start(&self, gate: Gate, bundle: watch::Sender<Option<String>>) -> BoxFuture<'static, ()> {
        let (metrics, resolver) = (self.shared.metrics.clone(), Arc::clone(&self.shared.resolver));
        let warnings = Warnings::new(self.client.clone());
        let alarm = Alarm::new(Some(warnings.clone()));
        let lifetimes = self.options.supply_lifetimes();
        match &self.options.certificates {
            Certificates::Off => futures::future::ready(()).boxed(),
            Certificates::Files { dir, write_ca_bundle } => {
                let registers = self.options.webhook_url.is_some();
                let clients = ClientNames { trust_authorities: *write_ca_bundle || registers, ..self.clients() };
                let files = CertificateFiles::new(dir, Arc::clone(&resolver), clients);
                let publisher = (*write_ca_bundle || registers).then(|| self.publisher(&lifetimes));
                let told = Recipients { gate, metrics, alarm, bundle: Some(bundle) };
                FollowFiles::new(files, resolver, told, publisher).run().boxed()
            }
            Certificates::Own => {
                let names = self.all_names();
                let storage =
                    if self.options.webhook_url.is_some() { Storage::SecretOrMemory } else { Storage::Secret };
                let (client, namespace) = (self.client.clone(), &self.options.namespace);
                let store =
                    AuthorityStore::new(client, namespace, storage, lifetimes.authority, warnings, metrics.clone());
                let setup = Setup { names, lifetimes, resolver, gate, bundle, metrics, alarm };
                OwnCertificates::new(setup, store, self.publisher(&lifetimes)).run().boxed()
            }
        }
    }

    fn clients(&self) -> ClientNames {
        let known = self.options.asked_name.clone();
        let names_are_known = known.is_some();
        let name = known.unwrap_or_else(|| local::asked_name(&self.options.namespace));
        ClientNames { names: vec![name], names_are_known, trust_authorities: false }
    }

    /// The names that a client may ask for.
    fn all_names(&self) -> Vec<String> {
        let mut names = local::service_names(&self.options.namespace);
        for name in local::loopback_names().into_iter().chain(self.options.asked_name.clone()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn publisher(&self, lifetimes: &CertificateLifetimes) -> Publisher {
        let writer = match &self.options.webhook_url {
            Some(_) => Writer::Registration,
            None => Writer::Leader(self.leading.clone()),
        };
        Publisher::new(CaBundles::new(self.client, &self.options.kinds.converted()), writer, lifetimes)
    }
}
