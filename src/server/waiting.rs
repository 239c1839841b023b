//! Reviews that wait for answers to their questions: how many, and how much of the memory for bodies they may hold meanwhile.
//!
//! An image backend that hangs holds every review that asks it until the review's time is over. Such reviews must leave room for all
//! others.

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::{Question, Unserved};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body::WholeBody;
use super::body_memory::BodyMemory;
use super::shares::Shares;

/// Reviews that wait at one time for one image backend, and as many for everything else.
const REVIEWS: usize = 512;
/// The part of the memory for bodies that each of both may hold.
const PART: usize = 4;
/// One image backend may hold one of so many parts of the room for all.
const SHARES: usize = 2;

/// Room for reviews that wait.
#[derive(Debug)]
pub struct Waiting {
    images: WaitingRoom,
    others: WaitingRoom,
    backends: Shares<WaitingRoom>,
}

/// So many places, and so much memory.
#[derive(Debug)]
struct WaitingRoom {
    turns: Arc<Semaphore>,
    reviews: usize,
    memory: BodyMemory,
    bytes: usize,
}

impl WaitingRoom {
    fn new(reviews: usize, bytes: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(reviews)), reviews, memory: BodyMemory::new(bytes), bytes }
    }

    fn share(&self) -> Self {
        Self::new(self.reviews / SHARES, self.bytes / SHARES)
    }

    /// A review that is larger than the room has all of it.
    fn enter(&self, bytes: usize) -> Result<HeldTurn, Unserved> {
        let turn = Arc::clone(&self.turns).try_acquire_owned().map_err(|_| Unserved::Overloaded)?;
        Ok(HeldTurn { _turn: turn, _memory: self.memory.take(bytes.min(self.bytes))? })
    }
}

#[derive(Debug)]
struct HeldTurn {
    _turn: OwnedSemaphorePermit,
    _memory: Option<OwnedSemaphorePermit>,
}

/// The place of a review that waits.
#[derive(Debug)]
pub struct Place {
    _held: Option<HeldTurn>,
    _of_backends: Vec<(HeldTurn, Arc<WaitingRoom>)>,
}

impl Waiting {
    /// Room in a process with so many bytes for bodies, of which half may wait.
    pub fn new(body_memory: usize) -> Self {
        Self::with(REVIEWS, body_memory / PART)
    }

    fn with(reviews: usize, bytes: usize) -> Self {
        Self {
            images: WaitingRoom::new(SHARES * reviews, bytes),
            others: WaitingRoom::new(reviews, bytes),
            backends: Shares::default(),
        }
    }

    /// A place for a review with these questions. Questions that the process itself answers need none.
    ///
    /// # Errors
    /// [`Unserved::Overloaded`] when there is none.
    pub fn enter(&self, body: &WholeBody, questions: &[Question]) -> Result<Place, Unserved> {
        if questions.iter().all(|question| matches!(question, Question::Tokens(_))) {
            return Ok(Place { _held: None, _of_backends: Vec::new() });
        }
        // A question is there as it was asked, and as it is sent.
        let asked: usize = questions.iter().map(Question::size).sum();
        let bytes = body.bytes.len() + 2 * asked;
        let backends: BTreeSet<&str> = questions.iter().filter_map(backend).collect();
        let room = if backends.is_empty() { &self.others } else { &self.images };
        let held = room.enter(bytes)?;
        let of_backend = |name: &str| {
            let room = self.backends.of(name, || self.images.share());
            Ok((room.enter(bytes)?, room))
        };
        Ok(Place { _held: Some(held), _of_backends: backends.into_iter().map(of_backend).collect::<Result<_, _>>()? })
    }
}

