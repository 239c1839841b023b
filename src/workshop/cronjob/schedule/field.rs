//! One of the five fields of a schedule: `*`, numbers, names, ranges, steps and lists of them.

use std::num::IntErrorKind;

use super::error::ScheduleError;

/// The numbers that a field allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleField {
    /// Bit `n` for number `n`; every field ends below 64.
    bits: u64,
    /// Whether a `*` or `?` is in it, also one with a step: robfig/cron v1.2.0 keeps its star bit then.
    pub starred: bool,
}

/// What a field may hold.
pub struct Bounds {
    pub minimum: u8,
    pub maximum: u8,
    /// Names of the numbers from `minimum` on.
    names: &'static [&'static str],
}

pub const MINUTE: Bounds = Bounds { minimum: 0, maximum: 59, names: &[] };
pub const HOUR: Bounds = Bounds { minimum: 0, maximum: 23, names: &[] };
pub const DAY_OF_MONTH: Bounds = Bounds { minimum: 1, maximum: 31, names: &[] };
pub const MONTH: Bounds = Bounds {
    minimum: 1,
    maximum: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
pub const DAY_OF_WEEK: Bounds =
    Bounds { minimum: 0, maximum: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl ScheduleField {
    /// Reads a comma list. Empty items are skipped, as Go's `strings.FieldsFunc` does: `,` alone allows nothing.
    pub fn parse(text: &str, bounds: &Bounds) -> Result<Self, ScheduleError> {
        let mut field = Self { bits: 0, starred: false };
        for expression in text.split(',').filter(|expression| !expression.is_empty()) {
            let Self { bits, starred } = range(expression, bounds)?;
            field.bits |= bits;
            field.starred |= starred;
        }
        Ok(field)
    }

    /// Whether the number is allowed.
    pub fn contains(self, number: i8) -> bool {
        u32::try_from(number).ok().and_then(|number| self.bits.checked_shr(number)).is_some_and(|bits| bits & 1 == 1)
    }

    /// Whether no number is allowed.
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }
}

/// One item: `*`, `?`, `N` or `N-M`, with an optional `/step`; `N/step` runs to the end.
fn range(expression: &str, bounds: &Bounds) -> Result<ScheduleField, ScheduleError> {
    let mut slashes = expression.split('/');
    let (span, step, too_many) = (slashes.next().unwrap_or_default(), slashes.next(), slashes.next());
    let mut hyphens = span.split('-');
    let (low, high, more) = (hyphens.next().unwrap_or_default(), hyphens.next(), hyphens.next());

    let starred = low == "*" || low == "?";
    let (start, mut end) = if starred {
        (u64::from(bounds.minimum), u64::from(bounds.maximum))
    } else {
        let start = number_or_name(low, bounds)?;
        match (high, more) {
            (None, _) => (start, start),
            (Some(high), None) => (start, number_or_name(high, bounds)?),
            (Some(_), Some(_)) => return Err(ScheduleError::Hyphens(expression.to_owned())),
        }
    };
    let step = match (step, too_many) {
        (None, _) => 1,
        (Some(step), None) => {
            let step = number(step)?;
            if high.is_none() {
                end = u64::from(bounds.maximum);
            }
            step
        }
        (Some(_), Some(_)) => return Err(ScheduleError::Slashes(expression.to_owned())),
    };
    check(start, end, step, bounds, expression)?;
    Ok(ScheduleField { bits: bits(start, end, step), starred })
}

fn check(start: u64, end: u64, step: u64, bounds: &Bounds, expression: &str) -> Result<(), ScheduleError> {
    let expression = || expression.to_owned();
    if start < u64::from(bounds.minimum) {
        return Err(ScheduleError::BelowMinimum { start, minimum: bounds.minimum, expression: expression() });
    }
    if end > u64::from(bounds.maximum) {
        return Err(ScheduleError::AboveMaximum { end, maximum: bounds.maximum, expression: expression() });
    }
    if start > end {
        return Err(ScheduleError::Reversed { start, end, expression: expression() });
    }
    if step == 0 {
        return Err(ScheduleError::ZeroStep(expression()));
    }
    Ok(())
}

/// At most 60 turns: `end` is within the bounds of a field.
fn bits(start: u64, end: u64, step: u64) -> u64 {
    let mut bits = 0;
    let mut number = start;
    while number <= end {
        bits |= 1 << number;
        number = number.saturating_add(step);
    }
    bits
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, ScheduleError> {
    let names = (u64::from(bounds.minimum)..).zip(bounds.names);
    match names.into_iter().find(|(_, name)| name.eq_ignore_ascii_case(text)) {
        Some((number, _)) => Ok(number),
        None => number(text),
    }
}

/// As Go's `strconv.Atoi`: decimal digits with an optional sign.
fn number(text: &str) -> Result<u64, ScheduleError> {
    let number: i64 = text.parse().map_err(|error: std::num::ParseIntError| ScheduleError::NotANumber {
        text: text.to_owned(),
        why: match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        },
    })?;
    u64::try_from(number).map_err(|_| ScheduleError::Negative { number, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{Bounds, ScheduleField};

    fn within(minimum: u8, maximum: u8) -> Bounds {
        Bounds { minimum, maximum, names: &[] }
    }

    #[test]
    fn fields_hold_the_numbers_that_cron_says() {
        let cases: [(&str, Bounds, &[i8], bool); 13] = [
            ("5", within(0, 7), &[5], false),
            ("0", within(0, 7), &[0], false),
            ("7", within(0, 7), &[7], false),
            ("5-5", within(0, 7), &[5], false),
            ("5-6", within(0, 7), &[5, 6], false),
            ("5-7", within(0, 7), &[5, 6, 7], false),
            ("5-6/2", within(0, 7), &[5], false),
            ("5-7/2", within(0, 7), &[5, 7], false),
            ("5/2", within(0, 7), &[5, 7], false),
            ("*", within(1, 3), &[1, 2, 3], true),
            ("*/2", within(1, 3), &[1, 3], true),
            ("1,5-7/2,3", within(0, 7), &[1, 3, 5, 7], false),
            (",", within(0, 7), &[], false),
        ];
        for (text, bounds, expected, starred) in cases {
            let field = ScheduleField::parse(text, &bounds).unwrap();
            let numbers: Vec<i8> = (0..64).filter(|&number| field.contains(number)).collect();
            assert_eq!((numbers.as_slice(), field.starred), (expected, starred), "{text}");
            assert_eq!(field.is_empty(), expected.is_empty(), "{text}");
        }
    }
}
