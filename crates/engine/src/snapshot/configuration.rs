//! What decisions read of the `ConfigMap` with Outrider's configuration in the cluster.

use std::sync::Arc;

use crate::sidecarset::allow_list::AllowList;

use super::collection::{Collection, Effect};

/// Name of the `ConfigMap`, in Outrider's namespace.
pub const CONFIG_MAP: &str = "outrider-configuration";

/// Key of the list of annotations that sets may give to pods. The same as in `OpenKruise`'s `kruise-configuration`.
pub const ALLOW_LIST_KEY: &str = "SidecarSet_PatchPodMetadata_WhiteList";

/// What is read of the `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationMap {
    /// The value of [`ALLOW_LIST_KEY`].
    pub allow_list: Option<String>,
}

/// What decisions read.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    /// Which annotations sets may give to pods.
    pub allow_list: AllowList,
}

/// The `ConfigMap`, on its way into snapshots.
#[derive(Debug, Default)]
pub struct ConfigurationMaps {
    map: ConfigurationMap,
    known: Arc<Configuration>,
}

impl Collection for ConfigurationMaps {
    type Object = ConfigurationMap;
    type View = Configuration;

    fn apply(&mut self, map: &ConfigurationMap) -> Effect {
        if self.map == *map {
            return Effect::None;
        }
        self.map = map.clone();
        self.known = Arc::new(Configuration { allow_list: AllowList::read(map.allow_list.as_deref()) });
        if let AllowList::Unreadable(error) = &self.known.allow_list {
            tracing::warn!(
                key = ALLOW_LIST_KEY,
                error,
                "The list of annotations in ConfigMap {CONFIG_MAP} cannot be used"
            );
        }
        Effect::Decisions
    }

    fn remove(&mut self, _: &str) -> Effect {
        self.apply(&ConfigurationMap::default())
    }

    fn view(&mut self) -> Arc<Configuration> {
        Arc::clone(&self.known)
    }
}
