//! Kinds that are off while their definitions exist: they were turned off, and their objects stay.

use std::time::Duration;

use kube::Client;
use tokio::time::sleep;

use super::error::Error;
use super::retire::Retirement;
use crate::answers::REQUEST_TIMEOUT;
use crate::kinds::Kinds;
use crate::logging::throttle::LogThrottle;

/// How often it is looked for objects that are to go, where there is a definition.
const CHECK: Duration = Duration::from_secs(30);

/// How often it is looked for a definition. Most accounts may not, and each try is in the audit log.
const SELDOM: Duration = Duration::from_secs(600);

/// A kind that is off.
struct Off {
    name: &'static str,
    retirement: Retirement,
    is_told: bool,
    throttle: LogThrottle,
}

/// Releases objects of kinds that are off, as far as that is allowed, when they are deleted: otherwise they and their
/// namespaces would stay. Nothing else is done for them, and the log says so. Ends where no such kind is.
pub async fn release_deleted(client: &Client, on: &Kinds) {
    let off = on.off();
    let mut off: Vec<Off> = off
        .iter()
        .filter_map(|kind| {
            let retirement = Retirement::of(kind)?;
            Some(Off { name: kind.name, retirement, is_told: false, throttle: LogThrottle::default() })
        })
        .collect();
    while !off.is_empty() {
        for kind in &mut off {
            match kind.check(client).await {
                Ok(()) => kind.throttle.over(),
                Err(error) if kind.throttle.is_news(&error) => tracing::warn!(
                    kind = kind.name,
                    %error,
                    "Objects of a kind that is off cannot be released; `outrider uninstall --kind {}` releases them",
                    kind.name
                ),
                Err(_) => {}
            }
        }
        sleep(if off.iter().any(|kind| kind.is_told) { CHECK } else { SELDOM }).await;
    }
}

impl Off {
    async fn check(&mut self, client: &Client) -> Result<(), Error> {
        if !self.retirement.is_in_force(client).await? {
            self.is_told = false;
            return Ok(());
        }
        if !self.is_told {
            self.is_told = true;
            tracing::warn!(
                kind = self.name,
                definition = self.retirement.definition,
                "The kind is off, but its definition exists: its objects are converted, and released when they are \
                 deleted; nothing else is done for them. Turn it on with --enable-kinds, or run `outrider uninstall \
                --kind {}`",
                self.name
            );
        }
        let freed = self.retirement.free_leaving(client, REQUEST_TIMEOUT).await?;
        if freed > 0 {
            tracing::info!(kind = self.name, objects = freed, "Released objects of a kind that is off");
        }
        Ok(())
    }
}