/// The backend that answers a question about images.
fn backend(question: &Question) -> Option<&str> {
    match question {
        Question::Images(images) => Some(&images.backend.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use admission::question::{Access, ImageBackend, Images};
    use bytes::Bytes;

    use super::*;

    fn about_images(count: usize) -> Vec<Question> {
        by_backend("a", count)
    }

    fn by_backend(name: &str, count: usize) -> Vec<Question> {
        let backend = ImageBackend { name: name.to_owned(), ..ImageBackend::default() };
        let images = Images { backend, images: vec![String::new(); count], ..Images::default() };
        vec![Question::Images(Arc::new(images))]
    }

    fn body(bytes: usize) -> WholeBody {
        WholeBody::of(Bytes::from(vec![b' '; bytes]))
    }

    #[test]
    fn reviews_that_wait_for_a_backend_leave_places_for_those_of_others_and_for_all_others() {
        let waiting = Waiting::with(2, 1 << 20);
        let of_images: Vec<_> = (0..2).map(|_| waiting.enter(&body(10), &about_images(1)).unwrap()).collect();
        assert_eq!(waiting.enter(&body(10), &about_images(1)).err(), Some(Unserved::Overloaded));
        let of_another: Vec<_> = (0..2).map(|_| waiting.enter(&body(10), &by_backend("b", 1)).unwrap()).collect();
        assert_eq!(waiting.enter(&body(10), &by_backend("c", 1)).err(), Some(Unserved::Overloaded));
        let access = [Question::Access(Access::default())];
        assert!(waiting.enter(&body(10), &access).is_ok());
        drop((of_images, of_another));
        assert!(waiting.enter(&body(10), &about_images(1)).is_ok());
    }

    #[test]
    fn the_memory_of_reviews_that_wait_for_a_backend_is_not_that_of_others() {
        let waiting = Waiting::with(100, 400_000);
        let of_images: Vec<_> = (0..100).map_while(|_| waiting.enter(&body(50_000), &about_images(1)).ok()).collect();
        assert!((2..4).contains(&of_images.len()), "{}", of_images.len());
        assert!(waiting.enter(&body(50_000), &by_backend("b", 1)).is_ok(), "another backend");
        assert!(waiting.enter(&body(300_000), &[Question::Access(Access::default())]).is_ok(), "a right");
    }

    #[test]
    fn tokens_of_rate_limits_need_no_place() {
        let waiting = Waiting::with(1, 1);
        let access = [Question::Access(Access::default())];
        let _all = waiting.enter(&body(10), &access).unwrap();
        assert_eq!(waiting.enter(&body(10), &access).err(), Some(Unserved::Overloaded));
        assert!(waiting.enter(&body(10), &[Question::Tokens(Vec::new())]).is_ok());
    }

    #[test]
    fn a_review_that_is_larger_than_the_room_has_all_of_it() {
        let waiting = Waiting::with(10, 8192);
        let all = waiting.enter(&body(1 << 20), &about_images(1)).unwrap();
        assert_eq!(waiting.enter(&body(4096), &about_images(1)).err(), Some(Unserved::Overloaded));
        drop(all);
        assert!(waiting.enter(&body(4096), &about_images(1)).is_ok());
    }

    #[test]
    fn the_number_is_documented() {
        let page = include_str!("../../docs/security.md");
        let text = format!(
            "At one time {REVIEWS} of them wait for one image backend, {} for all, and {REVIEWS} for everything else.",
            SHARES * REVIEWS
        );
        assert!(page.contains(&text), "docs/security.md does not say: {text}");
        let text = "hold at most half of the memory for bodies:\na quarter is for image backends, of which one backend has at most \
                    half, and a quarter for everything else.";
        assert!(page.contains(text), "docs/security.md does not say: {text}");
        assert_eq!((PART, SHARES), (4, 2));
    }

    #[test]
    fn what_waits_is_charged_with_its_body_and_with_what_is_asked() {
        for (bytes, images) in [(40_000, 1), (10, 1000)] {
            let waiting = Waiting::with(100, 200_000);
            let places: Vec<_> =
                (0..10).map_while(|_| waiting.enter(&body(bytes), &about_images(images)).ok()).collect();
            assert!((1..4).contains(&places.len()), "{}", places.len());
            drop(places);
            assert!(waiting.enter(&body(bytes), &about_images(images)).is_ok());
        }
    }
}
