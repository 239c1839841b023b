//! Which kinds the API server knows: about one that it does not, there is nothing to ask.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::answers::code;
use crate::manager::error::Error;

/// Those of the names that no definition has, or one that is being deleted. Where we may not look, there are none.
///
/// # Errors
/// What the API server says.
pub async fn missing(client: &Client, names: &BTreeSet<String>) -> Result<BTreeSet<String>, Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let mut missing = BTreeSet::new();
    for name in names {
        // By list and not by get: an account that may watch a definition may list it.
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        match api.list_metadata(&params).await {
            Ok(found) if found.items.iter().all(|found| found.metadata.deletion_timestamp.is_some()) => {
                missing.insert(name.clone());
            }
            Ok(_) => {}
            Err(error) if code(&error) == Some(403) => {}
            Err(error) => return Err(Error::api(name)(error)),
        }
    }
    Ok(missing)
}
