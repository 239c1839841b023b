use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{Schedule, expansion};

fn zone(name: &str) -> TimeZone {
    if name == "UTC" { TimeZone::UTC } else { TimeZone::get(name).unwrap() }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The next time in local form, or `never`.
fn next(schedule: &str, zone: &TimeZone, after: &str) -> String {
    match Schedule::parse(schedule).unwrap().next(time(after), zone) {
        Some(next) => zone.to_datetime(next).to_string(),
        None => "never".to_owned(),
    }
}

/// Acceptance check 8 and the upstream tests T23.
#[test]
fn refusals_are_worded_as_robfig_cron_words_them() {
    let cases = [
        ("", "Empty spec string"),
        ("   ", "Expected exactly 5 fields, found 0:    "),
        ("invalid-cron-schedule", "Expected exactly 5 fields, found 1: invalid-cron-schedule"),
        ("* * * *", "Expected exactly 5 fields, found 4: * * * *"),
        (" * * * *", "Expected exactly 5 fields, found 4:  * * * *"),
        ("* * * * * *", "Expected exactly 5 fields, found 6: * * * * * *"),
        ("TZ=UTC * * * * *", "Expected exactly 5 fields, found 6: TZ=UTC * * * * *"),
        ("CRON_TZ=UTC * * * * *", "Expected exactly 5 fields, found 6: CRON_TZ=UTC * * * * *"),
        ("60 * * * *", "End of range (60) above maximum (59): 60"),
        ("* 24 * * *", "End of range (24) above maximum (23): 24"),
        ("* * 0 * *", "Beginning of range (0) below minimum (1): 0"),
        ("* * * 13 *", "End of range (13) above maximum (12): 13"),
        ("* * * * 7", "End of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "Beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "Step of range should be a positive number: */0"),
        ("*/-1 * * * *", "Negative number (-1) not allowed: -1"),
        ("*/-12 * * * *", "Negative number (-12) not allowed: -12"),
        ("1--2 * * * *", "Too many hyphens: 1--2"),
        ("5--5 * * * *", "Too many hyphens: 5--5"),
        ("1/2/3 * * * *", "Too many slashes: 1/2/3"),
        ("*//2 * * * *", "Too many slashes: *//2"),
        ("x * * * *", r#"Failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax"#),
        ("* * * jan-x *", r#"Failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax"#),
        ("-1 * * * *", r#"Failed to parse int from : strconv.Atoi: parsing "": invalid syntax"#),
        ("*/ * * * *", r#"Failed to parse int from : strconv.Atoi: parsing "": invalid syntax"#),
        ("* * L * *", r#"Failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax"#),
        (
            "99999999999999999999 * * * *",
            r#"Failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range"#,
        ),
        ("60 x * * *", "End of range (60) above maximum (59): 60"),
        ("@bogus", "Unrecognized descriptor: @bogus"),
        ("@Hourly", "Unrecognized descriptor: @Hourly"),
        ("@every", "Unrecognized descriptor: @every"),
        ("@a b c d e", "Unrecognized descriptor: @a b c d e"),
        (" @hourly", "Expected exactly 5 fields, found 1:  @hourly"),
        ("@every x", r#"Failed to parse duration @every x: time: invalid duration "x""#),
        ("@every 5", r#"Failed to parse duration @every 5: time: missing unit in duration "5""#),
    ];
    for (schedule, expected) in cases {
        assert_eq!(Schedule::parse(schedule).unwrap_err().to_string(), expected, "{schedule:?}");
    }
}

#[test]
fn every_form_of_the_grammar_is_read() {
    let accepted = [
        "* * * * *",
        "? ? ? ? ?",
        "*/5 * * * *",
        "0  0\t1 1 *",
        "0 0 ? * MON-fri",
        "0 0 1,15 jan,FEB sun",
        ", * * * *",
        "0 0 30 2 *",
        "5/15 * * * *",
        "+5 * * * *",
        "*-5 * * * *",
        "1,,2 * * * *",
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "@every 5m",
        "@every 1ms",
        "@every -1h",
    ];
    for schedule in accepted {
        assert!(Schedule::parse(schedule).is_ok(), "{schedule:?}");
    }
}

/// The upstream tests T23: ranges and steps.
#[test]
fn lists_ranges_and_steps_name_their_numbers() {
    for (minutes, expected) in
        [("5-7/2", &[5, 7][..]), ("1-3/2", &[1, 3]), ("1,5-7/2,3", &[1, 3, 5, 7]), ("56/2", &[56, 58]), ("5", &[5])]
    {
        let schedule = Schedule::parse(&format!("{minutes} 0 * * *")).unwrap();
        let mut now = time("2012-07-08T23:59:00Z");
        let mut found = Vec::new();
        for _ in expected {
            now = schedule.next(now, &TimeZone::UTC).unwrap();
            found.push(TimeZone::UTC.to_datetime(now).minute());
        }
        assert_eq!(found, expected, "{minutes}");
        assert_eq!(
            TimeZone::UTC.to_datetime(schedule.next(now, &TimeZone::UTC).unwrap()).day(),
            10,
            "{minutes}: no more"
        );
    }
}

/// The upstream tests T24.
#[test]
fn next_time_is_the_one_that_cron_users_expect() {
    let cases = [
        ("0/15 * * * *", "2012-07-09T14:45:00Z", "2012-07-09T15:00:00"),
        ("0/15 * * * *", "2012-07-09T14:59:59.9Z", "2012-07-09T15:00:00"),
        ("20-35/15 * * * *", "2012-07-09T23:45:00Z", "2012-07-10T00:20:00"),
        ("0 0 29 Feb ?", "2012-07-09T23:35:00Z", "2016-02-29T00:00:00"),
        ("0 0 */5 Oct Mon", "2012-07-09T23:35:00Z", "2012-10-01T00:00:00"),
        ("0 0 1,15 * Sun", "2012-07-01T00:00:00Z", "2012-07-08T00:00:00"),
        ("0 0 1,15 * Sun", "2012-07-08T00:00:00Z", "2012-07-15T00:00:00"),
        ("0 0 1,15 * Sun", "2012-07-31T00:00:00Z", "2012-08-01T00:00:00"),
        ("0 0 */10 * Sun", "2012-07-01T00:00:00Z", "2012-10-21T00:00:00"),
        ("0 0 */10 * Sun", "2012-06-30T00:00:00Z", "2012-07-01T00:00:00"),
        ("0 0 30 Feb ?", "2012-07-09T23:35:00Z", "never"),
        ("0 0 31 Apr ?", "2012-07-09T23:35:00Z", "never"),
        (", * * * *", "2012-07-09T23:35:00Z", "never"),
        ("59 23 31 12 *", "2012-12-31T23:59:00Z", "2013-12-31T23:59:00"),
        ("@yearly", "2012-07-09T23:35:00Z", "2013-01-01T00:00:00"),
        ("@weekly", "2012-07-09T23:35:00Z", "2012-07-15T00:00:00"),
        ("@hourly", "2012-07-09T23:35:00Z", "2012-07-10T00:00:00"),
        ("@every 5m", "2012-07-09T23:35:07.5Z", "2012-07-09T23:40:07"),
        ("@every 1ms", "2012-07-09T23:35:07.5Z", "2012-07-09T23:35:08"),
        ("@every -5m", "2012-07-09T23:35:07.5Z", "2012-07-09T23:35:08"),
        ("@every 2.9s", "2012-07-09T23:35:07.5Z", "2012-07-09T23:35:09"),
    ];
    for (schedule, after, expected) in cases {
        assert_eq!(next(schedule, &TimeZone::UTC, after), expected, "{schedule} after {after}");
    }
}

#[test]
fn skipped_times_do_not_come_and_repeated_times_come_twice() {
    let new_york = zone("America/New_York");
    // Clocks go from 02:00 to 03:00 on 2024-03-10, and from 02:00 back to 01:00 on 2024-11-03.
    assert_eq!(next("30 2 * * *", &new_york, "2024-03-10T05:00:00Z"), "2024-03-11T02:30:00");
    assert_eq!(next("0 3 * * *", &new_york, "2024-03-10T05:00:00Z"), "2024-03-10T03:00:00");
    let schedule = Schedule::parse("30 1 * * *").unwrap();
    let first = schedule.next(time("2024-11-03T04:00:00Z"), &new_york).unwrap();
    let second = schedule.next(first, &new_york).unwrap();
    let third = schedule.next(second, &new_york).unwrap();
    let times = [first, second, third].map(|time| time.to_string());
    assert_eq!(times, ["2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z", "2024-11-04T06:30:00Z"]);
    // Apia had no 30 December 2011.
    assert_eq!(next("0 12 30 12 *", &zone("Pacific/Apia"), "2011-12-29T00:00:00Z"), "2012-12-30T12:00:00");
}

#[test]
fn days_without_midnight_and_clocks_that_move_by_half_an_hour_are_no_trouble() {
    let sao_paulo = zone("America/Sao_Paulo");
    // Midnight of 2012-10-21, of 2015-10-18 and of 2016-10-16 is 01:00.
    assert_eq!(next("0 5 24 10 *", &sao_paulo, "2012-03-06T13:25:46Z"), "2012-10-24T05:00:00");
    assert_eq!(next("0 * */17 * sun", &sao_paulo, "2015-03-04T23:30:24Z"), "2015-10-18T01:00:00");
    assert_eq!(next("0 0 28/28 10 *", &sao_paulo, "2016-07-28T20:01:14Z"), "2016-10-28T00:00:00");
    let lord_howe = zone("Australia/Lord_Howe");
    assert_eq!(next("* 3 3-24 * *", &lord_howe, "2021-10-02T12:00:00Z"), "2021-10-03T03:00:00");
}

#[test]
fn schedule_without_a_date_says_so() {
    let cases = [
        ("0 0 30 2 *", true),
        ("0 0 31 2,4,6,9,11 *", true),
        (", * * * *", true),
        ("* , * * *", true),
        ("* * , * *", true),
        ("* * * , *", true),
        ("* * * * ,", true),
        ("0 0 29 2 *", false),
        ("0 0 30 2 1", false),
        ("0 0 30 2 ,", true),
        ("0 0 30 2 */2", true),
        ("0 0 31 * *", false),
        ("* * * * *", false),
        ("@every 1s", false),
    ];
    for (schedule, never) in cases {
        assert_eq!(Schedule::parse(schedule).unwrap().never_fires(), never, "{schedule}");
        if never {
            assert_eq!(next(schedule, &TimeZone::UTC, "2024-01-01T00:00:00Z"), "never", "{schedule}");
        }
    }
}

#[test]
fn descriptors_expand_to_the_fields_that_mean_the_same() {
    let after = time("2024-02-28T13:37:11Z");
    for text in ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"] {
        let fields = expansion(text).unwrap().join(" ");
        let next = |text: &str| Schedule::parse(text).unwrap().next(after, &TimeZone::UTC);
        assert_eq!(next(text), next(&fields), "{text}");
    }
    assert_eq!(expansion(" 0\t0  1 1 * "), Some(["0", "0", "1", "1", "*"]));
    for text in ["@every 5m", "", "* * * *", "* * * * * *"] {
        assert_eq!(expansion(text), None, "{text}");
    }
}

/// A field with numbers, ranges, steps and lists within its bounds.
fn field(minimum: i8, maximum: i8) -> impl Strategy<Value = String> {
    let number = minimum..=maximum;
    let span = (number.clone(), number.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
    let item = prop_oneof![
        3 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        2 => (1..=maximum).prop_map(|step| format!("*/{step}")),
        4 => number.clone().prop_map(|number| number.to_string()),
        2 => span.clone(),
        1 => (span, 1..=maximum).prop_map(|(span, step)| format!("{span}/{step}")),
        1 => (number, 1..=maximum).prop_map(|(number, step)| format!("{number}/{step}")),
    ];
    proptest::collection::vec(item, 1..3).prop_map(|items| items.join(","))
}

fn calendar() -> impl Strategy<Value = String> {
    (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6))
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

/// Reads the schedule by itself, without any of the code under test.
fn oracle_allows(field: &str, number: i8, minimum: i8, maximum: i8) -> bool {
    field.split(',').any(|item| {
        let (span, step) = item.split_once('/').map_or((item, 1), |(span, step)| (span, step.parse().unwrap()));
        let (low, high): (i8, i8) = match span.split_once('-') {
            _ if span == "*" || span == "?" => (minimum, maximum),
            Some((low, high)) => (low.parse().unwrap(), high.parse().unwrap()),
            None if item.contains('/') => (span.parse().unwrap(), maximum),
            None => (span.parse().unwrap(), span.parse().unwrap()),
        };
        (low..=high).contains(&number) && (number - low) % step == 0
    })
}

fn oracle_matches(schedule: &str, zone: &TimeZone, time: Timestamp) -> bool {
    let fields: Vec<&str> = schedule.split(' ').collect();
    let local = zone.to_datetime(time);
    let day = oracle_allows(fields[2], local.day(), 1, 31);
    let weekday = oracle_allows(fields[4], local.weekday().to_sunday_zero_offset(), 0, 6);
    let starred = |field: &str| field.contains(['*', '?']);
    let date = if starred(fields[2]) || starred(fields[4]) { day && weekday } else { day || weekday };
    local.second() == 0
        && oracle_allows(fields[0], local.minute(), 0, 59)
        && oracle_allows(fields[1], local.hour(), 0, 23)
        && oracle_allows(fields[3], local.month(), 1, 12)
        && date
}

/// Two days around a change of the clocks, or around nothing of note.
const PLACES: [(&str, &str); 9] = [
    ("UTC", "2024-02-28T12:34:56Z"),
    ("America/New_York", "2024-03-09T20:00:01Z"),
    ("America/New_York", "2024-11-02T20:00:00Z"),
    ("Australia/Lord_Howe", "2024-04-05T20:00:00Z"),
    ("America/St_Johns", "2006-10-28T12:00:00Z"),
    ("Africa/Cairo", "2024-04-25T12:00:00Z"),
    ("Pacific/Apia", "2011-12-29T12:00:00Z"),
    ("America/Sao_Paulo", "2015-10-17T15:00:00Z"),
    ("Asia/Kathmandu", "2024-12-31T12:00:00Z"),
];

proptest! {
    // Two days of minutes a case make the oracle slow.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn next_time_is_the_first_minute_that_matches(schedule in calendar(), place in 0..PLACES.len(), offset in 0_i64..86_400) {
        let (name, start) = PLACES[place];
        let zone = zone(name);
        let after = time(start) + SignedDuration::from_secs(offset);
        let found = Schedule::parse(&schedule).unwrap().next(after, &zone);
        // Every offset in these years is a whole number of minutes, so a local minute begins with a minute of UTC.
        let minutes = (1..=2 * 24 * 60).map(|minute| {
            Timestamp::from_second((after.as_second().div_euclid(60) + minute) * 60).unwrap()
        });
        let end = after.as_second() + 2 * 86_400;
        match minutes.into_iter().find(|&minute| oracle_matches(&schedule, &zone, minute)) {
            Some(expected) => prop_assert_eq!(found, Some(expected)),
            None => {
                if let Some(found) = found {
                    prop_assert!(found.as_second() > end - 60, "{} is earlier than the oracle looked", found);
                    prop_assert!(oracle_matches(&schedule, &zone, found));
                }
            }
        }
    }

}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        if let Ok(schedule) = Schedule::parse(&text) {
            schedule.next(time("2024-01-01T00:00:00Z"), &TimeZone::UTC);
        }
    }

    #[test]
    fn text_that_is_almost_a_schedule_is_read_or_refused(text in "[@*?/,0-9a-z -]{0,30}") {
        if let Ok(schedule) = Schedule::parse(&text) {
            schedule.next(time("2024-01-01T00:00:00Z"), &TimeZone::UTC);
        }
    }
}
