//! The fields of a pod that plugins read, borrowed from the body, with what sidecars added to them.

mod classes;
mod follow;
mod patch;
mod resources;

use std::collections::BTreeMap;

use admission::Text;
use admission::review::null_as_default;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use self::classes::Given;
pub use self::resources::{Resources, is_best_effort};
use super::change::{List, PodChange, Tolerations};
use super::said_name;
use super::toleration::Tolerated;
use crate::pod::borrowed_map::{self, BorrowedMap};
use crate::pod::decoded::{Decoded, Limited};
use crate::pod::limits::{self, Exceeded, at_most, cut};
use crate::pod::view::{self, PodView};

/// The policy that `AlwaysPullImages` sets.
pub const ALWAYS: &str = "Always";

/// What plugins read of a pod, borrowed from the body.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct PodFacts<'a> {
    /// Empty where the review has none.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: Metadata<'a>,
    /// The spec. A pod without one is refused by the API server.
    #[serde(borrow)]
    pub spec: Option<Spec<'a>>,
}

/// Metadata of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    /// Empty where the API server has yet to make one up.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The beginning of a name that the API server makes up.
    #[serde(borrow)]
    pub generate_name: Text<'a>,
    /// Annotations.
    #[serde(borrow, deserialize_with = "borrowed_map::annotations")]
    pub annotations: Option<BorrowedMap<'a>>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<IgnoredAny>,
    /// Whether the pod has metadata at all, which the patch has to make otherwise.
    #[serde(skip, default = "view::yes")]
    pub is_there: bool,
}

impl Metadata<'_> {
    /// The name in messages (`extractResourceName` of k8s.io/apiserver/pkg/admission).
    pub fn said_name<'n>(&'n self, requested: &'n str) -> &'n str {
        said_name([requested, &self.name, &self.generate_name])
    }
}

/// Spec of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Spec<'a> {
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::CONTAINERS }>")]
    containers: Option<Vec<Container<'a>>>,
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::CONTAINERS }>")]
    init_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::CONTAINERS }>")]
    ephemeral_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::VOLUMES }>")]
    volumes: Option<Vec<Volume<'a>>>,
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::TOLERATIONS }>")]
    tolerations: Option<Vec<Tolerated<'a>>>,
    #[serde(borrow)]
    node_selector: Option<BorrowedMap<'a>>,
    /// Node labels that were added.
    #[serde(skip)]
    selected: BTreeMap<String, String>,
    /// The tolerations that others took the place of.
    #[serde(skip)]
    replaced: Option<Vec<Tolerated<'a>>>,
    #[serde(borrow)]
    priority_class_name: Text<'a>,
    priority: Option<IgnoredAny>,
    preemption_policy: Option<IgnoredAny>,
    #[serde(borrow)]
    runtime_class_name: Text<'a>,
    #[serde(skip)]
    given: Given,
    /// Where the pod asks to run, raw.
    #[serde(borrow)]
    pub affinity: Option<&'a RawValue>,
    /// Requests and limits of the pod as a whole.
    #[serde(borrow)]
    pub resources: Option<Resources<'a>>,
}

/// A container of any list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Container<'a> {
    /// Name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Image.
    #[serde(borrow)]
    pub image: Text<'a>,
    /// `Always`, `IfNotPresent`, `Never`, or empty.
    #[serde(borrow)]
    pub image_pull_policy: Text<'a>,
    /// Requests and limits.
    #[serde(borrow)]
    pub resources: Option<Resources<'a>>,
    /// `Always` for an init container that is a sidecar.
    #[serde(borrow)]
    pub restart_policy: Text<'a>,
    #[serde(skip)]
    is_changed: bool,
}

/// A volume, of which plugins read only whether it holds an image.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct Volume<'a> {
    /// Set for a volume that holds an image.
    #[serde(borrow)]
    pub image: Option<ImageVolume<'a>>,
    #[serde(skip)]
    is_changed: bool,
}

/// The image of a volume.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct ImageVolume<'a> {
    /// Image.
    #[serde(borrow)]
    pub reference: Text<'a>,
    /// `Always`, `IfNotPresent`, `Never`, or empty.
    #[serde(borrow)]
    pub pull_policy: Text<'a>,
}

