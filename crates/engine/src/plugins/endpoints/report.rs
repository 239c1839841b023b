//! What the plugins decided on one request.

use std::borrow::Cow;
use std::sync::Arc;

use admission::reply::Count;
use admission::{Denial, Findings, PatchWriter, Reason, Request, Unserved, Verdict};

use super::AUDIT;
use crate::outcome::refuse;
use crate::plugins::change::PodChange;
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

/// How much a code says: what was done before what would be, and a refusal before a change.
fn weight(code: Reason) -> u8 {
    match code {
        reasons::PLUGIN_DENIED => 4,
        reasons::PLUGIN_CHANGED => 3,
        reasons::PLUGIN_WOULD_DENY => 2,
        reasons::PLUGIN_WOULD_CHANGE => 1,
        _ => 0,
    }
}

/// What was decided.
#[derive(Default)]
pub struct Report<'s> {
    notes: Vec<(&'s CompiledPlugin, Reason)>,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// Set when the request is refused.
    pub denial: Option<Denial>,
}

impl<'s> Report<'s> {
    /// One that has these sentences for the user.
    pub fn with(warnings: Vec<String>) -> Self {
        Self { warnings, ..Self::default() }
    }

    fn note(&mut self, plugin: &'s CompiledPlugin, code: Reason) {
        self.notes.push((plugin, code));
    }

    /// What was decided in the end: in a request that is refused, nothing is changed.
    fn decided(&self) -> impl Iterator<Item = &(&'s CompiledPlugin, Reason)> {
        self.notes.iter().filter(|(_, code)| self.denial.is_none() || *code != reasons::PLUGIN_CHANGED)
    }

    /// What says most.
    pub fn reason(&self) -> Option<Reason> {
        self.decided().map(|(_, code)| *code).max_by_key(|code| weight(*code))
    }

    /// One for each plugin that decided something, for `outrider_plugin_decisions_total`.
    pub fn counts(&self) -> Vec<Count> {
        let count = |(plugin, code): &(&CompiledPlugin, Reason)| Count {
            by: plugin.plugin.name(),
            mode: plugin.mode.name(),
            verdict: verdict(*code),
        };
        self.decided().map(count).collect()
    }

    /// Who asks is exempt from the plugin, which would have changed or refused something.
    pub fn exempt(&mut self, plugin: &'s CompiledPlugin) {
        self.note(plugin, reasons::PLUGIN_EXEMPT);
    }

    /// The plugin changes something, unless who asks is exempt. Returns whether the change is to be made.
    pub fn changes(&mut self, (plugin, is_exempt): (&'s CompiledPlugin, bool), change: &PodChange<'_>) -> bool {
        if change.is_empty() {
            return false;
        }
        if is_exempt {
            self.exempt(plugin);
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
    pub fn refuses<O>(&mut self, plugin: &'s CompiledPlugin, message: String, request: &Request<'_, O>) -> bool {
        self.refuses_as(plugin, message, |message| Denial::forbidden(request, message))
    }

    /// The same with a refusal of another kind.
    pub fn refuses_as(
        &mut self,
        plugin: &'s CompiledPlugin,
        message: String,
        denial: impl FnOnce(String) -> Denial,
    ) -> bool {
        if plugin.mode == Mode::Enforce {
            self.note(plugin, reasons::PLUGIN_DENIED);
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
        (plugin, is_exempt): (&'s CompiledPlugin, bool),
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

    /// Judges by each plugin in turn, up to the first that refuses.
    ///
    /// # Errors
    /// [`Unserved::OutOfTime`] when the deadline passes, and those of `check`.
    pub fn judge<O>(
        &mut self,
        plugins: Vec<(&'s Arc<CompiledPlugin>, bool)>,
        request: &Request<'_, O>,
        mut check: impl FnMut(&'s CompiledPlugin) -> Result<Result<(), String>, Unserved>,
    ) -> Result<(), Unserved> {
        for (plugin, is_exempt) in plugins {
            request.deadline.check()?;
            if self.checks((plugin, is_exempt), check(plugin)?, request) {
                break;
            }
        }
        Ok(())
    }

    /// The verdict with this patch; `otherwise` is the reason where no plugin decided anything.
    pub fn into_verdict(self, otherwise: Reason, patch: PatchWriter) -> Verdict {
        let mut verdict = Verdict::patch(self.reason().unwrap_or(otherwise), patch);
        verdict.audit.extend(self.audit());
        verdict.counts = self.counts();
        verdict.warnings = self.warnings;
        verdict
    }

    /// Adds everything but the reason and the refusal.
    pub fn add_to(&mut self, findings: &mut Findings) {
        findings.warnings.append(&mut self.warnings);
        findings.audit.extend(self.audit());
        findings.counts.extend(self.counts());
    }

    /// Puts what was decided into the findings.
    pub fn finish(mut self, findings: &mut Findings) {
        findings.reason = self.reason().unwrap_or(reasons::ALLOWED);
        self.add_to(findings);
        if let Some(denial) = self.denial {
            refuse(findings, reasons::PLUGIN_DENIED, denial);
        }
    }

    /// The entry for the audit log, if there is anything to say.
    pub fn audit(&self) -> Option<(Cow<'static, str>, String)> {
        let named = self.decided().take(NAMED).map(|(plugin, code)| format!("{}={code}", plugin.name));
        let mut all: Vec<String> = named.collect();
        let left_out = self.decided().skip(NAMED).count();
        if left_out > 0 {
            all.push(format!("and {left_out} more"));
        }
        (!all.is_empty()).then(|| (AUDIT.into(), all.join(",")))
    }
}
