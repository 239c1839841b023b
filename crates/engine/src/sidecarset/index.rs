//! Finds the sets that can select a pod, at a cost that follows their number and not the number of all sets.
//!
//! Each set is filed under one condition that a pod must meet for the set to match: the one that the fewest other sets share.

mod parts;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use admission::format::Selector;
use admission::format::selector::Requirement;

use self::parts::{digest, host_ports, parts};
use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL, NamespaceScope};

/// All sets, found by what they select.
#[derive(Debug, Clone, Default)]
pub struct SetIndex {
    // Sorted by order, then name: the order of injection.
    sets: Vec<Arc<CompiledSet>>,
    pod_labels: LabelPostings,
    namespace_labels: LabelPostings,
    // Sets whose only conditions are labels that a pod may not have, by one of these.
    negations: HashMap<Box<str>, Negated>,
    // Sets with no condition that can be looked up.
    everywhere: Vec<u32>,
    // The digests of the names of containers and volumes, sorted, each with the position of a set.
    by_part: Box<[(u32, u32)]>,
    // Sets by the ports of the node that they take.
    by_host_port: HashMap<i64, Vec<u32>>,
    // Sorted by the names of the sets.
    by_name: Vec<u32>,
    // Sets that take the place of others as their canaries, by the names of these.
    canaries: HashMap<Box<str>, Vec<u32>>,
}

/// Positions of sets by label.
#[derive(Debug, Clone, Default)]
struct LabelPostings {
    keys: HashMap<Box<str>, LabelPosting>,
}

#[derive(Debug, Clone, Default)]
struct LabelPosting {
    values: HashMap<Box<str>, Vec<u32>>,
    any_value: Vec<u32>,
}

/// Positions of sets by a label that pods may not have, all of them sorted.
#[derive(Debug, Clone, Default)]
struct Negated {
    /// Whatever its value.
    any_value: Vec<u32>,
    /// With certain values.
    some_values: Vec<u32>,
    /// Of these, the ones that a value excludes.
    excluded: HashMap<Box<str>, Vec<u32>>,
}

/// Whose labels a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum LabelOwner {
    Pod,
    Namespace,
}

/// A condition to file a set under: a label of the pod or the namespace, and its possible values (none: any).
struct LabelCondition<'s> {
    owner: LabelOwner,
    key: &'s str,
    values: &'s [String],
}

impl SetIndex {
    /// Builds the index. Of two sets with the same name the later one counts.
    pub fn build(sets: impl IntoIterator<Item = Arc<CompiledSet>>) -> Self {
        Self::of(sets.into_iter().collect())
    }

    fn of(sets: Vec<Arc<CompiledSet>>) -> Self {
        let by_name: BTreeMap<String, Arc<CompiledSet>> = sets.into_iter().map(|set| (set.name.clone(), set)).collect();
        let mut sets: Vec<Arc<CompiledSet>> = by_name.into_values().collect();
        sets.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        let popularity = popularity(&sets);
        let (mut index, mut by_part) = (Self::default(), Vec::new());
        for (position, set) in (0_u32..).zip(&sets) {
            by_part.extend(parts(set).map(|name| (digest(name), position)));
            for base in &set.bases {
                index.canaries.entry(base.clone()).or_default().push(position);
            }
            for port in host_ports(set) {
                index.by_host_port.entry(port).or_default().push(position);
            }
            let rarest = conditions(set).min_by_key(|condition| condition.weight(&popularity));
            match rarest {
                Some(condition) => index.file(&condition, position),
                None => index.file_under_negation(set, position),
            }
        }
        by_part.sort_unstable();
        index.by_part = by_part.into();
        index.by_name = (0_u32..).take(sets.len()).collect();
        index.by_name.sort_by_key(|position| sets.get(*position as usize).map(|set| &set.name));
        index.sets = sets;
        index.shrink();
        index
    }

