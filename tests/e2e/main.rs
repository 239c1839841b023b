//! `outrider serve` on a real API server, as a user sees it: kubectl on one side, the binary on the other.
//!
//! Needs etcd and Kubernetes binaries (built on first use), therefore ignored by default: `make test-cluster` runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod additions;
mod alerts;
mod all_kinds;
mod bench;
#[path = "../server/beside.rs"]
mod beside;
mod certificates;
#[path = "../server/client.rs"]
#[allow(dead_code, reason = "the tests of the server see more of it")]
mod client;
#[path = "../chart/cluster_objects.rs"]
#[allow(dead_code, reason = "the tests of the chart bring more into a cluster")]
mod cluster_objects;
mod collector;
mod collector_count;
mod collector_experiment;
mod controller;
mod counts;
mod cronjob;
mod cronjob_flood;
mod cronjob_hostile;
mod cronjob_process;
mod deleted_sets;
mod differential;
mod evasions;
mod events;
mod explain;
mod forged_pods;
mod gitops;
mod guard;
mod hazards;
#[path = "../chart/helm.rs"]
#[allow(dead_code, reason = "the tests of the chart read what helm renders")]
mod helm;
mod helm_upgrade;
#[allow(dead_code, reason = "shared with the tests of availability, which store all of it")]
mod hostile_objects;
mod hot_upgrade;
mod image_policy;
#[path = "../server/image_reviewer.rs"]
#[allow(dead_code, reason = "the tests of the server have more of it do more")]
mod image_reviewer;
mod injection;
mod left_alone;
mod limit_ranges;
mod migration;
mod narrowing;
mod older_revisions;
mod on_demand;
mod other_webhooks;
mod plugins;
mod plugins_accounts;
mod plugins_asking;
mod plugins_classes;
mod plugins_nodes;
mod plugins_pod_security;
mod plugins_quota;
mod plugins_storage;
mod plugins_topology;
mod process;
mod project_config;
#[path = "../chart/promtool.rs"]
mod promtool;
mod recreate;
mod refusals;
mod refusing_namespaces;
mod replicas;
mod resize;
mod revisions;
mod rollout;
mod rollout_cases;
mod rollout_strategies;
mod room;
mod scaled_to_zero;
mod scrapers;
mod security_profiles;
mod sets;
mod stored_attacks;
mod takes;
mod toy_kind;
mod toy_kinds;
mod toy_stages;
mod toy_webhook;
mod unavailable_pods;
mod verify;
mod version_skew;
mod ways_out;
mod workshop;
