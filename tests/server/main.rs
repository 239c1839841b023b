//! The server over real sockets: every reply, every limit, every way to end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(target_os = "linux")]
mod beside;
mod certificates;
mod client;
mod configuration;
mod connections;
mod credentials;
mod drain;
mod handshakes;
mod harness;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod hostile_clients;
#[cfg(target_os = "linux")]
mod hostile_conversions;
#[cfg(target_os = "linux")]
mod hostile_cronjobs;
#[cfg(target_os = "linux")]
mod hostile_http2;
mod http2;
mod image_backends;
mod image_reviewer;
mod image_waits;
mod images;
mod log;
#[cfg(target_os = "linux")]
mod pressure;
mod probes;
mod process;
mod replies;
mod stand_in;
mod toys;
