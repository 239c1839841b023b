//! Hot upgrades of a running pod: of a pair of containers one works, and the other gets the new image. Once that one serves, it takes
//! over, and the first gets the empty image and waits for the next upgrade.
//!
//! How far a pair is follows from the pod alone: from its images, and from the annotation that names the one that works. Anybody may
//! write that annotation; what cannot be right in it counts for nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::pod::in_place::{Change, NewImage};
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::hot_upgrade::{Pair, VERSION_ALT_PREFIX, VERSION_PREFIX, WORKING_ANNOTATION, names};
use crate::sidecarset::injection::{List, RECORD_MAX_BYTES};
use crate::sidecarset::sameness::{CompiledAllowedChanges, is_image_of};

/// The version of a container that waits.
const NO_VERSION: &str = "0";
/// The version of the one that works in a new pod.
const FIRST_VERSION: u64 = 1;

/// What the pod's images and annotations say of pairs, and what is to be changed of them.
pub(super) struct HotUpgrade<'v> {
    annotations: Option<&'v Map<String, Value>>,
    containers: BTreeMap<&'v str, (&'static str, &'v str)>,
    working: Map<String, Value>,
    is_renamed: bool,
    change: Change,
}

/// One of a pair: its list and its image.
struct One<'v> {
    name: String,
    list: &'static str,
    image: &'v str,
}

impl One<'_> {
    fn runs(&self, image: &str, allowed: &CompiledAllowedChanges) -> bool {
        is_image_of(image, self.image, allowed)
    }
}

impl<'v> HotUpgrade<'v> {
    /// Of a pod.
    pub fn of(pod: &'v Value) -> Self {
        let annotations = pod.get("metadata").and_then(|metadata| metadata.get("annotations")?.as_object());
        let text = |key: &str| annotations?.get(key)?.as_str();
        // A longer one is not ours.
        let working = text(WORKING_ANNOTATION).filter(|text| text.len() <= RECORD_MAX_BYTES);
        let working = working.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let lists = [List::InitContainers, List::Containers].into_iter().filter_map(|list| {
            let containers = pod.get("spec")?.get(list.field())?.as_array()?;
            Some(containers.iter().filter_map(move |container| {
                let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
                Some((container.get("name")?.as_str()?, (list.field(), image)))
            }))
        });
        let containers = lists.flatten().collect();
        Self { annotations, containers, working, is_renamed: false, change: Change::default() }
    }

    /// The next step of every pair towards the form of the set. A container that was started and has not taken over yet is in
    /// [`Change::hand_over`].
    pub fn begun(mut self, set: &CompiledSet) -> Change {
        for pair in &set.pairs {
            let Some((works, waits)) = self.pair(pair, set) else { continue };
            if works.runs(&pair.image, &set.allowed) {
                // It has the image, or got it back: the other one is not needed any more.
                if !waits.runs(&pair.empty_image, &set.allowed) {
                    self.stop(&works, &waits, pair);
                }
                continue;
            }
            if !waits.runs(&pair.image, &set.allowed) {
                self.start(&works, &waits, pair);
            }
            self.names_working(pair, &works.name);
            self.change.hand_over.insert(waits.name);
        }
        self.changed()
    }

    /// Lets the containers that were `started`, and serve by now, take over.
    pub fn handed_over(mut self, set: &CompiledSet, started: &BTreeSet<String>) -> Change {
        for pair in &set.pairs {
            let Some((works, waits)) = self.pair(pair, set) else { continue };
            let (new, old) = if started.contains(&works.name) { (works, waits) } else { (waits, works) };
            if !started.contains(&new.name) || new.runs(&pair.empty_image, &set.allowed) {
                continue;
            }
            if !old.runs(&pair.empty_image, &set.allowed) {
                self.stop(&new, &old, pair);
            }
            self.names_working(pair, &new.name);
        }
        self.changed()
    }

    /// The one that works, and the one that waits.
    fn pair(&self, pair: &Pair, set: &CompiledSet) -> Option<(One<'v>, One<'v>)> {
        let [first, second] = names(&pair.name);
        let one = |name: String| {
            let (list, image) = *self.containers.get(name.as_str())?;
            Some(One { name, list, image })
        };
        let (first, second) = (one(first)?, one(second)?);
        let is_second = match self.working.get(&*pair.name).and_then(Value::as_str) {
            Some(name) if name == first.name => false,
            Some(name) if name == second.name => true,
            // The annotation does not name it, the images do. One that is not idle has the new image where it was just started.
            _ => {
                let have = |image: &str| [&first, &second].map(|one| one.runs(image, &set.allowed));
                let ([is_first_idle, is_second_idle], is_new) = (have(&pair.empty_image), have(&pair.image));
                if is_first_idle == is_second_idle { is_new == [true, false] } else { is_first_idle }
            }
        };
        Some(if is_second { (second, first) } else { (first, second) })
    }

    fn start(&mut self, works: &One<'_>, waits: &One<'_>, pair: &Pair) {
        let [working, waiting] = [works, waits].map(|one| self.version(&one.name));
        // A container that hands over knows by it that the other one is newer.
        let next = working.unwrap_or(FIRST_VERSION).max(waiting.unwrap_or_default()).saturating_add(1).to_string();
        let working = working.unwrap_or(FIRST_VERSION).to_string();
        self.set(VERSION_PREFIX, &waits.name, &next);
        self.set(VERSION_ALT_PREFIX, &waits.name, &working);
        self.set(VERSION_ALT_PREFIX, &works.name, &next);
        self.run(waits, &pair.image);
    }

    fn stop(&mut self, works: &One<'_>, waits: &One<'_>, pair: &Pair) {
        self.set(VERSION_PREFIX, &waits.name, NO_VERSION);
        self.set(VERSION_ALT_PREFIX, &works.name, NO_VERSION);
        self.run(waits, &pair.empty_image);
    }

    fn run(&mut self, one: &One<'_>, image: &str) {
        self.change.images.push(NewImage { list: one.list, container: one.name.clone(), image: image.to_owned() });
    }

    fn version(&self, name: &str) -> Option<u64> {
        self.annotations?.get(&format!("{VERSION_PREFIX}{name}"))?.as_str()?.parse().ok()
    }

    fn set(&mut self, prefix: &str, name: &str, value: &str) {
        let key = format!("{prefix}{name}");
        let before = self.annotations.and_then(|all| all.get(&key)?.as_str());
        if before != Some(value) {
            self.change.annotations.push((key, value.to_owned()));
        }
    }

    fn names_working(&mut self, pair: &Pair, name: &str) {
        let before = self.working.insert(pair.name.to_string(), name.into());
        self.is_renamed |= before.is_none_or(|before| before != name);
    }

    fn changed(mut self) -> Change {
        if self.is_renamed {
            let working = Value::Object(self.working).to_string();
            self.change.annotations.push((WORKING_ANNOTATION.to_owned(), working));
        }
        self.change
    }
}
