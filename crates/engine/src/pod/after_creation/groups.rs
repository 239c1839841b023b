//! Musts of which a pod carries one: a base, and the canaries that take its place in new pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use admission::Unserved;

use super::forms::{Asked, Faults, Must, Sizes, has};
use super::{Containers, RESIZE, Update};
use crate::pod::select::{Selected, Selection, gives_way, held_back};
use crate::pod::validate::must;
use crate::pod::view::PodView;
use crate::sidecarset::compiled::CompiledSet;

/// Musts of which a pod carries one. Most are by themselves.
#[derive(Default)]
pub(super) struct Group<'s, 'n> {
    members: Vec<Must<'s>>,
    /// Names of their containers, in any form, that the pod had.
    present: BTreeSet<&'n str>,
    /// Of these, the ones that are others now.
    changed: BTreeSet<&'n str>,
    /// Members that the pod is to carry since its labels have changed.
    new: BTreeSet<&'s str>,
    /// Members of which the pod has another record now.
    recorded_anew: BTreeSet<&'s str>,
}

/// What is another about a must than before, beside its containers.
pub(super) struct News<'n> {
    /// The pod is to carry it since its labels have changed.
    pub is_new: &'n dyn Fn(&Must<'_>) -> bool,
    /// The pod has another record of it.
    pub is_recorded_anew: &'n dyn Fn(&Must<'_>) -> bool,
}

impl<'s, 'n> Group<'s, 'n> {
    /// The groups of these musts of which the update changes anything.
    pub fn all(musts: &[Must<'s>], news: &News<'_>, containers: &'n Containers<'_>) -> Vec<Self>
    where
        's: 'n,
    {
        let bases: HashMap<&str, &Must<'s>> = musts.iter().map(|must| (must.name(), must)).collect();
        let mut groups: BTreeMap<&str, Self> = BTreeMap::new();
        for must in musts {
            let base =
                must.set.bases.iter().find_map(|base| bases.get(&**base).filter(|it| gives_way(it.set, must.set)));
            let group = groups.entry(base.unwrap_or(&must).name()).or_default();
            group.members.push(*must);
            group.present.extend(must.names(containers).filter_map(|name| containers.old.get(name)));
            group.new.extend((news.is_new)(must).then(|| must.name()));
            group.recorded_anew.extend((news.is_recorded_anew)(must).then(|| must.name()));
        }
        let with_changes = |group: Self| Self { changed: &group.present & &containers.changed, ..group };
        let groups = groups.into_values().map(with_changes);
        groups.filter(Self::is_concerned).collect()
    }

    fn is_concerned(&self) -> bool {
        !self.changed.is_empty() || !self.new.is_empty() || !self.recorded_anew.is_empty()
    }

    /// Whether there is another form than the current one of one must.
    fn has_several_forms(&self) -> bool {
        self.members.len() > 1 || self.members.iter().any(|must| must.older_form().is_some())
    }

    /// How strictly a form of a member is judged. Where the pod had a whole form, or containers of another one, this one must be there as
    /// a whole: of a form that has fewer containers than another, the pod would get half of the other.
    fn asked(&self, form: &CompiledSet, before: &Before) -> Asked {
        let names: BTreeSet<&str> = has(form).collect();
        let had_any = self.members.iter().any(|must| before.had(must));
        let is_whole = !self.new.is_empty() || had_any || !self.present.is_subset(&names);
        Asked {
            is_whole,
            is_changed: !self.changed.is_empty(),
            sizes: if self.new.contains(form.name.as_str()) { Sizes::Computed } else { Sizes::Kept },
            is_recorded_anew: self.recorded_anew.contains(form.name.as_str()),
        }
    }

    /// Why the pod may not be changed so. One that new pods would get speaks for all: canaries come after their bases.
    fn refusal(&self, current: &Faults, before: &Before, older: &Faults) -> Option<String> {
        let refused = self.members.iter().find(|it| !it.set.bases.is_empty()).or_else(|| self.members.first())?;
        let names: BTreeSet<&str> = has(refused.set).collect();
        let fault = match (refused.older, older.get(refused.name())) {
            (_, Some(Some(fault))) if before.had_older(refused) => fault.clone(),
            (Some(Err(why)), _) if !self.changed.is_subset(&names) => why.clone(),
            _ => current.get(refused.name()).cloned().flatten().unwrap_or_default(),
        };
        Some(if !self.new.is_empty() {
            format!("{}, and labels that the set selects do not bring it: {fault}; recreate the pod", must(refused.set))
        } else if self.changed.is_empty() {
            format!("{}, and its record of the set may not become another: {fault}", must(refused.set))
        } else {
            let changed: Vec<&str> = self.changed.iter().copied().collect();
            format!("{}, and container {} may not become another: {fault}", must(refused.set), changed.join(", "))
        })
    }
}

/// Whether a pod carries a must, in the form that was judged.
fn carries(faults: &Faults, must: &Must<'_>) -> bool {
    matches!(faults.get(must.name()), Some(None))
}

/// In what the pod, as it was, did not carry the forms of musts that have several, each as a whole.
#[derive(Default)]
struct Before {
    current: Faults,
    older: Faults,
}

impl Before {
    fn had_older(&self, must: &Must<'_>) -> bool {
        carries(&self.older, must)
    }

