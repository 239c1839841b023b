//! Where the lease is kept.

use std::future::Future;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

use crate::answers::said;
use crate::field_managers::{LEADER_ELECTION, posting};
use crate::manager::lease::record::LeaseRecord;

/// Why the lease could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another wrote first.
    #[error("another candidate wrote first")]
    Conflict,
    /// The API server refused, or could not be reached.
    #[error("lease {namespace}/{name}: {}", said(source))]
    Api {
        /// Namespace of the lease.
        namespace: String,
        /// Name of the lease.
        name: String,
        /// What happened.
        source: Box<kube::Error>,
    },
}

/// Where the lease is kept.
pub trait LeaseStore {
    /// The lease, if there is one.
    fn get(&self) -> impl Future<Output = Result<Option<LeaseRecord>, Error>>;
    /// Makes the lease; fails if there is one.
    fn create(&self, record: LeaseRecord) -> impl Future<Output = Result<LeaseRecord, Error>>;
    /// Replaces the lease; fails if it is not of the record's version any more.
    fn replace(&self, record: LeaseRecord) -> impl Future<Output = Result<LeaseRecord, Error>>;
}

/// The API server.
pub struct KubeStore {
    api: Api<Lease>,
    namespace: String,
    name: String,
}

impl KubeStore {
    /// The lease of this name.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn failed(&self, error: kube::Error) -> Error {
        match error {
            kube::Error::Api(status) if status.code == 409 => Error::Conflict,
            source => {
                Error::Api { namespace: self.namespace.clone(), name: self.name.clone(), source: Box::new(source) }
            }
        }
    }
}

impl LeaseStore for KubeStore {
    async fn get(&self) -> Result<Option<LeaseRecord>, Error> {
        let lease = self.api.get_opt(&self.name).await.map_err(|error| self.failed(error))?;
        Ok(lease.as_ref().map(LeaseRecord::of))
    }

    async fn create(&self, record: LeaseRecord) -> Result<LeaseRecord, Error> {
        let lease = record.lease(&self.name);
        let lease = self.api.create(&posting(LEADER_ELECTION), &lease).await.map_err(|error| self.failed(error))?;
        Ok(LeaseRecord::of(&lease))
    }

    async fn replace(&self, record: LeaseRecord) -> Result<LeaseRecord, Error> {
        let lease = record.lease(&self.name);
        let written = self.api.replace(&self.name, &posting(LEADER_ELECTION), &lease).await;
        Ok(LeaseRecord::of(&written.map_err(|error| self.failed(error))?))
    }
}
