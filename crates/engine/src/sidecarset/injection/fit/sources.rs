//! The pod's own containers, as far as sets take something from them: each is read once a review, and only when a set asks.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use admission::Text;
use admission::limit::values;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::pod::limits::{self, at_most_or_none};
use crate::pod::view::{Container, NameOnly, PodView};
use crate::sidecarset::app_containers::Additions;
use crate::sidecarset::canonical::is_empty;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::flat::FlatValue;
use crate::sidecarset::injection::List;
use crate::sidecarset::mark::says_raw;
use crate::sidecarset::sameness::clean_path;
use crate::sidecarset::size::MAX_VALUES;

/// Containers of sets by name: several sets may bring one of a name.
type PiecesByName<'s> = BTreeMap<&'s str, Vec<(&'s CompiledSet, &'s Piece)>>;

/// Containers of the pod that sets may take something from, or add something to.
#[derive(Debug)]
pub(in crate::sidecarset::injection) struct Sources<'p, 's> {
    pod: &'p PodView<'p>,
    body: &'p str,
    selecting: Vec<&'s CompiledSet>,
    // What is not read of the containers.
    left_out: Additions<'s>,
    own: OnceCell<Vec<Own<'p>>>,
    by_name: OnceCell<BTreeMap<&'p str, usize>>,
}

/// A container of the pod that no set brought.
#[derive(Debug)]
pub(in crate::sidecarset::injection) struct Own<'p> {
    name: &'p str,
    place: (List, usize),
    /// It ends before the others start.
    is_plain_init: bool,
    /// Something says that it was injected, which the author of the pod may have written.
    is_said_to_be_injected: bool,
    /// One of its lists is longer than what was read of it.
    is_longer: bool,
    parts: ContainerParts<'p>,
    variables: OnceCell<Variables<'p>>,
    // Volumes by the places at which they are mounted, and empty texts where devices are.
    mounted: OnceCell<BTreeMap<String, String>>,
}

/// The variables of a container by name, with their positions.
#[derive(Debug, Default)]
struct Variables<'p> {
    last: BTreeMap<Text<'p>, (usize, &'p RawValue)>,
    // Of a name that is there several times, those before the last one.
    earlier: BTreeMap<Text<'p>, Vec<(usize, &'p RawValue)>>,
}

impl<'p> Variables<'p> {
    fn of(list: &[&'p RawValue]) -> Self {
        let mut variables = Self::default();
        for (at, raw) in list.iter().enumerate() {
            let Some(name) = name_of(raw) else { continue };
            if let Some(earlier) = variables.last.insert(name.clone(), (at, raw)) {
                variables.earlier.entry(name).or_default().push(earlier);
            }
        }
        variables
    }
}

/// Where a volume is in a container.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MountPlace<'p> {
    #[serde(borrow)]
    name: Text<'p>,
    #[serde(borrow)]
    mount_path: Text<'p>,
    #[serde(borrow)]
    device_path: Text<'p>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerParts<'p> {
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, { limits::ELEMENTS }>")]
    env: Vec<&'p RawValue>,
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, { limits::ELEMENTS }>")]
    volume_mounts: Vec<&'p RawValue>,
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, { limits::ELEMENTS }>")]
    volume_devices: Vec<&'p RawValue>,
    #[serde(borrow)]
    command: Option<&'p RawValue>,
    #[serde(borrow)]
    args: Option<&'p RawValue>,
}

impl<'p, 's> Sources<'p, 's> {
    /// Those of a pod, which was read from `body` and is selected by these sets, without what sets add to them.
    pub(super) fn without_additions(pod: &'p PodView<'p>, body: &'p str, selecting: &[&'s CompiledSet]) -> Self {
        Self { left_out: Additions::of(selecting.iter().copied()), ..Self::new(pod, body, selecting) }
    }

    /// Those of a pod, which was read from `body` and is selected by these sets.
    pub(in crate::sidecarset::injection) fn new(
        pod: &'p PodView<'p>,
        body: &'p str,
        selecting: &[&'s CompiledSet],
    ) -> Self {
        Self {
            pod,
            body,
            selecting: selecting.to_vec(),
            left_out: Additions::default(),
            own: OnceCell::new(),
            by_name: OnceCell::new(),
        }
    }

    /// The containers that sets bring to a list.
    fn pieces(&self, list: List) -> PiecesByName<'s> {
        let mut pieces = PiecesByName::new();
        for set in &self.selecting {
            for piece in set.pieces_of(list).iter() {
                pieces.entry(&piece.name).or_default().push((set, piece));
            }
        }
        pieces
    }

