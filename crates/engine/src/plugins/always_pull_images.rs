//! `AlwaysPullImages`: images are pulled at each start, so that a node's cache gives no pod an image that it has no right to.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use admission::field::quote;

use super::change::{List, PodChange};
use super::pod_facts::{ALWAYS, Container, PodFacts, Spec};
use super::{forbidden, shortened};

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlwaysPullImages {
    /// Images that are left alone.
    pub exempt: Exempt,
    /// Whether ephemeral containers that are added to a pod are covered.
    pub ephemeral: bool,
}

/// A pattern in which `*` is any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextGlob(Vec<String>);

impl TextGlob {
    /// The pattern.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.split('*').map(str::to_owned).collect())
    }

    /// Whether there can be a text that is like both patterns. Exact where each has one `*` at most; of others only the ends are
    /// compared.
    pub fn may_overlap(&self, other: &Self) -> bool {
        match (self.0.as_slice(), other.0.as_slice()) {
            ([whole], _) => other.matches(whole),
            (_, [whole]) => self.matches(whole),
            ([first, .., last], [other_first, .., other_last]) => {
                (first.starts_with(other_first.as_str()) || other_first.starts_with(first.as_str()))
                    && (last.ends_with(other_last.as_str()) || other_last.ends_with(last.as_str()))
            }
            _ => false,
        }
    }

    /// Whether the whole text is like the pattern.
    pub fn matches(&self, text: &str) -> bool {
        super::work::done(text.len());
        let [first, middle @ .., last] = self.0.as_slice() else {
            return self.0.first().is_some_and(|whole| whole == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        for part in middle {
            let Some((_, after)) = rest.split_once(part.as_str()) else { return false };
            rest = after;
        }
        rest.ends_with(last.as_str())
    }
}

/// Images that are left alone: names, and patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exempt {
    names: BTreeSet<String>,
    patterns: Vec<TextGlob>,
}

impl Exempt {
    /// Those of a list.
    pub fn of(list: &[String]) -> Self {
        let (patterns, names): (Vec<&String>, Vec<&String>) = list.iter().partition(|text| text.contains('*'));
        Self {
            names: names.into_iter().cloned().collect(),
            patterns: patterns.into_iter().map(|text| TextGlob::new(text)).collect(),
        }
    }

    fn covers(&self, image: &str) -> bool {
        self.names.contains(image) || self.patterns.iter().any(|glob| glob.matches(image))
    }
}

/// What is known of the images of one pod: a pod may have the same one in very many containers.
struct Images<'e, 'i> {
    exempt: &'e Exempt,
    known: RefCell<HashMap<&'i str, bool>>,
}

impl<'i> Images<'_, 'i> {
    /// Whether the image is to be pulled, and is not.
    fn misses(&self, image: &'i str, policy: &str) -> bool {
        if policy == ALWAYS {
            return false;
        }
        if self.exempt.patterns.is_empty() {
            return !self.exempt.names.contains(image);
        }
        !*self.known.borrow_mut().entry(image).or_insert_with(|| self.exempt.covers(image))
    }
}

