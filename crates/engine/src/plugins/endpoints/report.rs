//! What the plugins decided on one request.

use admission::reply::Count;
use admission::{Denial, Findings, PatchWriter, Reason, Request, Verdict};

use super::AUDIT;
use crate::outcome::refuse;
use crate::plugins::change::Change;
use crate::plugins::compiled::{CompiledPlugin, Mode};
use crate::reasons;

/// Objects that the audit annotation names.
const NAMED: usize = 64;

/// The label of the metric for a code.
fn verdict(code: Reason) -> &'static str {
    match code {
        reasons::PLUGIN_CHANGED => "changed",
        reasons::PLUGIN_DENIED => "denied",
        reasons::PLUGIN_WOULD_CHANGE => "would_change",
        reasons::PLUGIN_WOULD_DENY => "would_deny",
        _ => "exempt",
    }
}

/// What was decided.
#[derive(Default)]
pub struct Report {
    codes: Vec<String>,
    left_out: usize,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// What says most.
    pub reason: Option<Reason>,
    /// Set when the request is refused.
    pub denial: Option<Denial>,
    /// What is counted.
    pub counts: Vec<Count>,
}

impl Report {
    fn note(&mut self, plugin: &CompiledPlugin, code: Reason) {
        self.counts.push(Count { by: plugin.plugin.name(), mode: plugin.mode.name(), verdict: verdict(code) });
        if self.codes.len() < NAMED {
            self.codes.push(format!("{}={code}", plugin.name));
        } else {
            self.left_out += 1;
        }
        if code == reasons::PLUGIN_CHANGED || self.reason.is_none() {
            self.reason = Some(code);
        }
    }

    /// Who asks is exempt from the plugin.
    pub fn exempt(&mut self, plugin: &CompiledPlugin) {
        self.note(plugin, reasons::PLUGIN_EXEMPT);
    }

    /// The plugin changes something. Returns whether the change is to be made.
    pub fn changes(&mut self, plugin: &CompiledPlugin, change: &Change<'_>) -> bool {
        if change.is_empty() {
            return false;
        }
        let enforced = plugin.mode == Mode::Enforce;
        let code = if enforced { reasons::PLUGIN_CHANGED } else { reasons::PLUGIN_WOULD_CHANGE };
        self.note(plugin, code);
        if plugin.mode == Mode::Warn {
            let what = change.in_words();
            self.warnings.push(format!("{code}: AdmissionPlugin {:?} ({}) would {what}", plugin.name, plugin.plugin));
        }
        enforced
    }

    /// The plugin refuses. Returns whether the request is refused.
    pub fn refuses<O>(&mut self, plugin: &CompiledPlugin, message: String, request: &Request<'_, O>) -> bool {
        self.refuses_as(plugin, message, |message| Denial::forbidden(request, message))
    }

    /// The same with a refusal of another kind.
    pub fn refuses_as(
        &mut self,
        plugin: &CompiledPlugin,
        message: String,
        denial: impl FnOnce(String) -> Denial,
    ) -> bool {
        if plugin.mode == Mode::Enforce {
            self.note(plugin, reasons::PLUGIN_DENIED);
            self.reason = Some(reasons::PLUGIN_DENIED);
            self.denial = Some(denial(message));
            return true;
        }
        let code = reasons::PLUGIN_WOULD_DENY;
        self.note(plugin, code);
        if plugin.mode == Mode::Warn {
            let (name, of) = (&plugin.name, plugin.plugin);
            self.warnings.push(format!("{code}: AdmissionPlugin {name:?} ({of}) would refuse it: {message}"));
        }
        false
    }

    /// What the check of a plugin found, which does not bind who is exempt. Returns whether the request is refused.
    pub fn checks<O>(
        &mut self,
        (plugin, is_exempt): (&CompiledPlugin, bool),
        found: Result<(), String>,
        request: &Request<'_, O>,
    ) -> bool {
        match found {
            Ok(()) => false,
            Err(_) if is_exempt => {
                self.exempt(plugin);
                false
            }
            Err(message) => self.refuses(plugin, message, request),
        }
    }

    /// The verdict with this patch; `otherwise` is the reason where no plugin decided anything.
    pub fn into_verdict(self, otherwise: Reason, patch: PatchWriter) -> Verdict {
        let mut verdict = Verdict::patch(self.reason.unwrap_or(otherwise), patch);
        verdict.audit.extend(self.audit());
        verdict.warnings = self.warnings;
        verdict.counts = self.counts;
        verdict
    }

    /// Adds everything but the reason and the refusal.
    pub fn add_to(&mut self, findings: &mut Findings) {
        findings.warnings.append(&mut self.warnings);
        findings.audit.extend(self.audit());
        findings.counts.append(&mut self.counts);
    }

    /// Puts what was decided into the findings.
    pub fn finish(mut self, findings: &mut Findings) {
        findings.reason = self.reason.unwrap_or(reasons::ALLOWED);
        self.add_to(findings);
        if let Some(denial) = self.denial {
            refuse(findings, reasons::PLUGIN_DENIED, denial);
        }
    }

    /// The entry for the audit log, if there is anything to say.
    pub fn audit(&self) -> Option<(&'static str, String)> {
        let more = if self.left_out > 0 { format!(",and {} more", self.left_out) } else { String::new() };
        (!self.codes.is_empty()).then(|| (AUDIT, format!("{}{more}", self.codes.join(","))))
    }
}
