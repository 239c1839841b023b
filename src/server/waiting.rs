//! Reviews that wait for answers to their questions: how many, and how much of the memory for bodies they may hold meanwhile.
//!
//! An image backend that hangs holds every review that asks it until the review's time is over. Such reviews must leave room for all
//! others.

use std::sync::Arc;

use admission::{Question, Unserved};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body::{BodyMemory, WholeBody};

/// Reviews that wait at one time for image backends, and as many for everything else.
const REVIEWS: usize = 512;

/// Room for reviews that wait.
#[derive(Debug)]
pub struct Waiting {
    images: Arc<Semaphore>,
    others: Arc<Semaphore>,
    memory: BodyMemory,
}

/// The place of a review that waits.
#[derive(Debug)]
pub struct Place {
    _turn: OwnedSemaphorePermit,
    _memory: Option<OwnedSemaphorePermit>,
}

impl Waiting {
    /// Room in a process with so many bytes for bodies, of which half may wait.
    pub fn new(body_memory: usize) -> Self {
        Self::with(REVIEWS, body_memory / 2)
    }

    fn with(reviews: usize, bytes: usize) -> Self {
        let semaphore = || Arc::new(Semaphore::new(reviews));
        Self { images: semaphore(), others: semaphore(), memory: BodyMemory::new(bytes) }
    }

    /// A place for a review with these questions.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when there is none.
    pub fn enter(&self, body: &WholeBody, questions: &[Question]) -> Result<Place, Unserved> {
        let asks_for_images = questions.iter().any(|question| matches!(question, Question::Images(_)));
        let turns = if asks_for_images { &self.images } else { &self.others };
        let turn = Arc::clone(turns).try_acquire_owned().map_err(|_| Unserved::Overloaded)?;
        // A question is there as it was asked, and as it is sent.
        let asked: usize = questions.iter().map(Question::size).sum();
        Ok(Place { _turn: turn, _memory: self.memory.take(body.bytes.len() + 2 * asked)? })
    }
}

#[cfg(test)]
mod tests {
    use admission::question::{Access, Images};
    use bytes::Bytes;

    use super::*;

    fn about_images(count: usize) -> Vec<Question> {
        vec![Question::Images(Arc::new(Images { images: vec![String::new(); count], ..Images::default() }))]
    }

    fn body(bytes: usize) -> WholeBody {
        WholeBody::of(Bytes::from(vec![b' '; bytes]))
    }

    #[test]
    fn reviews_that_wait_for_a_backend_leave_places_for_all_others() {
        let waiting = Waiting::with(2, 1 << 20);
        let of_images: Vec<_> = (0..2).map(|_| waiting.enter(&body(10), &about_images(1)).unwrap()).collect();
        assert_eq!(waiting.enter(&body(10), &about_images(1)).err(), Some(Unserved::Overloaded));
        let access = [Question::Access(Access::default())];
        assert!(waiting.enter(&body(10), &access).is_ok());
        drop(of_images);
        assert!(waiting.enter(&body(10), &about_images(1)).is_ok());
    }

    #[test]
    fn the_number_is_documented() {
        let page = include_str!("../../docs/security.md");
        let text = format!("At one time {REVIEWS} of them wait for image backends, and {REVIEWS} for everything else.");
        assert!(page.contains(&text), "docs/security.md does not say: {text}");
    }

    #[test]
    fn what_waits_is_charged_with_its_body_and_with_what_is_asked() {
        for (bytes, images) in [(40_000, 1), (10, 1000)] {
            let waiting = Waiting::with(100, 100_000);
            let places: Vec<_> =
                (0..10).map_while(|_| waiting.enter(&body(bytes), &about_images(images)).ok()).collect();
            assert!((1..4).contains(&places.len()), "{}", places.len());
            drop(places);
            assert!(waiting.enter(&body(bytes), &about_images(images)).is_ok());
        }
    }
}
