//! Reads a schedule: a descriptor, or five fields.

use jiff::SignedDuration;

use super::error::ScheduleError;
use super::field::{DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, ScheduleField};
use super::{Calendar, Kind};
use crate::go_duration;

/// Minute, hour, day of month, month, day of week.
pub const FIELD_COUNT: usize = 5;

const EVERY: &str = "@every ";

/// The fields that each descriptor is short for.
const DESCRIPTORS: [(&str, [&str; FIELD_COUNT]); 7] = [
    ("@yearly", ["0", "0", "1", "1", "*"]),
    ("@annually", ["0", "0", "1", "1", "*"]),
    ("@monthly", ["0", "0", "1", "*", "*"]),
    ("@weekly", ["0", "0", "*", "*", "0"]),
    ("@daily", ["0", "0", "*", "*", "*"]),
    ("@midnight", ["0", "0", "*", "*", "*"]),
    ("@hourly", ["0", "*", "*", "*", "*"]),
];

/// The five fields of a schedule, whether or not each of them is right; `None` where there are not five, as with
/// `@every`.
pub fn expansion(text: &str) -> Option<[&str; FIELD_COUNT]> {
    if let Some((_, fields)) = DESCRIPTORS.iter().find(|(name, _)| *name == text) {
        return Some(*fields);
    }
    let mut fields = text.split_whitespace();
    let mut expansion = [""; FIELD_COUNT];
    for place in &mut expansion {
        *place = fields.next()?;
    }
    fields.next().is_none().then_some(expansion)
}

pub fn schedule(text: &str) -> Result<Kind, ScheduleError> {
    if text.is_empty() {
        return Err(ScheduleError::Empty);
    }
    if let Some(duration) = text.strip_prefix(EVERY) {
        let delay =
            go_duration::parse(duration).map_err(|source| ScheduleError::Every { text: text.to_owned(), source })?;
        return Ok(Kind::Every(whole_seconds(delay)));
    }
    let is_descriptor = text.starts_with('@');
    match expansion(text) {
        Some(fields) if !is_descriptor || DESCRIPTORS.iter().any(|(name, _)| *name == text) => calendar(fields),
        _ if is_descriptor => Err(ScheduleError::Descriptor(text.to_owned())),
        _ => Err(ScheduleError::FieldCount { found: text.split_whitespace().count(), text: text.to_owned() }),
    }
}

/// Whether this is `@every` less than a second. It is read as a second, as robfig/cron does, but no author means that.
pub fn is_too_often(text: &str) -> bool {
    let delay = text.strip_prefix(EVERY).and_then(|duration| go_duration::parse(duration).ok());
    delay.is_some_and(|nanoseconds| nanoseconds < go_duration::SECOND)
}

/// The delay of `cron.Every`: whole seconds, at least one.
fn whole_seconds(nanoseconds: i128) -> SignedDuration {
    let seconds = i64::try_from(nanoseconds / go_duration::SECOND).unwrap_or(i64::MAX).max(1);
    SignedDuration::from_secs(seconds)
}

fn calendar([minute, hour, day_of_month, month, day_of_week]: [&str; FIELD_COUNT]) -> Result<Kind, ScheduleError> {
    Ok(Kind::Calendar(Calendar {
        minute: ScheduleField::parse(minute, &MINUTE)?,
        hour: ScheduleField::parse(hour, &HOUR)?,
        day_of_month: ScheduleField::parse(day_of_month, &DAY_OF_MONTH)?,
        month: ScheduleField::parse(month, &MONTH)?,
        day_of_week: ScheduleField::parse(day_of_week, &DAY_OF_WEEK)?,
    }))
}