    fn had(&self, must: &Must<'_>) -> bool {
        self.had_older(must) || carries(&self.current, must)
    }
}

impl Update<'_, '_> {
    /// Why the pod may not be changed so, for each group of musts: it carries none of them in a form that it may have.
    pub fn faults_of(&self, groups: &[Group<'_, '_>]) -> Result<Vec<String>, Unserved> {
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.before(groups)?;
        let members = groups.iter().flat_map(|group| group.members.iter().map(move |must| (group, must)));
        let asked = members.map(|(group, must)| (must.name(), group.asked(must.set, &before)));
        let current = self.faults(self.new, self.all.clone(), &asked.collect())?;
        let open: Vec<_> =
            groups.iter().filter(|group| !group.members.iter().any(|must| carries(&current, must))).collect();
        let older = self.older(&open, &before)?;
        let resized = self.resized(&open, &before)?;
        let may_have_older = |group: &Group<'_, '_>, must: &Must<'_>| {
            let is_due =
                || group.new.contains(must.name()) && held_back(must.set, self.new, &self.request.namespace).is_some();
            carries(&older, must) && (before.had_older(must) || is_due())
        };
        let may_be = |group: &Group<'_, '_>, must: &Must<'_>| carries(&resized, must) || may_have_older(group, must);
        let refused = open.into_iter().filter(|group| !group.members.iter().any(|must| may_be(group, must)));
        Ok(refused.filter_map(|group| group.refusal(&current, &before, &older)).collect())
    }

    /// Judges the pod as it was.
    fn before(&self, groups: &[Group<'_, '_>]) -> Result<Before, Unserved> {
        let whole = Asked { is_whole: true, is_changed: true, ..Asked::default() };
        let musts = || groups.iter().filter(|group| group.has_several_forms()).flat_map(|group| &group.members);
        let current: BTreeMap<&str, Asked> = musts().map(|must| (must.name(), whole)).collect();
        if current.is_empty() {
            return Ok(Before::default());
        }
        let with_older = musts().filter(|must| must.older_form().is_some());
        let older: BTreeMap<&str, Asked> = with_older.map(|must| (must.name(), whole)).collect();
        let selected = self.selected_before()?;
        Ok(Before {
            older: self.faults_in_older_forms(self.old, selected.clone(), &older)?,
            current: self.faults(self.old, selected, &current)?,
        })
    }

    /// Judges a pod that is resized by the members of these groups, each with the images that the pod has: a rollout gives the new ones
    /// afterwards.
    fn resized(&self, groups: &[&Group<'_, '_>], before: &Before) -> Result<Faults, Unserved> {
        if groups.is_empty() || self.request.sub_resource.as_str() != RESIZE {
            return Ok(Faults::new());
        }
        let members = groups.iter().flat_map(|group| group.members.iter().map(move |must| (group, must)));
        let asked = members.map(|(group, must)| {
            let asked = group.asked(must.set, before);
            (must.name(), Asked { sizes: Sizes::Resized, ..asked })
        });
        self.faults(self.new, self.all.clone(), &asked.collect())
    }

    /// Judges the pod, as it is to be, by the older forms of the members of these groups.
    fn older(&self, groups: &[&Group<'_, '_>], before: &Before) -> Result<Faults, Unserved> {
        let members = groups.iter().flat_map(|group| group.members.iter().map(move |must| (group, must)));
        let asked =
            members.filter_map(|(group, must)| Some((must.name(), group.asked(must.older_form()?, before)))).collect();
        self.faults_in_older_forms(self.new, self.all.clone(), &asked)
    }

    fn faults_in_older_forms(
        &self,
        pod: &PodView<'_>,
        selected: Selected<'_>,
        asked: &BTreeMap<&str, Asked>,
    ) -> Result<Faults, Unserved> {
        if asked.is_empty() { Ok(Faults::new()) } else { self.faults(pod, self.in_older_forms(selected, asked), asked) }
    }

    /// The same sets, those that are judged in their older forms.
    fn in_older_forms<'s>(&'s self, mut all: Selected<'s>, asked: &BTreeMap<&str, Asked>) -> Selected<'s> {
        for (set, selection) in &mut all {
            if matches!(selection, Selection::Selected)
                && asked.contains_key(set.name.as_str())
                && let Some(Ok(form)) = self.snapshot.pinned.form(&set.name)
            {
                *set = form;
            }
        }
        all
    }
}
