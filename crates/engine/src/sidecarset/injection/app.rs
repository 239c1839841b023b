//! What sets add to the pod's own containers (`spec.appContainers`).
//!
//! Variables go in front, so that the container's own may refer to them; mounts go behind. What a container has already wins, but
//! for variables that the set overwrites: these are changed where they are, and go in front as well where another of the set that comes
//! first refers to them. Between sets the earlier wins. Variables that several sets of the pod have keep their places: what one set moves
//! in front could otherwise come before what another one has moved, in the next pass.

mod variables;

pub(super) use self::variables::shared_variables;

use std::collections::{BTreeMap, BTreeSet};

use admission::PatchWriter;
use admission::patch::Present;

use self::variables::{Target, add_variables, variables_of};
use super::fit::{Own, Sources};
use super::patch::OPERATION;
use super::{Clash, Injection, Missing};
use crate::reasons;
use crate::sidecarset::app_containers::{AppPiece, Mount, Variable, overwritten};
use crate::sidecarset::compiled::CompiledSet;

/// Bytes that all sets together add to the pod's own containers. No API server stores a pod of that size: etcd's limit is 1.5 MiB.
const MAX_ADDED: usize = 3 * 1024 * 1024;
/// Containers that something is added to. No node runs a pod of so many.
const MAX_CONTAINERS: usize = 1000;
/// How often a container has the variables that a set overwrites, beyond once each: every one of them is read.
const MAX_REPEATED: usize = 1000;
/// Warnings about one set: there may be as many as the pod has containers.
const TOLD: usize = 8;

/// What one container gets.
#[derive(Debug, Default)]
pub(super) struct Change<'s> {
    // In their order. Of one set, those with numbers below zero come before what earlier sets put in front, and the others behind.
    front: BTreeMap<i64, &'s Variable>,
    order_of: BTreeMap<&'s str, i64>,
    // With their positions.
    replaced: Vec<(usize, &'s Variable)>,
    mounts: Vec<&'s Mount>,
    // Both kinds of variables by name.
    variables: BTreeMap<&'s str, &'s Variable>,
    // The ones that replace what an earlier set put in front without overwriting anything.
    instead: Vec<&'s Variable>,
    paths: BTreeSet<&'s str>,
}

/// What the pod's own containers get, by their position.
#[derive(Debug, Default)]
pub(super) struct Changes<'s> {
    by_container: BTreeMap<usize, Change<'s>>,
    bytes: usize,
    /// The first container that gets something.
    pub(super) first: Option<String>,
}

/// What a container of the pod's own gets of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppAddition {
    /// Its name.
    pub container: String,
    /// Names of variables, also of those that the set overwrites, sorted.
    pub env: Vec<String>,
    /// Paths of mounts, sorted.
    pub mounts: Vec<String>,
}

/// An entry of `spec.appContainers` that names no container of the pod, so that the pod gets nothing of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedEntry {
    /// Its position in the list.
    pub index: usize,
    /// The names.
    pub names: Vec<String>,
    /// Of these, one of an init container, which the entry leaves out.
    pub init_container: Option<String>,
}

/// Variables that sets overwrite, and whose they are.
pub(super) type Overwritten<'s> = BTreeMap<&'s str, Vec<(&'s Variable, &'s CompiledSet)>>;

impl Changes<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.by_container.is_empty()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn extend(&mut self, more: Self) {
        self.bytes += more.bytes;
        for (position, change) in more.by_container {
            let all = self.by_container.entry(position).or_default();
            all.put_in_front(change.instead, change.front);
            all.replaced.extend(change.replaced);
            all.mounts.extend(change.mounts);
            all.variables.extend(change.variables);
            all.paths.extend(change.paths);
        }
    }

    /// Writes the operations. Positions are those in the pod as it came.
    pub(super) fn write(&self, sources: &Sources<'_, '_>, patch: &mut PatchWriter) {
        for (position, change) in &self.by_container {
            let Some(own) = sources.at(*position) else { continue };
            let (list, index) = own.place();
            let env = format!("/spec/{}/{index}/env", list.field());
            for (at, variable) in &change.replaced {
                patch.replace(&format!("{env}/{at}"), &variable.json);
            }
            let front = change.front.values().map(|variable| variable.json.as_str());
            patch.surround(&env, present(own.env().len()), front, []);
            let mounts = format!("/spec/{}/{index}/volumeMounts", list.field());
            let back = change.mounts.iter().map(|mount| mount.json.as_str());
            patch.surround(&mounts, present(own.mounts().len()), [], back);
        }
    }
}

