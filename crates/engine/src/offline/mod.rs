//! What a manifest goes through without a cluster: the same chain of webhooks that the API server calls.

pub mod admit;
pub mod manifest;
pub mod model;
