//! What of a set is in the pod already, and in which form.

use std::collections::{BTreeMap, BTreeSet};

use admission::Reason;

use crate::pod::view::Container;
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, Piece, VolumePiece};
use crate::sidecarset::injection::clash::shortened;
use crate::sidecarset::injection::lacking::Repair;
use crate::sidecarset::injection::{Clash, Injection, List, Missing};
use crate::sidecarset::sameness::{Lacking, is_same_volume};

/// Whether a pod has the containers of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Presence {
    /// Nothing of the set is there.
    #[default]
    Absent,
    /// Containers of the set are there, in its current form. There may be no record of them, or one of an older form.
    Current,
    /// `OpenKruise` says that it put the set there.
    OpenKruise,
    /// The record says that the set is there, but it is in another form than the set has now; in what it differs.
    Outdated(String),
}

impl Presence {
    /// The reason for a pod that nothing is added to.
    pub(super) const fn reason(&self) -> Option<Reason> {
        match self {
            Self::Absent => None,
            Self::Current => Some(reasons::ALREADY_INJECTED),
            Self::OpenKruise => Some(reasons::INJECTED_BY_OPENKRUISE),
            Self::Outdated(_) => Some(reasons::OUTDATED),
        }
    }
}

/// A container that the pod has by the name of one of the set's.
struct FoundContainer<'a, 'p> {
    list: List,
    index: usize,
    container: &'a Container<'p>,
}

/// A container that the record of a set lists.
pub(crate) struct Recorded<'p> {
    pub(crate) list: List,
    pub(crate) index: usize,
    pub(crate) name: &'p str,
    /// The set has a container of that name now.
    pub(crate) is_in_set: bool,
    /// In what it is not what the set injects now, in words; nothing where only other parts of the set are others.
    pub(crate) differing: Option<String>,
}

/// Containers that sets inject, by name: the list, the set and its piece.
pub(super) type PiecesByName<'s> = BTreeMap<&'s str, Vec<(List, &'s CompiledSet, &'s Piece)>>;

/// The names of a set's containers.
struct ContainerNames<'s> {
    init_containers: BTreeSet<&'s str>,
    containers: BTreeSet<&'s str>,
}

impl<'s> ContainerNames<'s> {
    fn of(set: &'s CompiledSet) -> Self {
        let names = |list| set.pieces_of(list).iter().map(|piece| piece.name.as_str()).collect();
        Self { init_containers: names(List::InitContainers), containers: names(List::Containers) }
    }

    fn has(&self, list: List, name: &str) -> bool {
        match list {
            List::InitContainers => self.init_containers.contains(name),
            List::Containers => self.containers.contains(name),
        }
    }
}

impl<'p, 's> Injection<'p, 's> {
    /// Finds the set's containers in the pod. Those that are not there go to `missing`.
    ///
    /// # Errors
    /// [`Clash`] when a container of another owner has the name of one of the set's, and when one passes for the set's that is
    /// not, where the set must not be evaded.
    pub(super) fn presence(&self, set: &'s CompiledSet, missing: &mut Missing<'s>) -> Result<Presence, Clash> {
        let is_older = self.carried.has_older(set) && self.has_recorded(set);
        let mut presence = Presence::Absent;
        let mut differing = None;
        for (list, pieces) in [(List::InitContainers, &set.init_containers), (List::Containers, &set.containers)] {
            let (before, after) = match list {
                List::InitContainers => (&mut missing.init_before, &mut missing.init_after),
                List::Containers => (&mut missing.before, &mut missing.after),
            };
            for (side, pieces) in [(before, &pieces.before), (after, &pieces.after)] {
                for piece in pieces {
                    self.check_claimed(set, piece)?;
                    let Some((list_of_pod, index, container)) = self.find(&piece.name) else {
                        side.push(piece);
                        continue;
                    };
                    let found = FoundContainer { list: list_of_pod, index, container };
                    let (by, field) = match self.compare(set, piece, list, &found)? {
                        (by, Ok(lacking)) => {
                            if by == Presence::Current && !lacking.is_empty() {
                                missing.repairs.push(Repair::new(piece, list, index, lacking));
                            }
                            (by, None)
                        }
                        (by, Err(field)) => (by, Some(field)),
                    };
                    if presence == Presence::Absent {
                        presence = by;
                    }
                    let differs = |field| format!("container {:?} differs in {field}", piece.name);
                    differing = differing.or_else(|| field.map(differs));
                }
            }
        }
        self.judge(set, missing, is_older, presence, differing)
    }