impl<'s> Change<'s> {
    /// What a later set changes and adds in front.
    fn put_in_front(&mut self, instead: Vec<&'s Variable>, more: BTreeMap<i64, &'s Variable>) {
        for variable in instead {
            if let Some(found) = self.order_of.get(variable.name.as_str()).and_then(|order| self.front.get_mut(order)) {
                *found = variable;
            }
        }
        let first = self.front.first_key_value().map_or(0, |(order, _)| *order);
        let end = self.front.last_key_value().map_or(0, |(order, _)| order + 1);
        for (order, variable) in more {
            let order = order + if order < 0 { first } else { end };
            self.front.insert(order, variable);
            self.order_of.insert(&variable.name, order);
        }
    }
}

const fn present(length: usize) -> Present {
    if length == 0 { Present::Absent } else { Present::Len(length) }
}

impl<'s> Injection<'_, 's> {
    /// What the pod's own containers lack of the set.
    ///
    /// # Errors
    /// [`Clash`] when an earlier set gives a variable another value, and when no pod can have so much.
    pub(super) fn examine_app(&self, set: &'s CompiledSet, missing: &mut Missing<'s>) -> Result<(), Clash> {
        if set.app_containers.is_empty() {
            return Ok(());
        }
        self.check_overwritten(set)?;
        let sources = self.sources();
        let (mut warnings, mut count) = (Vec::new(), 0);
        for (position, own) in sources.every(set.is_must()) {
            let (list, _) = own.place();
            let is_init = list == super::List::InitContainers;
            let pieces: Vec<&AppPiece> =
                set.app_containers.iter().filter(|piece| piece.is_about(own.name(), is_init)).collect();
            if pieces.is_empty() {
                continue;
            }
            if own.is_longer() {
                return Err(Clash::too_long(set));
            }
            let variables = variables_of(&pieces);
            let overwritten = variables.iter().filter(|(overwrites, _)| *overwrites);
            if overwritten.map(|(_, variable)| own.repeats_of(&variable.name)).sum::<usize>() > MAX_REPEATED {
                return Err(repeated(set));
            }
            count += 1;
            let mut change = Change::default();
            let earlier = self.added.app.by_container.get(&position);
            let target = Target { own, earlier, shared: &self.shared_variables };
            missing.app.bytes += add_variables(&variables, target, &mut change);
            for piece in pieces {
                missing.app.bytes += add_mounts(set, piece, own, earlier, &mut change, &mut warnings);
            }
            if !(change.variables.is_empty() && change.paths.is_empty()) {
                missing.app.first.get_or_insert_with(|| own.name().to_owned());
                missing.app.by_container.insert(position, change);
            }
            if missing.app.bytes + self.added.app.bytes > MAX_ADDED || count > MAX_CONTAINERS {
                return Err(too_much(set));
            }
        }
        missing.warnings.extend(warnings);
        Ok(())
    }

    /// What the pod's own containers get of what was found missing, by container.
    pub(crate) fn app_additions(&self, missing: &Missing<'_>) -> Vec<AppAddition> {
        fn owned<'t>(texts: impl Iterator<Item = &'t &'t str>) -> Vec<String> {
            texts.map(|text| (*text).to_owned()).collect()
        }
        let addition = |(position, change): (&usize, &Change<'_>)| {
            let container = self.sources().at(*position)?.name().to_owned();
            Some(AppAddition { container, env: owned(change.variables.keys()), mounts: owned(change.paths.iter()) })
        };
        missing.app.by_container.iter().filter_map(addition).collect()
    }

    /// Entries of the set that name no container of the pod's own.
    pub(crate) fn unmatched_entries(&self, set: &CompiledSet) -> Vec<UnmatchedEntry> {
        let unmatched = |(index, piece): (usize, &AppPiece)| {
            let names = piece.names()?;
            let mut init_container = None;
            for (_, own) in self.sources().every(set.is_must()) {
                let is_init = own.place().0 == super::List::InitContainers;
                if piece.is_about(own.name(), is_init) {
                    return None;
                }
                if is_init && names.contains(own.name()) {
                    init_container.get_or_insert_with(|| own.name().to_owned());
                }
            }
            Some(UnmatchedEntry { index, names: names.iter().cloned().collect(), init_container })
        };
        set.app_containers.iter().enumerate().filter_map(unmatched).collect()
    }

    /// In what the pod's own containers differ from what the set adds to them now, if anything: a value that is the container's own
    /// cannot be distinguished from one that an older form of the set gave it.
    pub(crate) fn differing_in_app(&self, set: &'s CompiledSet) -> Option<String> {
        if set.app_containers.is_empty() {
            return None;
        }
        self.sources().every(set.is_must()).find_map(|(_, own)| {
            let is_init = own.place().0 == super::List::InitContainers;
            let pieces: Vec<&AppPiece> =
                set.app_containers.iter().filter(|piece| piece.is_about(own.name(), is_init)).collect();
            let has =
                |variable: &Variable| own.place_of(&variable.name).is_some_and(|(_, raw)| variable.is_same(raw.get()));
            let variable = variables_of(&pieces).into_iter().find(|(_, variable)| !has(variable));
            let mount = || {
                let mut mounts = pieces.iter().flat_map(|piece| &piece.mounts);
                mounts.find(|mount| own.mounted_at(&mount.path) != Some(&*mount.volume))
            };
            let what = variable
                .map(|(_, variable)| format!("variable {:?}", variable.name))
                .or_else(|| mount().map(|mount| format!("what is mounted at {:?}", mount.path)))?;
            Some(format!("container {:?} differs in {what} (spec.appContainers)", super::clash::shortened(own.name())))
        })
    }

    /// Between sets the earlier wins, also when the API server asks again.
    fn check_overwritten(&self, set: &'s CompiledSet) -> Result<(), Clash> {
        for variable in overwritten(&set.app_containers) {
            let claims = self.ours.overwritten.get(variable.name.as_str()).into_iter().flatten();
            for (other, owner) in claims {
                if !other.agrees_with(variable) {
                    let what = format!("variable {:?} with another value to the pod's containers", variable.name);
                    return Err(Clash::between_sets(set, &owner.name, &what));
                }
            }
        }
        Ok(())
    }

    /// Takes note of the variables that a set of the pod overwrites.
    pub(super) fn note_overwritten(&mut self, set: &'s CompiledSet) {
        for variable in overwritten(&set.app_containers) {
            self.ours.overwritten.entry(&variable.name).or_default().push((variable, set));
        }
    }
}

