//! One JSON object a line.
//!
//! The format is tracing-subscriber's, and what comes from the `log` crate is left to it. The plain event, as every review is
//! one, is written here with the same result at a fraction of the cost: no serializer, no string in between. Only lists differ,
//! which are lists here and text there. Fields of the spans around an event are members like its own, so that one search
//! finds the lines of an object.
//!
//! No library: tracing-subscriber's own formatter, which other events still use, builds each line with a serializer.

use std::fmt::{self, Write as _};

use admission::patch::write_escaped;
use serde::de::IgnoredAny;
use serde_json::Number;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Json, Writer, format};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

/// Target of events that tracing-log makes of records of the `log` crate; their true target is in a field.
const LOG_CRATE_TARGET: &str = "log";

/// The field that holds the text of an event.
const MESSAGE: &str = "message";

/// Writes events as JSON.
pub struct JsonLines(Format<Json>);

impl Default for JsonLines {
    fn default() -> Self {
        Self(format().json().flatten_event(true).with_current_span(false).with_span_list(false))
    }
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if event.metadata().target() == LOG_CRATE_TARGET {
            return self.0.format_event(context, writer, event);
        }
        writer.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut writer)?;
        writer.write_str("\",\"level\":\"")?;
        writer.write_str(event.metadata().level().as_str())?;
        writer.write_char('"')?;
        let mut members = JsonMembers { writer: &mut writer, result: Ok(()) };
        event.record(&mut members);
        members.result?;
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                members.spliced(fields)?;
            }
        }
        members.member("target", |target| target.quoted(event.metadata().target()))?;
        writer.write_str("}\n")
    }
}

/// Members of the object, each with a comma in front.
struct JsonMembers<'w, 'l> {
    writer: &'w mut Writer<'l>,
    result: fmt::Result,
}

impl JsonMembers<'_, '_> {
    fn member(&mut self, name: &str, value: impl FnOnce(&mut Self) -> fmt::Result) -> fmt::Result {
        self.writer.write_str(",\"")?;
        write_escaped(self.writer, name)?;
        self.writer.write_str("\":")?;
        value(self)
    }

    /// The members of an object that is JSON already.
    fn spliced(&mut self, object: &str) -> fmt::Result {
        match object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(members) if !members.is_empty() => write!(self.writer, ",{members}"),
            _ => Ok(()),
        }
    }

    fn quoted(&mut self, text: &str) -> fmt::Result {
        self.writer.write_char('"')?;
        write_escaped(self.writer, text)?;
        self.writer.write_char('"')
    }

    fn record(&mut self, field: &Field, value: impl FnOnce(&mut Self) -> fmt::Result) {
        if self.result.is_ok() {
            self.result = self.member(field.name(), value);
        }
    }
}

