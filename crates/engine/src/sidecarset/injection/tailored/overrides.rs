//! What a pod asks for itself, by the annotation of [`OVERRIDES_ANNOTATION`].

use std::collections::{BTreeMap, BTreeSet};

use admission::Text;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::pod::view::Metadata;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::hot_upgrade::{names, pair_of};
use crate::sidecarset::injection::Clash;
use crate::sidecarset::injection::clash::shortened;
use crate::sidecarset::overrides::{NotAllowed, OVERRIDES_ANNOTATION};

/// Names that are reported; the annotation may hold very many.
const TOLD: usize = 3;

/// The annotation of a pod before it was changed and now, where it is another.
#[derive(Debug)]
pub(crate) struct AskedAnew<'p> {
    before: Asked<'p>,
    now: Asked<'p>,
}

impl<'p> AskedAnew<'p> {
    /// Nothing where the annotation is as it was.
    pub(crate) fn read(before: &'p Metadata<'p>, now: &'p Metadata<'p>) -> Option<Self> {
        let differs = before.annotation(OVERRIDES_ANNOTATION) != now.annotation(OVERRIDES_ANNOTATION);
        differs.then(|| Self { before: Asked::read(before), now: Asked::read(now) })
    }

    /// Whether something else is asked of the set, for which another form of it would be right.
    pub(crate) fn concerns(&self, set: &CompiledSet) -> bool {
        let of = |asked: &Asked<'p>, piece: &Piece| -> [Option<&'p str>; 2] {
            let names = [piece.name.as_str(), name_in_set(set, piece)];
            names.map(|name| asked.by_container.get(name).copied().map(RawValue::get))
        };
        let is_readable_as_before = self.before.is_unreadable == self.now.is_unreadable;
        (!is_readable_as_before && set.pod_overrides.is_some())
            || set.pieces().any(|piece| of(&self.before, piece) != of(&self.now, piece))
    }
}

/// The name that the set has for the container: one for both of a pair.
fn name_in_set<'a>(set: &'a CompiledSet, piece: &'a Piece) -> &'a str {
    pair_of(&set.pairs, &piece.name).map_or(piece.name.as_str(), |pair| &pair.name)
}

/// The annotation, by container.
#[derive(Debug, Default)]
pub(super) struct Asked<'p> {
    by_container: BTreeMap<Text<'p>, &'p RawValue>,
    is_unreadable: bool,
}

impl<'p> Asked<'p> {
    pub(super) fn read(metadata: &'p Metadata<'p>) -> Self {
        let Some(text) = metadata.annotation(OVERRIDES_ANNOTATION) else { return Self::default() };
        let read = serde_json::from_str::<BTreeMap<Text<'p>, &'p RawValue>>(text);
        Self { is_unreadable: read.is_err(), by_container: read.unwrap_or_default() }
    }

    /// Whether something is asked of the set.
    pub(super) fn concerns(&self, set: &CompiledSet) -> bool {
        let may = set.pod_overrides.is_some();
        (self.is_unreadable && may)
            || (!self.by_container.is_empty() && set.pieces().any(|piece| self.names(set, piece)))
    }

    /// Also by the name of one of a pair alone, which is refused.
    fn names(&self, set: &CompiledSet, piece: &Piece) -> bool {
        [piece.name.as_str(), name_in_set(set, piece)].iter().any(|name| self.by_container.contains_key(*name))
    }

    /// Whether something is asked of the container, of a set of which something is.
    pub(super) fn concerns_piece(&self, set: &CompiledSet, piece: &Piece) -> bool {
        self.is_unreadable || self.names(set, piece)
    }

    /// Changes `object`, which is a container of the set, as the pod asks for it.
    ///
    /// # Errors
    /// [`Clash`] with the field that the pod may not change.
    pub(super) fn apply(&self, set: &CompiledSet, piece: &Piece, object: &mut RawObject) -> Result<(), Clash> {
        let pair = pair_of(&set.pairs, &piece.name);
        let named = name_in_set(set, piece);
        let clash = |fault: &NotAllowed| Clash::overriding(set, named, &shortened(&fault.field), &fault.why);
        if self.is_unreadable {
            let why =
                "the annotation must be JSON, a map from names of containers to what is another in this pod".to_owned();
            return Err(clash(&NotAllowed { field: String::new(), why }));
        }
        if pair.is_some() && self.by_container.contains_key(piece.name.as_str()) {
            let why = format!("it is one of the two of {named:?} (HotUpgrade), which change together: name {named:?}");
            return Err(Clash::overriding(set, &piece.name, "", &why));
        }
        let Some(raw) = self.by_container.get(named) else { return Ok(()) };
        let Some(overrides) = &set.pod_overrides else {
            let why = "the set does not let pods change anything (spec.podOverrides)".to_owned();
            return Err(clash(&NotAllowed { field: String::new(), why }));
        };
        let mut asked: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        // The image is that of the one that works, in a new pod the first. The other waits with one that does nothing.
        if let (true, Value::Object(fields)) = (pair.is_some_and(|pair| names(&pair.name)[1] == piece.name), &mut asked)
        {
            fields.remove("image");
        }
        overrides.apply(named, &asked, object).map_err(|fault| clash(&fault))?;
        if asked.get("image").is_some_and(|image| pair.is_some_and(|pair| *image == *pair.empty_image)) {
            let why = "neither container of the pair would work: it is the image of the one that waits".to_owned();
            return Err(clash(&NotAllowed { field: "image".to_owned(), why }));
        }
        Ok(())
    }

    /// Warnings about containers that no set has: the author of a misspelled name believes that it is changed.
    pub(super) fn of_nothing<'s>(&self, mut sets: impl Iterator<Item = &'s CompiledSet>) -> Vec<String> {
        if self.is_unreadable {
            // A set that lets pods change something says so itself.
            if sets.any(|set| set.pod_overrides.is_some()) {
                return Vec::new();
            }
            return vec![format!(
                "{OVERRIDES_ANNOTATION} must be JSON, a map from names of containers; nothing is changed by it"
            )];
        }
        if self.by_container.is_empty() {
            return Vec::new();
        }
        let names =
            |set: &'s CompiledSet| set.pieces().flat_map(move |piece| [piece.name.as_str(), name_in_set(set, piece)]);
        let known: BTreeSet<&str> = sets.flat_map(names).collect();
        let unknown = self.by_container.keys().map(Text::as_str).filter(|name| !known.contains(name));
        let warning = |name: &str| {
            let name = shortened(name);
            format!("{OVERRIDES_ANNOTATION} names container {name:?}, which no SidecarSet that selects the pod has")
        };
        unknown.take(TOLD).map(warning).collect()
    }
}
