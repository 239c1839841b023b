//! The pod's own containers, as far as sets take something from them: each is read once a review, and only when a set asks.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use admission::Text;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::pod::limits::at_most_or_none;
use crate::pod::view::{Container, Named, PodView};
use crate::sidecarset::canonical::is_empty;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::List;
use crate::sidecarset::mark;

/// Variables, mounts or devices of one container: the shortest takes 10 bytes in what the API server stores of a pod.
const ELEMENTS: usize = 160_000;

/// Longest text of a variable that can be the mark of an injected container.
const MARK_MAX: usize = 256;

/// Containers of sets by name: several sets may bring one of a name.
type Pieces<'s> = BTreeMap<&'s str, Vec<(&'s CompiledSet, &'s Piece)>>;

/// Containers of the pod that sets may take something from.
pub(super) struct Sources<'p, 's> {
    pod: &'p PodView<'p>,
    body: &'p str,
    selecting: Vec<&'s CompiledSet>,
    own: OnceCell<Vec<Own<'p>>>,
    by_name: OnceCell<BTreeMap<&'p str, usize>>,
}

/// A container of the pod that no set brought.
pub(super) struct Own<'p> {
    name: &'p str,
    /// Something says that it was injected, which the author of the pod may have written.
    is_said_to_be_injected: bool,
    parts: Parts<'p>,
    variables: OnceCell<BTreeMap<Text<'p>, &'p RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Parts<'p> {
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, ELEMENTS>")]
    env: Vec<&'p RawValue>,
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, ELEMENTS>")]
    volume_mounts: Vec<&'p RawValue>,
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, ELEMENTS>")]
    volume_devices: Vec<&'p RawValue>,
    #[serde(borrow)]
    command: Option<&'p RawValue>,
    #[serde(borrow)]
    args: Option<&'p RawValue>,
}

impl<'p, 's> Sources<'p, 's> {
    /// Those of a pod, which was read from `body` and is selected by these sets.
    pub(super) fn new(pod: &'p PodView<'p>, body: &'p str, selecting: &[&'s CompiledSet]) -> Self {
        Self { pod, body, selecting: selecting.to_vec(), own: OnceCell::new(), by_name: OnceCell::new() }
    }

    /// The containers that sets bring to a list.
    fn pieces(&self, list: List) -> Pieces<'s> {
        let mut pieces = Pieces::new();
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
        self.all().iter().enumerate().filter(move |(_, own)| is_must || !own.is_said_to_be_injected)
    }

    /// One of them, by its position.
    pub(super) fn at(&self, position: usize) -> Option<&Own<'p>> {
        self.all().get(position)
    }

    fn all(&self) -> &[Own<'p>] {
        self.own.get_or_init(|| {
            let spec = &self.pod.spec;
            let (mut of_sets, mut sidecars_of_sets) =
                (self.pieces(List::Containers), self.pieces(List::InitContainers));
            let sidecars = spec.init_containers().iter().filter(|container| container.is_native_sidecar());
            let containers = spec.containers().iter().filter_map(|container| self.read(container, &mut of_sets));
            containers.chain(sidecars.filter_map(|sidecar| self.read(sidecar, &mut sidecars_of_sets))).collect()
        })
    }

    /// The pod's own container of that name.
    pub(super) fn named(&self, is_must: bool, name: &str) -> Option<&Own<'p>> {
        let all = self.all();
        let at = *self
            .by_name
            .get_or_init(|| {
                let named = all.iter().enumerate().rev();
                named.map(|(position, own)| (own.name, position)).collect()
            })
            .get(name)?;
        all.get(at).filter(|own| is_must || !own.is_said_to_be_injected)
    }

    /// `None` for a container of a set.
    fn read(&self, container: &'p Container<'p>, of_sets: &mut Pieces<'s>) -> Option<Own<'p>> {
        let raw = container.raw(self.body)?;
        let parts: Parts<'p> = serde_json::from_str(raw.get()).ok()?;
        // Of a name that is there twice, no second one is a set's.
        let named = of_sets.remove(container.name.as_str()).unwrap_or_default();
        if named.iter().any(|(set, piece)| set.is_must() || runs_the_same(container, &parts, piece)) {
            return None;
        }
        let is_said_to_be_injected = is_marked(&parts);
        Some(Own { name: container.name.as_str(), is_said_to_be_injected, parts, variables: OnceCell::new() })
    }
}

impl<'p> Own<'p> {
    /// The variable of that name. Of one that is there twice the last counts, as for the kubelet.
    pub(super) fn variable(&self, name: &str) -> Option<&'p RawValue> {
        let variables = self.variables.get_or_init(|| {
            let named = self.parts.env.iter().filter_map(|raw| Some((name_of(raw)?, *raw)));
            named.collect()
        });
        variables.get(name).copied()
    }

    pub(super) fn mounts(&self) -> &[&'p RawValue] {
        &self.parts.volume_mounts
    }

    pub(super) fn devices(&self) -> &[&'p RawValue] {
        &self.parts.volume_devices
    }
}

fn name_of<'p>(raw: &'p RawValue) -> Option<Text<'p>> {
    serde_json::from_str::<Named<'p>>(raw.get()).ok().map(|named| named.name)
}

/// Whether a container runs what the set's runs. The author of a pod may call a container of his own like a set's.
fn runs_the_same(container: &Container<'_>, parts: &Parts<'_>, piece: &Piece) -> bool {
    let is_same = |raw: Option<&RawValue>, ours: &Value| {
        let value = raw.map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap_or(Value::Bool(true)));
        value == *ours || (is_empty(&value) && is_empty(ours))
    };
    let image = container.image.as_str();
    let is_same_image = image == piece.image || image.split_once('@').is_some_and(|(tagged, _)| tagged == piece.image);
    let (command, args) = piece.form.runs();
    is_same_image && is_same(parts.command, command) && is_same(parts.args, args)
}

fn is_marked(parts: &Parts<'_>) -> bool {
    let short = parts.env.iter().rev().filter(|raw| raw.get().len() <= MARK_MAX);
    let mut marks = short.filter(|raw| raw.get().contains(mark::NAME));
    marks.find_map(|raw| mark::says(&serde_json::from_str(raw.get()).ok()?)).unwrap_or_default()
}
