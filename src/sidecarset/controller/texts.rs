//! Texts that many pods have alike, each of them in memory once.

use std::collections::HashSet;
use std::sync::Arc;

/// Before the first search for texts that no pod has any more.
const FIRST_SWEEP: usize = 1024;

/// The labels of the pods of one `ReplicaSet` are the same, and so are their records of sets.
#[derive(Debug)]
pub struct Texts {
    known: HashSet<Arc<str>>,
    sweep_at: usize,
}

impl Default for Texts {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: FIRST_SWEEP }
    }
}

impl Texts {
    /// The text as it is kept. Texts that no pod has any more go each time that there are twice as many.
    pub fn shared(&mut self, text: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = self.known.len().saturating_mul(2).max(FIRST_SWEEP);
        }
        self.known.insert(Arc::clone(text));
        Arc::clone(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_and_goes_with_the_last_who_has_it() {
        let mut texts = Texts::default();
        let first = texts.shared(&Arc::from("a"));
        assert!(Arc::ptr_eq(&first, &texts.shared(&Arc::from("a"))));
        let kept: Vec<Arc<str>> = (0..10).map(|n| texts.shared(&Arc::from(n.to_string()))).collect();
        for n in 0..10 * FIRST_SWEEP {
            texts.shared(&Arc::from(format!("passing {n}")));
        }
        assert!(texts.known.len() <= FIRST_SWEEP, "{}", texts.known.len());
        assert!(kept.iter().chain([&first]).all(|text| texts.known.contains(text)));
    }
}
