//! The time zone of a schedule.

use admission::bounded::ellipsis;
use jiff::tz::TimeZone;

/// Longest name of a time zone that is looked up, in bytes; the IANA's own have 32 at most.
const NAME_MAX_BYTES: usize = 64;

/// Why there is no time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// An empty name.
    #[error("must name a time zone such as Europe/Berlin, or be left out for UTC")]
    Empty,
    /// No such zone in the time zone database.
    #[error("unknown time zone {0}")]
    Unknown(String),
}

/// The time zone of that name, UTC without one.
///
/// # Errors
/// [`ZoneError`] when the time zone database has no such name.
pub fn zone(name: Option<&str>) -> Result<TimeZone, ZoneError> {
    match name {
        None => Ok(TimeZone::UTC),
        Some("") => Err(ZoneError::Empty),
        Some(name) if name.len() > NAME_MAX_BYTES => Err(ZoneError::Unknown(ellipsis(name, NAME_MAX_BYTES / 4))),
        Some(name) => TimeZone::get(name).map_err(|_| ZoneError::Unknown(name.to_owned())),
    }
}
