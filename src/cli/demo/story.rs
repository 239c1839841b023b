//! What the demo prints.

use std::fmt::Write as _;
use std::path::Path;

use admission::bounded::ellipsis;
use serde_json::Value;

use crate::cli::diff::{coloured, unified};
use crate::server::Addresses;
use engine::offline::admit::Reply;
use engine::yaml;

/// Longer lines of the difference are cut: our annotation would fill a screen.
const WIDTH: usize = 100;

/// Everything that is printed.
pub struct Story<'a> {
    /// File with the sets.
    pub sets: &'a Path,
    /// File with the review.
    pub review: &'a Path,
    /// File with the certificate of the authority.
    pub ca_file: &'a Path,
    /// Where the review was sent.
    pub url: &'a str,
    /// The path of it.
    pub path: &'a str,
    /// The ports.
    pub addresses: Addresses,
    /// The pod that was sent.
    pub before: &'a Value,
    /// Whether the demo ends once this is printed.
    pub once: bool,
    /// The pod that would be stored.
    pub after: &'a Value,
    /// What the server said.
    pub reply: &'a Reply,
}

impl Story<'_> {
    /// The text.
    pub fn text(&self, in_colour: bool) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text, in_colour);
        text
    }

    fn write(&self, text: &mut String, in_colour: bool) -> std::fmt::Result {
        let Self { sets, url, path, .. } = self;
        if self.once {
            writeln!(text, "Outrider served the SidecarSets of its example")?;
            writeln!(text, "and was sent a new pod to review, as the API server sends it: POST {path}\n")?;
        } else {
            writeln!(text, "Outrider is serving the SidecarSets of {}", sets.display())?;
            writeln!(text, "and was sent a new pod to review, as the API server sends it: POST {url}\n")?;
        }
        self.verdict(text)?;
        let difference = self.difference();
        writeln!(text, "\n{}", if in_colour { coloured(&difference) } else { difference })?;
        if self.once { what_next(text) } else { self.invite(text) }
    }

    /// What there is to do while the demo serves.
    fn invite(&self, text: &mut String) -> std::fmt::Result {
        let Self { sets, review, ca_file, url, .. } = self;
        let curl = format!(
            "curl -s --cacert {} -H 'Content-Type: application/json' --data @{} {url}",
            ca_file.display(),
            review.display()
        );
        writeln!(text, "Send it again, from another terminal:\n\n  {curl}\n")?;
        writeln!(
            text,
            "and print the patch of the answer:\n\n  {curl} |\n    sed 's/.*\"patch\":\"\\([^\"]*\\)\".*/\\1/' | \
             base64 -d\n"
        )?;
        writeln!(text, "Change {} and send it again: the file is read again within two seconds.", sets.display())?;
        for (what, address, path) in
            [("Health: ", self.addresses.health, "readyz?verbose"), ("Metrics:", self.addresses.metrics, "metrics")]
        {
            if let Some(address) = address {
                writeln!(text, "{what} http://{address}/{path}")?;
            }
        }
        writeln!(text, "Ctrl-C ends the demo and removes its files.")
    }

    fn verdict(&self, text: &mut String) -> std::fmt::Result {
        let reply = self.reply;
        match (&reply.status, &reply.patch) {
            (Some(status), _) => writeln!(text, "Refused: {}", status.message)?,
            (None, Some(patch)) => writeln!(text, "Allowed, with a patch of {} operations.", patch.operations.len())?,
            (None, None) => writeln!(text, "Allowed as it is.")?,
        }
        for (key, title) in [("reason", "Reason:"), ("sets", "Sets:"), ("skipped", "Skipped:")] {
            if let Some(value) = reply.audit.get(key) {
                writeln!(text, "{title:<9}{value}")?;
            }
        }
        for warning in &reply.warnings {
            writeln!(text, "Warning: {warning}")?;
        }
        Ok(())
    }

    fn difference(&self) -> String {
        let whole = unified(&yaml::write(self.before), &yaml::write(self.after), "pod as sent", "pod as it will run");
        whole.lines().flat_map(|line| [ellipsis(line, WIDTH), "\n".to_owned()]).collect()
    }
}

/// What there is to do when it has ended: its ports and files are gone.
fn what_next(text: &mut String) -> std::fmt::Result {
    writeln!(text, "The demo has ended, and its files and ports are gone. What to do next:\n")?;
    for (command, what) in [
        ("outrider demo", "serve on, to send reviews with curl and to change the sets"),
        ("outrider render --manifests sidecarsets/ -f app.yaml -o diff", "see what sets of yours add to pods of yours"),
        ("outrider --help", "every command"),
    ] {
        writeln!(text, "  {command:<60}  {what}")?;
    }
    Ok(())
}
