//! When a `CronJob` is due: the cron grammar, and the times that it means.
//!
//! Grammar, wording of the errors and times are those of `ParseStandard` and `Next` of robfig/cron v1.2.0 (Go), which existing
//! manifests were written against: five fields, descriptors, `@every`; no seconds and no time zone inside the text.
//!
//! Two of its faults are not copied. Where the clocks skip midnight, as in Brazil until 2018, it leaves out days or never comes
//! back; and it steps by the hour, so that it misses the start of an hour where the clocks move by half an hour. Here the
//! wall clock decides.
//!
//! No library: croner and others accept more than robfig/cron (`L`, `W`, `#`, seconds), lack `@every`, and word errors differently.

mod error;
mod field;
mod next;
mod parse;
#[cfg(test)]
mod tests;
mod zone;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

pub use self::error::ScheduleError;
use self::field::ScheduleField;
pub use self::parse::{FIELD_COUNT, expansion, is_too_often};
pub use self::zone::{ZoneError, zone};

/// A parsed schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Calendar(Calendar),
    /// Whole seconds, at least one.
    Every(SignedDuration),
}

/// The minutes whose local wall-clock time is in every field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Calendar {
    minute: ScheduleField,
    hour: ScheduleField,
    day_of_month: ScheduleField,
    month: ScheduleField,
    day_of_week: ScheduleField,
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// [`ScheduleError`], worded as robfig/cron words it.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        parse::schedule(text).map(Self)
    }

    /// The first time after `after`, or `None` when there is none within five years.
    ///
    /// A time that the clocks skip does not come that day; a time that they repeat comes twice.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.0 {
            Kind::Calendar(calendar) => calendar.next(after, zone),
            Kind::Every(delay) => next::whole_second(after).checked_add(*delay).ok(),
        }
    }

    /// The delay of an `@every` schedule: whole seconds, at least one.
    pub const fn delay(&self) -> Option<SignedDuration> {
        match &self.0 {
            Kind::Every(delay) => Some(*delay),
            Kind::Calendar(_) => None,
        }
    }

    /// Whether no date can ever match, such as February 30.
    pub fn never_fires(&self) -> bool {
        match &self.0 {
            Kind::Calendar(calendar) => calendar.never_fires(),
            Kind::Every(_) => false,
        }
    }
}