admission::only_objects!(PodFacts<'a>, Metadata<'a>, Spec<'a>, Container<'a>, Volume<'a>, ImageVolume<'a>);

impl<'a> PodFacts<'a> {
    /// Of a pod that was decoded for the sets: its body is not scanned again.
    ///
    /// # Errors
    /// When a part that sets do not read has another type.
    pub fn of_view(pod: &Decoded<PodView<'a>>) -> Result<Decoded<Self>, serde_json::Error> {
        // What is cut there is cut here.
        let pod = pod.even_if_cut();
        let metadata = Metadata {
            name: pod.metadata.name.clone(),
            generate_name: pod.metadata.generate_name.clone(),
            annotations: pod.metadata.annotations.clone(),
            deletion_timestamp: None,
            is_there: pod.metadata.is_there,
        };
        let spec = if pod.spec.is_there { Some(Spec::of_view(&pod.spec)?) } else { None };
        Ok(Decoded::new(Self { metadata, spec }))
    }
}

impl Limited for PodFacts<'_> {
    fn exceeds(&self) -> Option<Exceeded> {
        let annotations = limits::annotations(self.metadata.annotations.as_ref());
        annotations.or_else(|| self.spec.as_ref().and_then(Spec::exceeds))
    }
}

impl<'a> Spec<'a> {
    fn of_view(spec: &view::Spec<'a>) -> Result<Self, serde_json::Error> {
        let containers = |list: &Option<Vec<view::Container<'a>>>| {
            list.as_ref().map(|list| all(list, Container::of_view)).transpose()
        };
        let volumes = spec.volumes.as_ref().map(|list| all(list, |raw| Volume::of_view(raw))).transpose()?;
        Ok(Self {
            containers: containers(&spec.containers)?,
            init_containers: containers(&spec.init_containers)?,
            ephemeral_containers: list::<_, { limits::CONTAINERS }>(spec.ephemeral_containers)?,
            volumes,
            tolerations: list::<_, { limits::TOLERATIONS }>(spec.tolerations)?,
            node_selector: Some(&spec.node_selector).filter(|labels| !labels.is_empty()).cloned(),
            selected: BTreeMap::new(),
            replaced: None,
            priority_class_name: spec.priority_class_name.clone(),
            priority: spec.priority,
            preemption_policy: spec.preemption_policy,
            runtime_class_name: spec.runtime_class_name.clone(),
            given: Given::default(),
            affinity: spec.affinity,
            resources: spec.resources.map(read).transpose()?,
        })
    }

    /// Whether the pod asks for no CPU and no memory.
    pub fn is_best_effort(&self) -> bool {
        let containers = [List::Containers, List::Init].into_iter().flat_map(|list| self.list(list));
        is_best_effort(self.resources.as_ref(), containers.filter_map(|container| container.resources.as_ref()))
    }

    /// The containers of a list.
    pub fn list(&self, list: List) -> &[Container<'a>] {
        let found = match list {
            List::Init => &self.init_containers,
            List::Containers => &self.containers,
            List::Ephemeral => &self.ephemeral_containers,
        };
        found.as_deref().unwrap_or_default()
    }

    /// Every container, in the order in which the API server visits them, with its list and its place in it.
    pub fn containers(&self) -> impl Iterator<Item = (List, usize, &Container<'a>)> + Clone {
        List::ALL
            .into_iter()
            .flat_map(|list| self.list(list).iter().enumerate().map(move |(index, container)| (list, index, container)))
    }

    /// The volumes; none where the field is absent.
    pub fn volumes(&self) -> &[Volume<'a>] {
        self.volumes.as_deref().unwrap_or_default()
    }

    /// The tolerations; none where the field is absent.
    pub fn tolerations(&self) -> &[Tolerated<'a>] {
        self.tolerations.as_deref().unwrap_or_default()
    }

    /// The value of a node label that the pod asks for.
    pub fn node_label(&self, key: &str) -> Option<&str> {
        let added = self.selected.get(key).map(String::as_str);
        added.or_else(|| self.node_selector.as_ref()?.get(key))
    }

    /// Every node label that the pod asks for.
    pub fn node_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.node_selector.iter().flat_map(BorrowedMap::iter);
        own.chain(self.selected.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }

    fn exceeds(&self) -> Option<Exceeded> {
        let lengths = [
            cut("spec.volumes", self.volumes().len(), limits::VOLUMES, "volumes"),
            self.too_many_tolerations(),
            limits::node_selector(self.node_selector.as_ref()),
            self.resources.iter().flat_map(Resources::lists).find_map(|list| limits::of_whole("spec.resources", list)),
        ];
        let of_containers = |list: List| {
            let (field, all) = (list.path(), self.list(list));
            let resources = all.iter().flat_map(|container| container.resources.iter().flat_map(Resources::lists));
            limits::containers(field, all.len(), resources)
        };
        List::ALL.into_iter().find_map(of_containers).or_else(|| lengths.into_iter().flatten().next())
    }

    /// The limit of tolerations, where there are more.
    pub fn too_many_tolerations(&self) -> Option<Exceeded> {
        cut("spec.tolerations", self.tolerations().len(), limits::TOLERATIONS, "tolerations")
    }

    /// Makes a change.
    pub fn apply(&mut self, change: PodChange<'a>) {
        for (list, index) in change.pulled {
            if let Some(container) = self.list_mut(list).and_then(|list| list.get_mut(index)) {
                container.image_pull_policy = Text(ALWAYS.into());
                container.is_changed = true;
            }
        }
        for index in change.pulled_volumes {
            if let Some(volume) = self.volumes.as_mut().and_then(|volumes| volumes.get_mut(index)) {
                volume.image.get_or_insert_default().pull_policy = Text(ALWAYS.into());
                volume.is_changed = true;
            }
        }
        self.selected.extend(change.node_labels);
        self.given.priority = change.priority_class.or_else(|| self.given.priority.take());
        self.given.runtime = change.runtime_class.or_else(|| self.given.runtime.take());
        match change.tolerations {
            Tolerations::Added(none) if none.is_empty() => {}
            Tolerations::Added(added) => self.tolerations.get_or_insert_default().extend(added),
            Tolerations::Replaced(all) => {
                let before = self.tolerations.replace(all).unwrap_or_default();
                self.replaced.get_or_insert(before);
            }
        }
    }

    const fn list_mut(&mut self, list: List) -> Option<&mut Vec<Container<'a>>> {
        match list {
            List::Init => self.init_containers.as_mut(),
            List::Containers => self.containers.as_mut(),
            List::Ephemeral => self.ephemeral_containers.as_mut(),
        }
    }

    /// How many tolerations there are; none where there is no list.
    pub fn count_of_tolerations(&self) -> Option<usize> {
        self.tolerations.as_ref().map(Vec::len)
    }
}

