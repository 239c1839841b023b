//! Whether a kind was retired: its objects are not reconciled any more.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{GetParams, Request};
use kube::{Client, Resource as _};
use serde::Deserialize;

use super::Key;
use super::apply::{self, request};

/// Whether the definition named was retired: no finalizer is to be added to its objects, as it would never be removed.
///
/// # Errors
/// What the API server says.
pub async fn is_retired(client: &Client, definition: &str) -> Result<bool, apply::Error> {
    let key = Key { namespace: String::new(), name: definition.to_owned() };
    let ask = async {
        let url = Request::new(CustomResourceDefinition::url_path(&(), None));
        let found = url.get(definition, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
        client.request::<Served>(found).await
    };
    let found = request::<CustomResourceDefinition, _>(&key, ask).await?;
    Ok(found.spec.versions.iter().any(|version| !version.served))
}

/// The part of a definition that shows it: it is read for every object, and the schemas are long.
#[derive(Deserialize)]
struct Served {
    spec: ServedSpec,
}

#[derive(Deserialize)]
struct ServedSpec {
    versions: Vec<ServedVersion>,
}

#[derive(Deserialize)]
struct ServedVersion {
    served: bool,
}