impl AlwaysPullImages {
    fn images<'i>(&self) -> Images<'_, 'i> {
        Images { exempt: &self.exempt, known: RefCell::default() }
    }

    /// What is to be changed in a new pod.
    pub fn change<'a>(&self, spec: &Spec<'a>) -> PodChange<'a> {
        let images = self.images();
        let containers = spec.containers().filter(|(_, _, one)| images.misses(&one.image, &one.image_pull_policy));
        let pulled = containers.map(|(list, index, _)| (list, index)).collect();
        let pulled_volumes = missing_volumes(&images, spec).map(|(index, _)| index).collect();
        PodChange { pulled, pulled_volumes, ..PodChange::default() }
    }

    /// Why a pod is refused as it is.
    ///
    /// # Errors
    /// Each field, in the API server's words.
    pub fn check(&self, spec: &Spec<'_>, name: &str) -> Result<(), String> {
        let images = self.images();
        let containers = spec.containers().filter(|(_, _, one)| images.misses(&one.image, &one.image_pull_policy));
        let containers = containers.map(|(list, index, one)| {
            fault(&format!("{}[{index}].imagePullPolicy", list.field()), &one.image_pull_policy)
        });
        let volumes = missing_volumes(&images, spec);
        let volumes = volumes.map(|(index, policy)| fault(&format!("volumes[{index}].image.pullPolicy"), policy));
        aggregate(containers.chain(volumes), name)
    }

    /// Why a change of a pod is refused. One that brings no new image is not checked.
    ///
    /// # Errors
    /// Each field, in the API server's words, and what to do.
    pub fn check_update(&self, old: &PodFacts<'_>, new: &Spec<'_>, name: &str) -> Result<(), String> {
        let images: HashSet<&str> =
            old.spec.iter().flat_map(Spec::containers).map(|(_, _, container)| container.image.as_str()).collect();
        if new.containers().all(|(_, _, container)| images.contains(container.image.as_str())) {
            return Ok(());
        }
        self.check(new, name)
            .map_err(|faults| format!("{faults}; the pull policy of a pod cannot be changed: recreate the pod"))
    }

    fn added<'s, 'a>(
        &'s self,
        old: &'s PodFacts<'_>,
        new: &'s Spec<'a>,
    ) -> impl Iterator<Item = (usize, &'s Container<'a>)> {
        let before: HashSet<&str> = old
            .spec
            .iter()
            .flat_map(|spec| spec.list(List::Ephemeral))
            .map(|container| container.name.as_str())
            .collect();
        let images = self.images();
        new.list(List::Ephemeral).iter().enumerate().filter(move |(_, container)| {
            !before.contains(container.name.as_str()) && images.misses(&container.image, &container.image_pull_policy)
        })
    }

    /// What is to be changed in ephemeral containers that a pod is given.
    pub fn change_ephemeral<'a>(&self, old: &PodFacts<'_>, new: &Spec<'a>) -> PodChange<'a> {
        let pulled = self.added(old, new).map(|(index, _)| (List::Ephemeral, index)).collect();
        PodChange { pulled, ..PodChange::default() }
    }

    /// Why ephemeral containers that a pod is given are refused.
    ///
    /// # Errors
    /// Each field, in the API server's words.
    pub fn check_ephemeral(&self, old: &PodFacts<'_>, new: &Spec<'_>, name: &str) -> Result<(), String> {
        let faults = self.added(old, new).map(|(index, container)| {
            fault(&format!("ephemeralContainers[{index}].imagePullPolicy"), &container.image_pull_policy)
        });
        aggregate(faults, name)
    }
}

fn missing_volumes<'s>(images: &Images<'_, 's>, spec: &'s Spec<'_>) -> impl Iterator<Item = (usize, &'s str)> {
    spec.volumes().iter().enumerate().filter_map(|(index, volume)| {
        let image = volume.image.as_ref()?;
        images.misses(&image.reference, &image.pull_policy).then_some((index, image.pull_policy.as_str()))
    })
}

/// Faults that a refusal names; a pod may have very many.
const TOLD: usize = 64;

fn fault(field: &str, policy: &str) -> String {
    format!("spec.{field}: Unsupported value: {}: supported values: {}", quote(shortened(policy)), quote(ALWAYS))
}

/// As `NewAggregate` of k8s.io/apimachinery/pkg/util/errors has them.
fn aggregate(faults: impl Iterator<Item = String>, name: &str) -> Result<(), String> {
    let mut left_out = 0_usize;
    let mut told: Vec<String> = Vec::new();
    for fault in faults {
        if told.len() < TOLD {
            told.push(forbidden("pods", name, &fault));
        } else {
            left_out += 1;
        }
    }
    let more = if left_out > 0 { format!(", and {left_out} more") } else { String::new() };
    match told.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}{more}]", several.join(", "))),
    }
}
