//! Whether anybody still waits for an answer.

use std::fmt;

use crate::unserved::Unserved;

/// Whether anybody still waits for an answer: a question that the server hands in, so that a decision knows no clock. A decision
/// whose work grows with what is in the cluster asks it as it goes on.
///
/// ```
/// use admission::Deadline;
/// let is_over = || true;
/// assert!(Deadline::until(&is_over).check().is_err());
/// assert!(Deadline::default().check().is_ok());
/// ```
#[derive(Clone, Copy, Default)]
pub struct Deadline<'a>(Option<&'a dyn Fn() -> bool>);

impl<'a> Deadline<'a> {
    /// Until this says that it is over.
    pub const fn until(is_over: &'a dyn Fn() -> bool) -> Self {
        Self(Some(is_over))
    }

    /// Whether no time is left. One without an end is never over.
    pub fn is_over(self) -> bool {
        self.0.is_some_and(|is_over| is_over())
    }

    /// Goes on while it is not over.
    ///
    /// # Errors
    /// [`Unserved::OutOfTime`].
    pub fn check(self) -> Result<(), Unserved> {
        if self.is_over() { Err(Unserved::OutOfTime) } else { Ok(()) }
    }
}

impl fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Deadline(limited)" } else { "Deadline" })
    }
}