impl Visit for JsonMembers<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, |members| members.quoted(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.record(field, |members| members.writer.write_str(if value { "true" } else { "false" }));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record(field, |members| write!(members.writer, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record(field, |members| write!(members.writer, "{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.record(field, |members| match Number::from_f64(value) {
            Some(number) => write!(members.writer, "{number}"),
            None => members.writer.write_str("null"),
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field, |members| {
            if field.name() == MESSAGE {
                // Every line has one: no string in between.
                members.writer.write_char('"')?;
                write!(Escaped(members.writer), "{value:?}")?;
                return members.writer.write_char('"');
            }
            let text = format!("{value:?}");
            // A list of strings or numbers: its `Debug` writes what JSON has for it.
            let is_list = text.starts_with('[') && serde_json::from_str::<IgnoredAny>(&text).is_ok();
            if is_list { members.writer.write_str(&text) } else { members.quoted(&text) }
        });
    }
}

/// Writes text as the inside of a JSON string.
struct Escaped<'w, 'l>(&'w mut Writer<'l>);

impl fmt::Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_escaped(self.0, text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::Value;
    use tracing::Dispatch;
    use tracing::dispatcher::with_default;
    use tracing_subscriber::fmt;
    use tracing_subscriber::fmt::format::JsonFields;

    use super::JsonLines;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of the subscriber that is made for a writer, without their times.
    fn lines_of(subscriber: impl FnOnce(Kept) -> Dispatch, log: fn()) -> Vec<String> {
        let kept = Kept::default();
        with_default(&subscriber(kept.clone()), log);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        text.lines().map(without_time).collect()
    }

    fn without_time(line: &str) -> String {
        let value: Value = serde_json::from_str(line).unwrap();
        let time = value["timestamp"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{time}");
        line.replacen(time, "", 1)
    }

    fn log() {
        let every_character: String = (0..0x100_u32).filter_map(char::from_u32).chain("é€😀\u{2028}".chars()).collect();
        tracing::info!(every_character, "Text");
        tracing::warn!(shown = %every_character, debugged = ?every_character, "Text by format");
        tracing::error!(yes = true, no = false, least = i64::MIN, most = u64::MAX, wide = u128::MAX, "Numbers");
        for float in [0.0, -0.5, 1.0, 1e-7, 0.000_041_25, 1e21, f64::MAX, f64::NAN, f64::INFINITY] {
            tracing::info!(float, "Float");
        }
        tracing::info!(target: "a \"target\"", nothing = tracing::field::Empty, "quoted \"name\"" = 1, "Names");
        tracing::info!("formatted {}\n", 7);
        tracing::info!(none = None::<u64>, some = Some(7));
    }

    fn log_in_spans() {
        let outer = tracing::info_span!("outer", id = 7, name = "a \"name\"", absent = None::<u64>);
        tracing::info!(parent: &outer, "In a span that is told");
        let _entered = outer.entered();
        tracing::info!("In a span that is entered");
        let _inner = tracing::info_span!("inner", deep = true).entered();
        let _bare = tracing::info_span!("bare").entered();
        tracing::warn!(own = 1, "In three spans");
    }

    fn ours(log: fn()) -> Vec<String> {
        let ours = |kept: Kept| {
            let events = fmt().event_format(JsonLines::default()).fmt_fields(JsonFields::new());
            events.with_writer(move || kept.clone()).into()
        };
        lines_of(ours, log)
    }

    #[test]
    fn lines_are_those_of_the_library() {
        let library = |kept: Kept| {
            let events = fmt().json().flatten_event(true).with_current_span(false);
            events.with_writer(move || kept.clone()).into()
        };
        let ours = ours(log);
        assert_eq!(ours, lines_of(library, log));
        assert_eq!(ours.len(), 15);
    }

    #[test]
    fn lists_are_lists() {
        let lines = ours(|| {
            let none: [&str; 0] = [];
            tracing::info!(names = ?["a", "b \"c\""], ?none, numbers = ?[1, 2], nested = ?[["a"]], "[1]");
            // No list in JSON, whatever they begin with.
            tracing::info!(some = ?[Some("a")], escaped = ?["\u{7f}"], shown = %"[a]", range = ?(0..1), "{{}}");
        });
        let start = r#"{"timestamp":"","level":"INFO","message":"#;
        let end = r#","target":"outrider::logging::json::tests"}"#;
        let lists = r#""[1]","names":["a", "b \"c\""],"none":[],"numbers":[1, 2],"nested":[["a"]]"#;
        let texts = r#""{}","some":"[Some(\"a\")]","escaped":"[\"\\u{7f}\"]","shown":"[a]","range":"0..1""#;
        assert_eq!(lines, [format!("{start}{lists}{end}"), format!("{start}{texts}{end}")]);
    }

    #[test]
    fn fields_of_spans_are_members_of_the_line() {
        let outer = r#""id":7,"name":"a \"name\"""#;
        let target = r#""target":"outrider::logging::json::tests""#;
        assert_eq!(
            ours(log_in_spans),
            [
                format!(r#"{{"timestamp":"","level":"INFO","message":"In a span that is told",{outer},{target}}}"#),
                format!(r#"{{"timestamp":"","level":"INFO","message":"In a span that is entered",{outer},{target}}}"#),
                format!(
                    r#"{{"timestamp":"","level":"WARN","message":"In three spans","own":1,{outer},"deep":true,{target}}}"#
                ),
            ]
        );
    }
}
