//! The ranges as controllers see them: what was compiled, and what the status says.

use std::sync::Arc;

use admission::field::ErrorList;
use admission::format::selector::Selector;

use super::policies::{Policies, Policy, Record};
use super::scope::{ByName, Scoped};
use super::table::Table;
use crate::limitrange::api::{ClusterLimitRange, KIND};
use crate::limitrange::compiled::CompiledRange;
use crate::plugins::api::PluginStatus;
use crate::sidecarset::api::Metadata;

/// One `ClusterLimitRange`.
pub type RangeRecord = Record<CompiledRange>;

/// Every `ClusterLimitRange`, for controllers.
pub type RangeTable = Table<RangeRecord>;

/// Every `ClusterLimitRange`, on its way into snapshots.
pub type LimitRangeList = Policies<ClusterLimitRange>;

impl Scoped for CompiledRange {
    const KIND: &'static str = KIND;
    const WORD: &'static str = "range";

    fn name(&self) -> &str {
        &self.name
    }

    fn namespaces(&self) -> Option<&Selector> {
        self.namespaces.as_ref()
    }
}

impl Policy for ClusterLimitRange {
    type Compiled = CompiledRange;
    type View = ByName<CompiledRange>;

    const KIND: &'static str = KIND;

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn status(&self) -> Option<&PluginStatus> {
        self.status.as_ref()
    }

    fn compile(&self) -> Result<CompiledRange, ErrorList> {
        CompiledRange::compile(self)
    }

    fn view(all: impl Iterator<Item = Arc<CompiledRange>>) -> Self::View {
        ByName::build(all)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::collection::{Collection as _, Effect};

    fn object(uid: &str, type_: &str, max: &str) -> ClusterLimitRange {
        let spec = json!({"limits": [{"type": type_, "max": {"cpu": max}}]});
        serde_json::from_value(json!({"metadata": {"name": "a", "uid": uid}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_range_that_stops_compiling_keeps_its_last_good_form_and_another_object_does_not_inherit_it() {
        let mut ranges = LimitRangeList::default();
        assert_eq!(ranges.apply(&object("u", "Pod", "1")), Effect::Decisions);
        assert_eq!(ranges.apply(&object("u", "Pod", "1")), Effect::None);
        assert_eq!(ranges.apply(&object("u", "Pod", "2")), Effect::Decisions);
        assert_eq!(ranges.apply(&object("u", "Pot", "2")), Effect::Controllers);
        assert!(ranges.table().get("a").unwrap().fault.as_ref().unwrap().contains("spec.limits[0].type"));
        assert_eq!(ranges.view().iter().count(), 1);
        assert_eq!(ranges.apply(&object("v", "Pot", "2")), Effect::Decisions);
        assert!(ranges.view().is_empty());
        assert_eq!(ranges.remove("a"), Effect::Decisions);
        assert_eq!(ranges.remove("a"), Effect::None);
    }
}