    fn judge(
        &self,
        set: &CompiledSet,
        missing: &mut Missing<'s>,
        is_older: bool,
        presence: Presence,
        differing: Option<String>,
    ) -> Result<Presence, Clash> {
        let lacking = || missing.containers().next().map(|piece| format!("container {:?} is missing", piece.name));
        let differing = match presence {
            _ if is_older => {
                differing.or_else(lacking).or_else(|| self.left_over(set)).or_else(|| self.differing_volume(set))
            }
            _ => differing,
        };
        let Some(differing) = differing else { return Ok(presence) };
        if !set.may_opt_out {
            return Err(Clash::outdated(set, &differing));
        }
        // One record is of one form: what is missing of an older form is not added from the current one.
        missing.clear_containers();
        Ok(if presence == Presence::OpenKruise { presence } else { Presence::Outdated(differing) })
    }

    fn check_claimed(&self, set: &CompiledSet, piece: &Piece) -> Result<(), Clash> {
        match self.ours.containers.get(piece.name.as_str()) {
            Some(owner) => Err(Clash::between_sets(set, &owner.name, &format!("container {:?}", piece.name))),
            None => Ok(()),
        }
    }

    /// Whose the container is, and what it lacks, or the first field in which it is not what the set injects.
    fn compare(
        &self,
        set: &CompiledSet,
        piece: &Piece,
        list: List,
        found: &FoundContainer<'_, 'p>,
    ) -> Result<(Presence, Result<Lacking, String>), Clash> {
        let FoundContainer { list: found_in, index, container } = *found;
        if found_in != list {
            return self.compare_elsewhere(set, piece, found);
        }
        let compared = piece.form.compare(container.raw(self.body), &set.allowed, &self.theirs.around);
        let by = self.carried.by(&set.name, &piece.name, list);
        match (by, compared) {
            (Some(reasons::INJECTED_BY_OPENKRUISE), compared) if set.may_opt_out => {
                Ok((Presence::OpenKruise, compared))
            }
            // Whatever the record says, it is the set's.
            (_, Ok(lacking)) => Ok((Presence::Current, Ok(lacking))),
            (None, Err(field)) => Err(self.foreign(set, piece, found, Some(&field))),
            (Some(_), Err(field)) if !set.may_opt_out => {
                Err(Clash::forged(set, piece, &field, container, found_in, index))
            }
            (Some(_), Err(field)) => Ok((Presence::Current, Err(field))),
        }
    }

    /// Whose a container is that the set would put into another list. An older form may have been put there.
    fn compare_elsewhere(
        &self,
        set: &CompiledSet,
        piece: &Piece,
        found: &FoundContainer<'_, 'p>,
    ) -> Result<(Presence, Result<Lacking, String>), Clash> {
        let differing = Err(format!("its list (it is in {})", found.list.field()));
        match self.carried.by(&set.name, &piece.name, found.list).filter(|_| set.may_opt_out) {
            Some(reasons::INJECTED_BY_OPENKRUISE) => Ok((Presence::OpenKruise, differing)),
            Some(_) => Ok((Presence::Current, differing)),
            None => Err(self.foreign(set, piece, found, None)),
        }
    }

    /// A container that is not the set's has the name of one of the set's.
    fn foreign(&self, set: &CompiledSet, piece: &Piece, found: &FoundContainer<'_, 'p>, field: Option<&str>) -> Clash {
        match self.owner_in_pod(set, found.list, found.container) {
            Some(owner) => Clash::between_sets(set, owner, &format!("container {:?}", piece.name)),
            None => Clash::container(set, piece, found.container, found.list, found.index, field),
        }
    }