impl<'a> Container<'a> {
    fn of_view(container: &view::Container<'a>) -> Result<Self, serde_json::Error> {
        Ok(Self {
            name: container.name.clone(),
            image: container.image.clone(),
            image_pull_policy: container.image_pull_policy.clone(),
            resources: container.resources.map(read).transpose()?,
            restart_policy: container.restart_policy.clone(),
            is_changed: false,
        })
    }
}

impl<'a> Volume<'a> {
    fn of_view(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        // Most hold no image, and a search is cheaper than reading them. Escapes can spell a key in many ways.
        let may_hold_an_image = raw.get().contains("image") || raw.get().contains('\\');
        if may_hold_an_image { read(raw) } else { Ok(Self::default()) }
    }
}

/// What is read of each. Collecting into a result would not know how many there are.
fn all<O, T>(list: &[O], read: impl Fn(&O) -> Result<T, serde_json::Error>) -> Result<Vec<T>, serde_json::Error> {
    let mut all = Vec::with_capacity(list.len());
    for one in list {
        all.push(read(one)?);
    }
    Ok(all)
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, serde_json::Error> {
    serde_json::from_str(raw.get())
}

fn list<'a, T: Deserialize<'a>, const N: usize>(
    raw: Option<&'a RawValue>,
) -> Result<Option<Vec<T>>, serde_json::Error> {
    raw.map_or(Ok(None), |raw| at_most::<_, _, N>(&mut serde_json::Deserializer::from_str(raw.get())))
}