    /// The pod's own containers, then its own native sidecars. For a must those too that are only said to be a set's or
    /// another injector's: to say so of a container must not keep something from the set. With their positions.
    pub(super) fn own(&self, is_must: bool) -> impl Iterator<Item = (usize, &Own<'p>)> {
        self.every(is_must).filter(|(_, own)| !own.is_plain_init)
    }

    /// The same, and the pod's own plain init containers behind them.
    pub(in crate::sidecarset::injection) fn every(&self, is_must: bool) -> impl Iterator<Item = (usize, &Own<'p>)> {
        self.all().iter().enumerate().filter(move |(_, own)| is_must || !own.is_said_to_be_injected)
    }

    /// Whether one of those of [`Self::own`] has more in a list than is read of it.
    pub(super) fn has_longer(&self, is_must: bool) -> bool {
        self.own(is_must).any(|(_, own)| own.is_longer())
    }

    /// One of them, by its position.
    pub(in crate::sidecarset::injection) fn at(&self, position: usize) -> Option<&Own<'p>> {
        self.all().get(position)
    }

    fn all(&self) -> &[Own<'p>] {
        self.own.get_or_init(|| {
            let spec = &self.pod.spec;
            let (mut of_sets, mut inits_of_sets) = (self.pieces(List::Containers), self.pieces(List::InitContainers));
            let inits = || spec.init_containers().iter().enumerate();
            let sidecars = inits().filter(|(_, container)| container.is_native_sidecar());
            let plain = inits().filter(|(_, container)| !container.is_native_sidecar());
            let mut own = Vec::new();
            for (index, container) in spec.containers().iter().enumerate() {
                own.extend(self.read((List::Containers, index), container, &mut of_sets));
            }
            for (index, container) in sidecars.chain(plain) {
                own.extend(self.read((List::InitContainers, index), container, &mut inits_of_sets));
            }
            own
        })
    }

    /// The pod's own container of that name.
    pub(super) fn named(&self, is_must: bool, name: &str) -> Option<&Own<'p>> {
        let all = self.all();
        let at = *self
            .by_name
            .get_or_init(|| {
                let named = all.iter().enumerate().filter(|(_, own)| !own.is_plain_init).rev();
                named.map(|(position, own)| (own.name, position)).collect()
            })
            .get(name)?;
        all.get(at).filter(|own| is_must || !own.is_said_to_be_injected)
    }

    /// `None` for a container of a set.
    fn read(
        &self,
        place: (List, usize),
        container: &'p Container<'p>,
        of_sets: &mut PiecesByName<'s>,
    ) -> Option<Own<'p>> {
        let raw = container.raw(self.body)?;
        let mut parts: ContainerParts<'p> = serde_json::from_str(raw.get()).ok()?;
        // Of a name that is there twice, no second one is a set's.
        let named = of_sets.remove(container.name.as_str()).unwrap_or_default();
        if named.iter().any(|(set, piece)| set.is_must() || runs_the_same(container, &parts, piece)) {
            return None;
        }
        let is_said_to_be_injected = is_marked(&parts);
        let lists = [&parts.env, &parts.volume_mounts, &parts.volume_devices];
        let is_longer = lists.into_iter().any(|list| list.len() > limits::ELEMENTS);
        if !self.left_out.is_empty() {
            let is_added =
                |raw: &RawValue| name_of(raw).is_some_and(|name| self.left_out.has_variable(&name, raw.get()));
            parts.env.retain(|raw| !is_added(raw));
            parts.volume_mounts.retain(|raw| !self.is_added_mount(raw));
        }
        Some(Own {
            name: container.name.as_str(),
            place,
            is_plain_init: place.0 == List::InitContainers && !container.is_native_sidecar(),
            is_said_to_be_injected,
            is_longer,
            parts,
            variables: OnceCell::new(),
            mounted: OnceCell::new(),
        })
    }

    fn is_added_mount(&self, raw: &RawValue) -> bool {
        let place = serde_json::from_str::<MountPlace<'_>>(raw.get()).unwrap_or_default();
        self.left_out.has_mount(&place.mount_path, &place.name)
    }
}

