//! Without a cluster: sample reviews, the commands that need none, and manifests as the read model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod config;
mod demo;
mod explain;
mod findings;
mod fixtures;
mod found;
mod golden;
mod help;
mod make;
mod migrate;
mod no_cluster;
mod plugins;
mod render;
mod review;
mod revisions;
mod run;
mod serve;
mod standalone;
mod terminal;
mod which_cluster;
