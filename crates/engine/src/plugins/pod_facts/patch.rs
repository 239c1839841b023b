//! What plugins changed in a pod, as a patch.

use std::fmt::Write as _;

use admission::patch::{PatchWriter, Present, quoted};

use super::{ALWAYS, Spec};
use crate::plugins::toleration::Tolerated;

/// Bytes of the operation that sets it, at most.
const PULLED_BYTES: usize = 80;

impl Spec<'_> {
    /// What was changed, as a patch. There were so many tolerations before; none where there was no list.
    pub fn patch(&self, before: Option<usize>) -> PatchWriter {
        let pulled = self.containers().filter(|(_, _, container)| container.is_changed);
        // So many that the patch does not have to grow.
        let mut patch = PatchWriter::with_capacity(pulled.clone().count() * PULLED_BYTES);
        let (always, mut pointer) = (quoted(ALWAYS), String::new());
        for (list, index, _) in pulled {
            pointer.clear();
            // Writing to a String cannot fail.
            let _ = write!(pointer, "/spec/{}/{index}/imagePullPolicy", list.field());
            patch.add(&pointer, &always);
        }
        for (index, _) in self.volumes().iter().enumerate().filter(|(_, volume)| volume.is_changed) {
            patch.add(&format!("/spec/volumes/{index}/image/pullPolicy"), &always);
        }
        let labels = self.node_selector.as_ref().map_or(Present::Absent, |labels| Present::Len(labels.len()));
        let selected = self.selected.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        patch.set_texts("/spec/nodeSelector", labels, selected);
        self.patch_tolerations(before, &mut patch);
        self.patch_classes(&mut patch);
        patch
    }

    fn patch_tolerations(&self, before: Option<usize>, patch: &mut PatchWriter) {
        let json = |list: &[Tolerated<'_>]| list.iter().map(Tolerated::to_json).collect::<Vec<_>>();
        let own = before.unwrap_or_default();
        let are_kept = |same: &[Tolerated<'_>]| {
            // What one plugin takes out another may put back: then there is nothing to do.
            self.replaced.as_ref().is_none_or(|replaced| {
                replaced.iter().take(own).map(|one| &one.toleration).eq(same.iter().map(|one| &one.toleration))
            })
        };
        match self.tolerations().split_at_checked(own) {
            Some((same, added)) if are_kept(same) => {
                let present = before.map_or(Present::Absent, Present::Len);
                patch.surround("/spec/tolerations", present, [], json(added).iter().map(String::as_str));
            }
            _ => patch.add("/spec/tolerations", &format!("[{}]", json(self.tolerations()).join(","))),
        }
    }
}