    /// Another set that brought the container, as far as the pod's word for it goes. For a must it does not go at all.
    pub(super) fn owner_in_pod<'a>(
        &'a self,
        set: &'a CompiledSet,
        list: List,
        container: &'a Container<'_>,
    ) -> Option<&'a str> {
        if set.is_must() { None } else { self.carried.other_owner(&set.name, &container.name, list) }
    }

    /// Whether any container that the record of the set lists is in the pod.
    fn has_recorded(&self, set: &CompiledSet) -> bool {
        self.recorded_in_pod(set).next().is_some()
    }

    /// In what the pod's form of the set differs from the current one first, and the containers that the record of the set lists; `None`
    /// where they are what the set injects now.
    pub(crate) fn of_older_form(&self, set: &'s CompiledSet) -> Option<(String, Vec<Recorded<'p>>)> {
        let differing = match self.examine(set) {
            Ok(missing) => missing.outdated()?.to_owned(),
            Err(clash) if clash.reason == reasons::CONTAINER_CLASH => self.first_difference(set).unwrap_or(clash.field),
            Err(_) => return None,
        };
        let names = ContainerNames::of(set);
        let recorded = self.recorded_in_pod(set).map(|(list, index, container)| {
            let name = container.name.as_str();
            let is_in_set = names.has(list, name);
            let differing = if is_in_set {
                let piece = set.pieces_of(list).iter().find(|piece| piece.name == name);
                piece
                    .and_then(|piece| self.difference(set, piece, container))
                    .map(|field| format!("it differs in {field}"))
            } else {
                Some("the set has no container of that name any more".to_owned())
            };
            Recorded { list, index, name, is_in_set, differing }
        });
        Some((differing, recorded.collect()))
    }

    /// The first field in which a container of the pod is not what the set injects under its name, or what else differs.
    fn first_difference(&self, set: &CompiledSet) -> Option<String> {
        let lists = [List::InitContainers, List::Containers].into_iter();
        let mut pieces = lists.flat_map(|list| set.pieces_of(list).iter().map(move |piece| (list, piece)));
        let differing = pieces.find_map(|(list, piece)| {
            let Some((found_in, _, container)) = self.find(&piece.name) else {
                return Some(format!("container {:?} is missing", piece.name));
            };
            if found_in != list {
                return Some(format!("container {:?} differs in its list (it is in {})", piece.name, found_in.field()));
            }
            self.difference(set, piece, container).map(|field| format!("container {:?} differs in {field}", piece.name))
        });
        differing.or_else(|| self.left_over(set)).or_else(|| self.differing_volume(set))
    }

    /// The first field in which a container of the pod is not what the set injects.
    fn difference(&self, set: &CompiledSet, piece: &Piece, container: &Container<'_>) -> Option<String> {
        piece.form.compare(container.raw(self.body), &set.allowed, &self.theirs.around).err()
    }

    /// A container that the record lists and the set has no longer.
    fn left_over(&self, set: &CompiledSet) -> Option<String> {
        let names = ContainerNames::of(set);
        let mut left = self.recorded_in_pod(set).filter(|(list, _, container)| !names.has(*list, &container.name));
        let (_, _, container) = left.next()?;
        Some(format!("the set has no container {:?} any more", shortened(&container.name)))
    }

    /// A volume of the set that the pod has with another source.
    fn differing_volume(&self, set: &CompiledSet) -> Option<String> {
        let mut judged = set.volumes.iter().filter(|volume| !set.allowed.volume(&volume.name));
        let differs = |volume: &&VolumePiece| {
            self.theirs.volume(&volume.name).is_some_and(|(_, found)| !is_same_volume(found, volume))
        };
        judged.find(differs).map(|volume| format!("volume {:?} has another source", volume.name))
    }

    /// Whether the container is what another set injects that selects the pod: that set's, whatever the record of this one says.
    fn is_of_another(&self, set: &CompiledSet, list: List, container: &Container<'_>) -> bool {
        let of_name = self.pieces().get(container.name.as_str()).into_iter().flatten();
        let mut others = of_name.filter(|(of_list, other, _)| *of_list == list && other.name != set.name);
        others.any(|(_, other, piece)| self.difference(other, piece, container).is_none())
    }

    /// What sets inject that select the pod, unless it goes without them.
    fn pieces(&self) -> &PiecesByName<'s> {
        self.pieces.get_or_init(|| {
            let mut by_name = PiecesByName::new();
            for set in self.theirs.selecting.iter().filter(|set| !self.absent.contains(set.name.as_str())) {
                for list in [List::InitContainers, List::Containers] {
                    for piece in set.pieces_of(list).iter() {
                        by_name.entry(&piece.name).or_default().push((list, *set, piece));
                    }
                }
            }
            by_name
        })
    }

    /// Containers of the pod that the record of the set lists.
    pub(super) fn recorded_in_pod<'a>(
        &'a self,
        set: &'a CompiledSet,
    ) -> impl Iterator<Item = (List, usize, &'p Container<'p>)> + 'a {
        let listed = self.carried.containers(&set.name);
        let found = listed.filter_map(|(list, name)| self.find(name).filter(|(found_in, _, _)| *found_in == list));
        found.filter(|(list, _, container)| !self.is_of_another(set, *list, container))
    }
}