fn add_mounts<'s>(
    set: &CompiledSet,
    piece: &'s AppPiece,
    own: &Own<'_>,
    earlier: Option<&Change<'s>>,
    change: &mut Change<'s>,
    warnings: &mut Vec<String>,
) -> usize {
    let mut bytes = 0;
    for mount in &piece.mounts {
        let path = mount.path.as_str();
        let is_added = change.paths.contains(path) || earlier.is_some_and(|earlier| earlier.paths.contains(path));
        match own.mounted_at(path) {
            Some(volume) if volume == mount.volume => {}
            None if !is_added => {
                change.mounts.push(mount);
                change.paths.insert(path);
                bytes += mount.json.len() + OPERATION;
            }
            _ if warnings.len() < TOLD => warnings.push(format!(
                "{}: container {:?} has something else at {path:?}, where SidecarSet {:?} would mount volume {:?}; it keeps its own",
                reasons::MOUNT_CLASH,
                super::clash::shortened(own.name()),
                set.name,
                mount.volume
            )),
            _ => {}
        }
    }
    bytes
}

fn too_much(set: &CompiledSet) -> Clash {
    let text = "what sets add to the pod's own containers (spec.appContainers) exceeds 3 MiB or is for more than 1000 containers, and no \
                node runs such a pod; make the pod smaller";
    Clash::illegal(set, "spec.containers", text)
}

fn repeated(set: &CompiledSet) -> Clash {
    let text = "a container of the pod has variables that the set overwrites (spec.appContainers) more than 1000 times; name each once";
    Clash::illegal(set, "spec.containers", text)
}
