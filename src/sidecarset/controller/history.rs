//! Which revisions of a set are made, and which go. Pure.

use std::collections::BTreeSet;

/// A revision, as far as keeping goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Made of the set's name and the hash of its form.
    pub name: String,
    /// The greater, the newer.
    pub number: i64,
    /// The user's name for it.
    pub custom_version: Option<String>,
}

/// What is to be done so that the newest revision is the one of this name.
#[derive(Debug, PartialEq, Eq)]
pub enum HistoryStep {
    /// It is the newest already.
    Nothing,
    /// It is made, with this number.
    Create(i64),
    /// An older one becomes the newest, with this number: the set went back to it.
    Renumber(i64),
}

/// What makes the revision of this name the newest.
pub fn step(kept: &[Kept], name: &str) -> HistoryStep {
    let newest = kept.iter().max_by_key(|revision| revision.number);
    let next = newest.map_or(1, |revision| revision.number.saturating_add(1));
    if newest.is_some_and(|newest| newest.name == name) {
        HistoryStep::Nothing
    } else if kept.iter().any(|revision| revision.name == name) {
        HistoryStep::Renumber(next)
    } else {
        HistoryStep::Create(next)
    }
}

/// Names of the revisions that go, so that `limit` are left: the oldest, but never the newest nor one that a pod uses.
pub fn too_many(kept: &[Kept], limit: usize, used: &BTreeSet<String>) -> Vec<String> {
    let mut oldest: Vec<&Kept> = kept.iter().collect();
    oldest.sort_by_key(|revision| revision.number);
    let newest = oldest.pop();
    let kept = limit.max(1).saturating_sub(usize::from(newest.is_some()));
    let mut surplus = oldest.len().saturating_sub(kept);
    let mut go = Vec::new();
    for revision in oldest {
        if surplus > 0 && !used.contains(&revision.name) {
            surplus = surplus.saturating_sub(1);
            go.push(revision.name.clone());
        }
    }
    go
}

/// Names of the revisions that would go if no pod used them, one by one, as there are more than `limit`: whichever becomes free first.
pub fn kept_for_pods(kept: &[Kept], limit: usize, used: &BTreeSet<String>) -> BTreeSet<String> {
    let newest = kept.iter().max_by_key(|revision| revision.number).filter(|_| kept.len() > limit.max(1));
    let others = kept.iter().filter(|revision| newest.is_some_and(|newest| newest.number != revision.number));
    others.map(|revision| revision.name.clone()).filter(|name| used.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(revisions: &[(usize, i64)]) -> Vec<Kept> {
        let revision =
            |(name, number): &(usize, i64)| Kept { name: format!("a-{name}"), number: *number, custom_version: None };
        revisions.iter().map(revision).collect()
    }

    fn apply(kept: &mut Vec<Kept>, name: &str, limit: usize, used: &BTreeSet<String>) {
        match step(kept, name) {
            HistoryStep::Nothing => {}
            HistoryStep::Create(number) => kept.push(Kept { name: name.to_owned(), number, custom_version: None }),
            HistoryStep::Renumber(number) => {
                kept.iter_mut().filter(|it| it.name == name).for_each(|it| it.number = number);
            }
        }
        let go = too_many(kept, limit, used);
        kept.retain(|revision| !go.contains(&revision.name));
    }

    fn numbers(kept: &[Kept]) -> Vec<i64> {
        let mut numbers: Vec<i64> = kept.iter().map(|revision| revision.number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn case_104_each_form_is_a_revision_and_an_older_one_becomes_the_newest_again() {
        let (mut kept, none) = (Vec::new(), BTreeSet::new());
        for (form, expected) in [("a-1", vec![1]), ("a-2", vec![1, 2]), ("a-2", vec![1, 2]), ("a-1", vec![2, 3])] {
            apply(&mut kept, form, 10, &none);
            assert_eq!(numbers(&kept), expected, "{form}");
        }
        for form in 0..100 {
            apply(&mut kept, &format!("a-of-many-{form}"), 10, &none);
        }
        assert_eq!(kept.len(), 10);
    }

    #[test]
    fn case_105_revisions_in_use_and_the_newest_stay() {
        let fifteen = kept(&(1..=15).map(|n| (n, i64::try_from(n).unwrap())).collect::<Vec<_>>());
        let used = |n: usize| -> BTreeSet<String> { (1..=n).map(|n| format!("a-{n}")).collect() };
        let left = |used: &BTreeSet<String>| {
            let mut left = fifteen.clone();
            apply(&mut left, "a-15", 10, used);
            numbers(&left)
        };
        for (in_use, expected) in [(0, 10), (9, 10), (10, 11), (11, 12), (14, 15), (15, 15)] {
            assert_eq!(left(&used(in_use)).len(), expected, "{in_use}");
        }
        assert_eq!(left(&used(8)), [1, 2, 3, 4, 5, 6, 7, 8, 14, 15]);
        assert_eq!(too_many(&fifteen, 0, &BTreeSet::new()).len(), 14, "the newest always stays");
    }

    #[test]
    fn beyond_the_limit_any_revision_that_becomes_free_goes() {
        let fifteen = kept(&(1..=15).map(|n| (n, i64::try_from(n).unwrap())).collect::<Vec<_>>());
        let used = |n: usize| -> BTreeSet<String> { (1..=n).map(|n| format!("a-{n}")).collect() };
        assert_eq!(kept_for_pods(&fifteen, 10, &used(14)), used(14));
        assert_eq!(kept_for_pods(&fifteen, 10, &used(15)), used(14), "the newest stays in any case");
        assert_eq!(kept_for_pods(&fifteen, 15, &used(15)), used(0), "there are no more than the limit");
        // When the fourteenth becomes free, it is the one that goes, though it is not among the five oldest.
        assert_eq!(too_many(&fifteen, 10, &used(13)), ["a-14"]);
    }

    #[test]
    fn case_106_fifteen_updates_and_back_to_one_of_them() {
        let (mut kept, none) = (Vec::new(), BTreeSet::new());
        for form in 1..=15 {
            apply(&mut kept, &format!("a-{form}"), 10, &none);
        }
        assert_eq!(numbers(&kept), (6..=15).collect::<Vec<_>>());
        apply(&mut kept, "a-12", 10, &none);
        assert_eq!(numbers(&kept), [6, 7, 8, 9, 10, 11, 13, 14, 15, 16]);
    }

    #[test]
    fn case_107_going_back_keeps_the_order_of_the_others() {
        for back in 1..=10 {
            let mut ten = kept(&(1..=10).map(|n| (n, i64::try_from(n).unwrap())).collect::<Vec<_>>());
            apply(&mut ten, &format!("a-{back}"), 10, &BTreeSet::new());
            ten.sort_by_key(|revision| revision.number);
            let mut expected: Vec<String> = (1..=10).filter(|n| *n != back).map(|n| format!("a-{n}")).collect();
            expected.push(format!("a-{back}"));
            assert_eq!(ten.into_iter().map(|revision| revision.name).collect::<Vec<_>>(), expected, "{back}");
        }
    }
}
