//! The deadline that the API server announces, and nothing else does: `?timeout=10s` in the URL.

use std::time::Duration;

/// Kept back so that the reply is there before the client gives up.
const MARGIN: Duration = Duration::from_millis(200);

/// The API server accepts at most 30 s in a webhook configuration; a client that asks for more gets this.
const LONGEST: Duration = Duration::from_secs(30);

/// How long the server may take for a request with this query string.
///
/// A timeout that cannot be read counts as none: the API server never sends one, and a person at a terminal is better served by
/// an answer.
pub fn budget(query: Option<&str>, default: Duration) -> Duration {
    let announced = query.and_then(timeout_parameter).and_then(parse_go_duration).unwrap_or(default).min(LONGEST);
    // A very short deadline must not be eaten up by the margin.
    announced.saturating_sub(MARGIN.min(announced / 2))
}

fn timeout_parameter(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("timeout="))
}

/// What a text that is no duration is answered.
pub const HOW_TO_WRITE: &str = "write a duration such as 10s, 1m30s or 500ms";

/// Reads a duration that somebody wrote.
///
/// # Errors
/// [`HOW_TO_WRITE`].
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    parse_go_duration(text).ok_or(HOW_TO_WRITE)
}

/// Reads what Go's `time.ParseDuration` reads, without signs: numbers with an optional fraction, each with a unit.
///
/// ```
/// use std::time::Duration;
/// use outrider::server::deadline::parse_go_duration;
/// assert_eq!(parse_go_duration("1m30s"), Some(Duration::from_secs(90)));
/// assert_eq!(parse_go_duration("ten seconds"), None);
/// ```
pub fn parse_go_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        total = total.checked_add(measure(number, unit)?)?;
        rest = tail;
    }
    Some(total)
}

fn measure(number: &str, unit: &str) -> Option<Duration> {
    let nanos: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let mut total = whole.checked_mul(nanos)?;
    let mut scale = nanos;
    for digit in fraction.chars() {
        scale /= 10;
        total = total.checked_add(u64::from(digit.to_digit(10)?).checked_mul(scale)?)?;
    }
    Some(Duration::from_nanos(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_go_reads_them() {
        let table = [
            ("10s", Some(10_000)),
            ("1m30s", Some(90_000)),
            ("500ms", Some(500)),
            ("1.5s", Some(1_500)),
            (".5s", Some(500)),
            ("1h", Some(3_600_000)),
            ("0", Some(0)),
            ("", None),
            ("10", None),
            ("s", None),
            (".s", None),
            ("-1s", None),
            ("1.2.3s", None),
            ("10 s", None),
            ("99999999999999999999s", None),
        ];
        for (text, millis) in table {
            assert_eq!(parse_go_duration(text), millis.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn the_budget_leaves_a_margin_and_has_an_upper_bound() {
        let default = Duration::from_secs(10);
        let table = [
            (Some("timeout=10s"), 9_800),
            (Some("dryRun=All&timeout=2s"), 1_800),
            (Some("timeout=100ms"), 50),
            (Some("timeout=1h"), 29_800),
            (Some("timeout=soon"), 9_800),
            (Some(""), 9_800),
            (None, 9_800),
        ];
        for (query, millis) in table {
            assert_eq!(budget(query, default), Duration::from_millis(millis), "{query:?}");
        }
    }
}
