//! Logs: one line an event on stderr, for machines or for people.

mod json;
mod lines;
pub mod throttle;

use std::io::{self, IsTerminal};
use std::panic;
use std::sync::OnceLock;

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use json::JsonLines;
use lines::Lines;

/// Where lines wait, once logging in JSON has begun.
static LINES: OnceLock<Lines> = OnceLock::new();

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For reading in a terminal.
    Text,
}

/// Logging cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// Neither a level nor a list of them.
    #[error("{0}; write error, warn, info, debug or trace, or a list such as info,kube=warn")]
    Level(String),
    /// Another subscriber is set already.
    #[error("logging has already begun: {0}")]
    Begun(String),
    /// The system has no thread for it.
    #[error("cannot start the thread that writes the log: {0}")]
    Thread(#[from] io::Error),
}

/// Begins logging to stderr. Without a format, a terminal gets text and everything else JSON.
///
/// JSON lines gather for some milliseconds before they are written, warnings and errors excepted: before it ends, the process calls
/// [`flush`]. Text is written at once.
///
/// Panics are logged there too, in the same format: a review that ended in one is answered, but its cause must be found.
///
/// # Errors
/// [`LoggingError`] for a level that is none, or when called twice.
pub fn init(format: Option<LogFormat>, level: &str) -> Result<(), LoggingError> {
    let filter = filter(level).map_err(LoggingError::Level)?;
    let is_terminal = io::stderr().is_terminal();
    let events = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE);
    let begun = match format.unwrap_or(if is_terminal { LogFormat::Text } else { LogFormat::Json }) {
        LogFormat::Json => {
            let lines = Lines::to(io::stderr())?;
            let lines = LINES.get_or_init(|| lines).clone();
            let events = events.event_format(JsonLines::default()).fmt_fields(JsonFields::new()).with_writer(lines);
            events.finish().with(filter).try_init()
        }
        LogFormat::Text => {
            let events = events.with_writer(io::stderr).with_ansi(is_terminal).with_target(false);
            events.finish().with(filter).try_init()
        }
    };
    begun.map_err(|error| LoggingError::Begun(error.to_string()))?;
    panic::set_hook(Box::new(|panic| {
        let message = message_of(panic.payload());
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, message_of_panic = message, "Panic");
        flush();
    }));
    Ok(())
}

/// A word alone is a level here; [`Targets`] would take any other word for the name of a module, and be silent about all others.
/// It has no filters by span, unlike `EnvFilter`, and brings no regular expressions into the image.
fn filter(level: &str) -> Result<Targets, String> {
    let words: Vec<&str> = level.split(',').map(str::trim).collect();
    let is_level = |word: &&str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let mut levels = words.iter().map(|word| word.rsplit_once('=').map_or(*word, |(_, level)| level));
    let place = |word: &str| if word == level { String::new() } else { format!(" in {level:?}") };
    match levels.find(|level| !is_level(level)) {
        Some("") => Err(format!("a log level is missing{}", place(""))),
        Some(word) => Err(format!("there is no log level {word:?}{}", place(word))),
        None => words.join(",").parse::<Targets>().map_err(|error| format!("{error}{}", place(""))),
    }
}

/// Waits until what was logged so far is written, for a second at most.
pub fn flush() {
    if let Some(lines) = LINES.get() {
        lines.flush();
    }
}

/// What `panic!` was called with: a literal, or a formatted string.
fn message_of(payload: &(dyn std::any::Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::env;
    use std::process::{self, Command};

    use serde_json::Value;

    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused_and_not_taken_for_a_module() {
        for level in ["info", "WARN", "off", "info,kube=warn", "kube=debug", "kube=off, info"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        for (level, why) in [
            ("loud", "there is no log level \"loud\""),
            ("info,kube", "there is no log level \"kube\" in \"info,kube\""),
            ("", "a log level is missing"),
            ("info,", "a log level is missing in \"info,\""),
            ("kube=", "a log level is missing in \"kube=\""),
            ("kube=loud", "there is no log level \"loud\" in \"kube=loud\""),
        ] {
            assert_eq!(filter(level).unwrap_err(), why, "{level}");
        }
        let error = filter("info,kube[{name=a}]=trace").unwrap_err();
        assert!(error.starts_with("invalid") && error.ends_with(" in \"info,kube[{name=a}]=trace\""), "{error}");
    }

    #[test]
    fn a_process_that_dies_of_a_panic_has_told_everything_in_order() {
        const CHILD: &str = "OUTRIDER_TEST_DIES";
        if env::var_os(CHILD).is_some() {
            init(Some(LogFormat::Json), "info").unwrap();
            (0..100).for_each(|number| tracing::info!(number, "Before"));
            let _ = panic::catch_unwind(|| panic!("on purpose"));
            process::abort();
        }
        let name = "logging::tests::a_process_that_dies_of_a_panic_has_told_everything_in_order";
        let mut child = Command::new(env::current_exe().unwrap());
        let output = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (panic, before) = lines.split_last().unwrap();
        assert_eq!(
            before.iter().map(|line| line["number"].as_u64().unwrap()).collect::<Vec<_>>(),
            (0..100).collect::<Vec<_>>()
        );
        assert_eq!(panic["message_of_panic"], "on purpose");
        assert!(!output.status.success());
    }
}
