//! The next time of a calendar.

use jiff::civil::{DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::Calendar;

/// How many years ahead a time is looked for, as in robfig/cron.
const YEARS: i16 = 5;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl Calendar {
    /// Walks from `after` on, by the longest stretch that cannot hold a match: at most the months of five years, the days of the
    /// months that match, and the hours and minutes of a day. No step crosses a change of the clocks, so within a step local
    /// time is time plus a constant.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut time = whole_second(after).checked_add(SignedDuration::from_secs(1)).ok()?;
        let last_year = zone.to_datetime(time).year().saturating_add(YEARS);
        let mut change = change_after(zone, time);
        loop {
            let local = zone.to_datetime(time);
            if local.year() > last_year {
                return None;
            }
            let wait = self.no_match_for(local);
            if wait == 0 {
                return Some(time);
            }
            let mut next = time.checked_add(SignedDuration::from_secs(wait)).ok()?;
            if let Some(at) = change.filter(|&at| at <= next) {
                next = at;
                change = change_after(zone, at);
            }
            time = next;
        }
    }

    /// Seconds from this local time in which nothing can match, 0 when it matches.
    fn no_match_for(&self, local: DateTime) -> i64 {
        let (day, hour, minute) = (i64::from(local.day()), i64::from(local.hour()), i64::from(local.minute()));
        let of_minute = i64::from(local.second());
        let of_hour = minute * MINUTE + of_minute;
        let of_day = hour * HOUR + of_hour;
        if !self.month.contains(local.month()) {
            return (i64::from(local.date().days_in_month()) - day + 1) * DAY - of_day;
        }
        if !self.day_matches(local.day(), local.weekday()) {
            return DAY - of_day;
        }
        if !self.hour.contains(local.hour()) {
            return HOUR - of_hour;
        }
        if of_minute != 0 || !self.minute.contains(local.minute()) {
            return MINUTE - of_minute;
        }
        0
    }

    /// With a star in either field both must match, without one either is enough (`dayMatches` of robfig/cron).
    fn day_matches(&self, day_of_month: i8, weekday: Weekday) -> bool {
        let of_month = self.day_of_month.contains(day_of_month);
        let of_week = self.day_of_week.contains(weekday.to_sunday_zero_offset());
        if self.both_days_must_match() { of_month && of_week } else { of_month || of_week }
    }

    const fn both_days_must_match(&self) -> bool {
        self.day_of_month.starred || self.day_of_week.starred
    }

    /// Whether no date can ever match.
    pub fn never_fires(&self) -> bool {
        const LONGEST: [i8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let months = || (1_i8..).zip(LONGEST).filter(|(month, _)| self.month.contains(*month));
        let of_month = || months().any(|(_, longest)| (1..=longest).any(|day| self.day_of_month.contains(day)));
        let day = match (self.both_days_must_match(), self.day_of_week.is_empty()) {
            (true, no_weekday) => !no_weekday && of_month(),
            (false, false) => true,
            (false, true) => of_month(),
        };
        self.minute.is_empty() || self.hour.is_empty() || self.month.is_empty() || !day
    }
}

fn change_after(zone: &TimeZone, time: Timestamp) -> Option<Timestamp> {
    zone.following(time).next().map(|transition| transition.timestamp())
}

/// The second that the time is in.
pub fn whole_second(time: Timestamp) -> Timestamp {
    let seconds = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
    Timestamp::from_second(seconds).unwrap_or(time)
}
