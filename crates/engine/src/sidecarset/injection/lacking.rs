//! Containers of a set that the pod has already, and that lack what they take from the pod's own containers: another webhook has
//! changed these since.

use admission::PatchWriter;
use admission::patch::Present;

use crate::sidecarset::compiled::Piece;
use crate::sidecarset::injection::List;
use crate::sidecarset::injection::patch::OPERATION;
use crate::sidecarset::sameness::Lacking;

/// What a container of the pod gets.
#[derive(Debug)]
pub(super) struct Repair<'s> {
    piece: &'s Piece,
    list: List,
    index: usize,
    lacking: Lacking,
}

impl<'s> Repair<'s> {
    pub(super) const fn new(piece: &'s Piece, list: List, index: usize, lacking: Lacking) -> Self {
        Self { piece, list, index, lacking }
    }

    /// What is lacking first, and where.
    pub(super) fn described(&self) -> String {
        format!("{} of container {:?}", self.lacking.first().unwrap_or_default(), self.piece.name)
    }

    /// Bytes that the operations take, roughly.
    pub(super) fn bytes(&self) -> usize {
        let added = self.lacking.lists.iter().flat_map(|list| &list.add);
        let replaced = self.lacking.lists.iter().flat_map(|list| &list.replace).map(|(_, json)| json);
        added.chain(replaced).map(|json| json.len() + OPERATION).sum()
    }

    /// Writes the operations. Positions are those in the pod as it came.
    pub(super) fn write(&self, patch: &mut PatchWriter) {
        for list in &self.lacking.lists {
            let pointer = format!("/spec/{}/{}/{}", self.list.field(), self.index, list.field);
            for (at, json) in &list.replace {
                patch.replace(&format!("{pointer}/{at}"), json);
            }
            let present = if list.is_there { Present::Len(0) } else { Present::Absent };
            patch.surround(&pointer, present, [], list.add.iter().map(String::as_str));
        }
    }
}
