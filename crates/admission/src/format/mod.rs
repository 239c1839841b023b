//! The small languages inside Kubernetes objects: names, labels, selectors, quantities, percentages.
//!
//! Each check decides exactly as the API server of Kubernetes 1.36 and says the same when it refuses. Checks of
//! a text return the list of what is wrong with it, empty when nothing is; wrap each message into
//! [`Error::invalid`](crate::field::Error::invalid).

pub mod int_or_percent;
pub mod metadata;
pub mod names;
pub mod quantity;
pub mod selector;

pub use int_or_percent::IntOrString;
pub use quantity::Quantity;
pub use selector::{LabelSelector, Selector};
