//! `AlwaysPullImages`: images are pulled at each start, so that a node's cache gives no pod an image that it has no right to.

use std::collections::HashSet;

use admission::field::quote;

use super::change::{Change, List};
use super::pod_facts::{ALWAYS, Container, PodFacts, Spec};
use super::{forbidden, shortened};

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlwaysPullImages {
    /// Images that are left alone.
    pub exempt: Vec<Glob>,
    /// Whether ephemeral containers that are added to a pod are covered.
    pub ephemeral: bool,
}

/// A pattern in which `*` is any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<String>);

impl Glob {
    /// The pattern.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.split('*').map(str::to_owned).collect())
    }

    /// Whether the whole text is like the pattern.
    pub fn matches(&self, text: &str) -> bool {
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

impl AlwaysPullImages {
    fn is_exempt(&self, image: &str) -> bool {
        self.exempt.iter().any(|glob| glob.matches(image))
    }

    fn misses(&self, image: &str, policy: &str) -> bool {
        policy != ALWAYS && !self.is_exempt(image)
    }

    /// What is to be changed in a new pod.
    pub fn change<'a>(&self, spec: &Spec<'a>) -> Change<'a> {
        let containers = spec.containers().filter(|(_, _, one)| self.misses(&one.image, &one.image_pull_policy));
        let pulled = containers.map(|(list, index, _)| (list, index)).collect();
        Change {
            pulled,
            pulled_volumes: self.missing_volumes(spec).map(|(index, _)| index).collect(),
            ..Change::default()
        }
    }

    fn missing_volumes<'s>(&self, spec: &'s Spec<'_>) -> impl Iterator<Item = (usize, &'s str)> {
        spec.volumes().iter().enumerate().filter_map(|(index, volume)| {
            let image = volume.image.as_ref()?;
            self.misses(&image.reference, &image.pull_policy).then_some((index, image.pull_policy.as_str()))
        })
    }

    /// Why a pod is refused as it is.
    ///
    /// # Errors
    /// Each field, in the API server's words.
    pub fn check(&self, spec: &Spec<'_>, name: &str) -> Result<(), String> {
        let containers = spec.containers().filter(|(_, _, one)| self.misses(&one.image, &one.image_pull_policy));
        let containers = containers.map(|(list, index, one)| {
            fault(&format!("{}[{index}].imagePullPolicy", list.field()), &one.image_pull_policy)
        });
        let volumes = self.missing_volumes(spec);
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
        new.list(List::Ephemeral).iter().enumerate().filter(move |(_, container)| {
            !before.contains(container.name.as_str()) && self.misses(&container.image, &container.image_pull_policy)
        })
    }

    /// What is to be changed in ephemeral containers that a pod is given.
    pub fn change_ephemeral<'a>(&self, old: &PodFacts<'_>, new: &Spec<'a>) -> Change<'a> {
        let pulled = self.added(old, new).map(|(index, _)| (List::Ephemeral, index)).collect();
        Change { pulled, ..Change::default() }
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