    /// All sets, in the order of injection.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CompiledSet>> {
        self.sets.iter()
    }

    /// Whether there is a set of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The sets that say to be canaries of the set.
    pub fn canaries_of(&self, base: &CompiledSet) -> impl Iterator<Item = &Arc<CompiledSet>> {
        let positions = self.canaries.get(base.name.as_str()).into_iter().flatten();
        positions.filter_map(|position| self.sets.get(*position as usize))
    }

    /// The set of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<CompiledSet>> {
        let name_at = |position: &u32| self.sets.get(*position as usize).map(|set| set.name.as_str());
        let found = self.by_name.binary_search_by(|position| name_at(position).cmp(&Some(name))).ok()?;
        self.sets.get(*self.by_name.get(found)? as usize)
    }

    /// Number of sets.
    pub const fn len(&self) -> usize {
        self.sets.len()
    }

    /// Whether there is no set.
    pub const fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Sets that may select a pod with these labels in this namespace, in the order of injection. The others do not.
    ///
    /// Sets filed under a namespace label are all candidates where the namespace's labels are not known.
    pub fn candidates<'p>(
        &self,
        pod_labels: impl Iterator<Item = (&'p str, &'p str)>,
        namespace: &str,
        namespace_labels: Option<&BTreeMap<String, String>>,
    ) -> Vec<&Arc<CompiledSet>> {
        let mut found = self.everywhere.clone();
        let (mut selected, mut negated) = (Vec::new(), Vec::new());
        for (key, value) in pod_labels {
            selected.extend(self.pod_labels.keys.get(key).map(|posting| (posting, value)));
            negated.extend(self.negations.get(key).map(|posting| (posting, value)));
        }
        for (posting, value) in last_of_each(selected) {
            posting.collect(value, &mut found);
        }
        let negated = last_of_each(negated);
        for negation in self.negations.values() {
            let value = negated.binary_search_by_key(&address(negation), |(posting, _)| address(*posting));
            negation.collect(value.ok().and_then(|at| negated.get(at)).map(|(_, value)| *value), &mut found);
        }
        if !self.namespace_labels.keys.is_empty() {
            self.namespace_labels.collect(NAMESPACE_NAME_LABEL, namespace, &mut found);
            match namespace_labels {
                Some(labels) => {
                    for (key, value) in labels.iter().filter(|(key, _)| *key != NAMESPACE_NAME_LABEL) {
                        self.namespace_labels.collect(key, value, &mut found);
                    }
                }
                None => self.namespace_labels.collect_all_but(NAMESPACE_NAME_LABEL, &mut found),
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().filter_map(|position| self.sets.get(position as usize)).collect()
    }

    /// Sets that bring a container or volume of one of these names, or take one of these ports of the node, and may select a pod
    /// which `selector` selects too, whatever the namespace, in the order of injection. The others do not.
    pub fn rivals<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        host_ports: impl Iterator<Item = i64>,
        selector: &Selector,
    ) -> impl Iterator<Item = &Arc<CompiledSet>> {
        let by_name = names.flat_map(|name| self.with_part(name));
        let by_port = host_ports.filter_map(|port| self.by_host_port.get(&port));
        let mut found: Vec<u32> = by_name.chain(by_port.flatten().copied()).collect();
        found.sort_unstable();
        found.dedup();
        if !found.is_empty() {
            let meeting = self.may_share_pods_with(selector);
            found.retain(|position| meeting.binary_search(position).is_ok());
        }
        found.into_iter().filter_map(|position| self.sets.get(position as usize))
    }

    fn may_share_pods_with(&self, selector: &Selector) -> Vec<u32> {
        let mut found = self.everywhere.clone();
        self.negations.values().for_each(|negation| negation.collect(None, &mut found));
        self.namespace_labels.keys.values().for_each(|term| term.collect_all(&mut found));
        for (key, term) in &self.pod_labels.keys {
            let values = selector.requirements().iter().find_map(|requirement| match requirement {
                Requirement::In(of, values) if **of == **key => Some(values),
                _ => None,
            });
            match values {
                Some(values) => values.iter().for_each(|value| term.collect(value, &mut found)),
                None => term.collect_all(&mut found),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Sets that bring a container or volume of the name.
    fn with_part(&self, name: &str) -> impl Iterator<Item = u32> {
        let digest = digest(name);
        let start = self.by_part.partition_point(|(part, _)| *part < digest);
        let same = self.by_part.get(start..).unwrap_or_default().iter().take_while(move |(part, _)| *part == digest);
        // Of two names with one digest, one is another.
        same.map(|(_, position)| *position).filter(move |position| {
            self.sets.get(*position as usize).is_some_and(|set| parts(set).any(|part| part == name))
        })
    }

    /// Gives back the room for more positions: most lists have one.
    fn shrink(&mut self) {
        for terms in [&mut self.pod_labels, &mut self.namespace_labels] {
            terms.keys.values_mut().flat_map(|posting| posting.values.values_mut()).for_each(Vec::shrink_to_fit);
        }
        self.negations.values_mut().flat_map(|negated| negated.excluded.values_mut()).for_each(Vec::shrink_to_fit);
    }

    /// Files a set of no other condition under a label that it excludes. Positions are filed in ascending order.
    fn file_under_negation(&mut self, set: &CompiledSet, position: u32) {
        let negation = |requirement: &&Requirement| match requirement {
            Requirement::DoesNotExist(_) => Some(0),
            Requirement::NotIn(..) => Some(1),
            _ => None,
        };
        let negations = set.selector.requirements().iter().filter(|requirement| negation(requirement).is_some());
        match negations.min_by_key(negation) {
            Some(Requirement::DoesNotExist(key)) => {
                self.negations.entry(key.as_str().into()).or_default().any_value.push(position);
            }
            Some(Requirement::NotIn(key, values)) => {
                let negated = self.negations.entry(key.as_str().into()).or_default();
                negated.some_values.push(position);
                for value in values.iter().collect::<BTreeSet<_>>() {
                    negated.excluded.entry(value.as_str().into()).or_default().push(position);
                }
            }
            _ => self.everywhere.push(position),
        }
    }

    fn file(&mut self, condition: &LabelCondition<'_>, position: u32) {
        let terms = match condition.owner {
            LabelOwner::Pod => &mut self.pod_labels,
            LabelOwner::Namespace => &mut self.namespace_labels,
        };
        let term = terms.keys.entry(condition.key.into()).or_default();
        if condition.values.is_empty() {
            term.any_value.push(position);
        }
        for value in condition.values {
            term.values.entry(value.as_str().into()).or_default().push(position);
        }
    }
}

impl LabelPostings {
    fn collect(&self, key: &str, value: &str, found: &mut Vec<u32>) {
        if let Some(term) = self.keys.get(key) {
            term.collect(value, found);
        }
    }

    fn collect_all_but(&self, key: &str, found: &mut Vec<u32>) {
        self.keys.iter().filter(|(other, _)| ***other != *key).for_each(|(_, term)| term.collect_all(found));
    }
}

/// The postings of labels, sorted by their addresses, each with the value that counts: of a repeated key that is the last one.
fn last_of_each<'t, 'p, T>(mut found: Vec<(&'t T, &'p str)>) -> Vec<(&'t T, &'p str)> {
    found.reverse();
    found.sort_by_key(|(posting, _)| address(*posting));
    found.dedup_by_key(|(posting, _)| address(*posting));
    found
}

fn address<T>(posting: &T) -> usize {
    std::ptr::from_ref(posting).addr()
}

impl Negated {
    /// The sets that do not exclude a label of this value, or of none.
    fn collect(&self, value: Option<&str>, found: &mut Vec<u32>) {
        let Some(value) = value else {
            found.extend_from_slice(&self.any_value);
            found.extend_from_slice(&self.some_values);
            return;
        };
        let mut excluded = self.excluded.get(value).map(Vec::as_slice).unwrap_or_default();
        for position in &self.some_values {
            match excluded.split_first() {
                Some((first, rest)) if first == position => excluded = rest,
                _ => found.push(*position),
            }
        }
    }
}

impl LabelPosting {
    fn collect(&self, value: &str, found: &mut Vec<u32>) {
        found.extend_from_slice(&self.any_value);
        if let Some(sets) = self.values.get(value) {
            found.extend_from_slice(sets);
        }
    }

    fn collect_all(&self, found: &mut Vec<u32>) {
        found.extend_from_slice(&self.any_value);
        found.extend(self.values.values().flatten());
    }
}

type Popularity<'s> = HashMap<(LabelOwner, &'s str, Option<&'s str>), usize>;

fn popularity(sets: &[Arc<CompiledSet>]) -> Popularity<'_> {
    let mut popularity = Popularity::new();
    for condition in sets.iter().flat_map(|set| conditions(set)) {
        if condition.values.is_empty() {
            *popularity.entry((condition.owner, condition.key, None)).or_default() += 1;
        }
        for value in condition.values {
            *popularity.entry((condition.owner, condition.key, Some(value))).or_default() += 1;
        }
    }
    popularity
}

impl LabelCondition<'_> {
    /// How many sets would be checked for a pod that meets the condition. A pod's label with any value weighs more than one
    /// with a certain value, for many pods have it.
    fn weight(&self, popularity: &Popularity<'_>) -> (bool, usize, LabelOwner) {
        let shared = if self.values.is_empty() {
            popularity.get(&(self.owner, self.key, None)).copied().unwrap_or_default()
        } else {
            let of = |value: &String| popularity.get(&(self.owner, self.key, Some(value.as_str()))).copied();
            self.values.iter().filter_map(of).max().unwrap_or_default()
        };
        (self.values.is_empty(), shared, self.owner)
    }
}

/// The conditions of a set that can be looked up.
fn conditions(set: &CompiledSet) -> impl Iterator<Item = LabelCondition<'_>> {
    let (named, selected) = match &set.scope {
        NamespaceScope::All => (None, None),
        NamespaceScope::Named(name) => (Some(std::slice::from_ref(name)), None),
        NamespaceScope::Selected { selector, .. } => (None, Some(selector)),
    };
    let namespace =
        named.map(|values| LabelCondition { owner: LabelOwner::Namespace, key: NAMESPACE_NAME_LABEL, values });
    let of_namespace = selected.into_iter().flat_map(|selector| lookups(selector, LabelOwner::Namespace));
    lookups(&set.selector, LabelOwner::Pod).chain(namespace).chain(of_namespace)
}

fn lookups(selector: &Selector, owner: LabelOwner) -> impl Iterator<Item = LabelCondition<'_>> {
    selector.requirements().iter().filter_map(move |requirement| match requirement {
        Requirement::In(key, values) => Some(LabelCondition { owner, key, values }),
        Requirement::Exists(key) => Some(LabelCondition { owner, key, values: &[] }),
        Requirement::NotIn(..) | Requirement::DoesNotExist(_) => None,
    })
}

#[cfg(test)]
#[path = "index_tests.rs"]
#[allow(clippy::unwrap_used)]
mod tests;