impl<'p> Own<'p> {
    pub(in crate::sidecarset::injection) const fn name(&self) -> &'p str {
        self.name
    }

    /// Whether it has more variables, mounts or devices than are read.
    pub(in crate::sidecarset::injection) const fn is_longer(&self) -> bool {
        self.is_longer
    }

    /// The list of the pod that it is in, and its position there.
    pub(in crate::sidecarset::injection) const fn place(&self) -> (List, usize) {
        self.place
    }

    /// The variable of that name. Of one that is there twice the last counts, as for the kubelet.
    pub(super) fn variable(&self, name: &str) -> Option<&'p RawValue> {
        self.place_of(name).map(|(_, raw)| raw)
    }

    /// The same, with its position.
    pub(in crate::sidecarset::injection) fn place_of(&self, name: &str) -> Option<(usize, &'p RawValue)> {
        self.variables().last.get(name).copied()
    }

    /// All variables of that name, with their positions: a reference between two of them is to the first.
    pub(in crate::sidecarset::injection) fn places_of(
        &self,
        name: &str,
    ) -> impl Iterator<Item = (usize, &'p RawValue)> + use<'_, 'p> {
        let variables = self.variables();
        let earlier = variables.earlier.get(name).into_iter().flatten();
        earlier.chain(variables.last.get(name)).copied()
    }

    /// How many variables of that name there are before the last one.
    pub(in crate::sidecarset::injection) fn repeats_of(&self, name: &str) -> usize {
        self.variables().earlier.get(name).map_or(0, Vec::len)
    }

    fn variables(&self) -> &Variables<'p> {
        self.variables.get_or_init(|| Variables::of(&self.parts.env))
    }

    /// The volume that is mounted at a path; an empty text where a device is there.
    pub(in crate::sidecarset::injection) fn mounted_at(&self, path: &str) -> Option<&str> {
        let mounted = self.mounted.get_or_init(|| {
            let lists = self.parts.volume_devices.iter().chain(&self.parts.volume_mounts);
            let places = lists.filter_map(|raw| serde_json::from_str::<MountPlace<'p>>(raw.get()).ok());
            let mut mounted = BTreeMap::new();
            for place in places {
                let (path, volume) = match place.mount_path.as_str() {
                    "" => (place.device_path.as_str(), ""),
                    path => (path, place.name.as_str()),
                };
                mounted.insert(clean_path(path).unwrap_or(path).to_owned(), volume.to_owned());
            }
            mounted
        });
        mounted.get(path).map(String::as_str)
    }

    pub(in crate::sidecarset::injection) fn env(&self) -> &[&'p RawValue] {
        &self.parts.env
    }

    pub(in crate::sidecarset::injection) fn mounts(&self) -> &[&'p RawValue] {
        &self.parts.volume_mounts
    }

    pub(super) fn devices(&self) -> &[&'p RawValue] {
        &self.parts.volume_devices
    }
}

fn name_of<'p>(raw: &'p RawValue) -> Option<Text<'p>> {
    serde_json::from_str::<NameOnly<'p>>(raw.get()).ok().map(|named| named.name)
}

/// Whether a container runs what the set's runs. The author of a pod may call a container of his own like a set's.
fn runs_the_same(container: &Container<'_>, parts: &ContainerParts<'_>, piece: &Piece) -> bool {
    // An empty list of the set's is not kept.
    let is_same = |raw: Option<&RawValue>, ours: Option<FlatValue<'_>>| {
        // No set has a longer one.
        let readable = raw.filter(|raw| values(raw.get(), MAX_VALUES) <= MAX_VALUES);
        let read = |raw: &RawValue| serde_json::from_str(raw.get()).ok();
        let value = if raw.is_none() { Some(Value::Null) } else { readable.and_then(read) };
        let Some(value) = value else { return false };
        ours.map_or_else(|| is_empty(&value), |ours| ours.is(&value))
    };
    let image = container.image.as_str();
    let is_same_image = image == piece.image || image.split_once('@').is_some_and(|(tagged, _)| tagged == piece.image);
    let (command, args) = piece.form.runs();
    is_same_image && is_same(parts.command, command) && is_same(parts.args, args)
}

fn is_marked(parts: &ContainerParts<'_>) -> bool {
    parts.env.iter().rev().find_map(|raw| says_raw(raw)).unwrap_or_default()
}
