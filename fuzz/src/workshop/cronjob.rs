//! The modules of `CronJob` that need no client.

#![allow(dead_code, unused_imports)]

/// What conversion reads of the type, which is made of types of the Kubernetes API.
pub mod api {
    pub const GROUP: &str = concat!("batch.", api_domain!());
    pub const VERSION: &str = "v1";
    pub const KIND: &str = "CronJob";
}
#[path = "../../../src/workshop/cronjob/conversion/mod.rs"]
pub mod conversion;
#[path = "../../../src/workshop/cronjob/schedule/mod.rs"]
pub mod schedule;
#[path = "../../../src/workshop/cronjob/v2.rs"]
pub mod v2;
#[path = "../../../src/workshop/cronjob/vocabulary.rs"]
pub mod vocabulary;
