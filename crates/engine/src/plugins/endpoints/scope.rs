//! Which plugins a request concerns.

use std::sync::Arc;

use admission::review::UserInfo;
use admission::{Denial, Findings, Reason, Unserved, Verdict};

use crate::plugins::compiled::{CompiledPlugin, Mode};
use crate::plugins::placement::Placement;
use crate::reasons;
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use crate::snapshot::Snapshot;

/// The plugins that a request concerns.
#[derive(Default)]
pub struct ConcernedPlugins<'s> {
    /// In their order, each with whether who asks is exempt.
    pub plugins: Vec<(&'s Arc<CompiledPlugin>, bool)>,
    /// What annotations of the namespace say.
    pub placement: Option<&'s Placement>,
    /// About what is not known without a cluster.
    pub warnings: Vec<String>,
}

/// Whether one of the plugins may refuse a request of this user.
pub fn binds(plugins: &[(&Arc<CompiledPlugin>, bool)]) -> bool {
    plugins.iter().any(|(plugin, is_exempt)| plugin.mode == Mode::Enforce && !is_exempt)
}

/// The warnings of plugins that cannot know what they would say: of those that only report, and offline of any that would refuse.
pub fn cannot_tell(plugins: &[(&Arc<CompiledPlugin>, bool)], why: &str) -> Vec<String> {
    let warning = plugins.iter().filter(|(plugin, is_exempt)| plugin.mode != Mode::Audit && !is_exempt);
    let text = |plugin: &CompiledPlugin| {
        format!("AdmissionPlugin {:?} ({}) cannot say whether it would refuse it: {why}", plugin.name, plugin.plugin)
    };
    warning.map(|(plugin, _)| text(plugin)).collect()
}

/// Refuses an object of which not all is read. Plugins that only report cannot tell.
pub fn refuse_unread(plugins: &[(&Arc<CompiledPlugin>, bool)], refusal: Denial, findings: &mut Findings) {
    if binds(plugins) {
        findings.denial = Some((Reason::TOO_LARGE, refusal));
    } else {
        findings.warnings.extend(cannot_tell(plugins, &refusal.message));
    }
}

/// The answer of a mutator about an object of which not all is read.
pub fn unread(concerned: &ConcernedPlugins<'_>, denial: Denial) -> Verdict {
    if binds(&concerned.plugins) {
        return Verdict::deny(Reason::TOO_LARGE, denial);
    }
    let mut verdict = Verdict::allow(reasons::NO_MATCH);
    verdict.warnings.clone_from(&concerned.warnings);
    verdict.warnings.extend(cannot_tell(&concerned.plugins, &denial.message));
    verdict
}

/// The same where the object may be in no namespace. Such a one concerns all, whatever namespaces they select: so the API server does
/// with the selector of an entry.
///
/// # Errors
/// As [`concerned`].
pub fn concerned_anywhere<'s>(
    snapshot: &'s Snapshot,
    namespace: &str,
    user: &UserInfo<'_>,
    chosen: impl Fn(&CompiledPlugin) -> bool,
) -> Result<ConcernedPlugins<'s>, Unserved> {
    if !namespace.is_empty() {
        return concerned(snapshot, namespace, user, chosen);
    }
    let all = snapshot.plugins.iter().filter(|one| chosen(one));
    Ok(ConcernedPlugins { plugins: all.map(|one| (one, one.exempts(user))).collect(), ..ConcernedPlugins::default() })
}

/// The plugins among `chosen` that the request of a user in a namespace concerns.
///
/// # Errors
/// [`Unserved::NamespaceUnknown`] when one needs to know a namespace that is not known yet, [`Unserved::NamespaceLabels`] when it
/// depends on labels that were not kept.
pub fn concerned<'s>(
    snapshot: &'s Snapshot,
    namespace: &str,
    user: &UserInfo<'_>,
    chosen: impl Fn(&CompiledPlugin) -> bool,
) -> Result<ConcernedPlugins<'s>, Unserved> {
    let mut found = ConcernedPlugins::default();
    if snapshot.plugins.is_empty() || snapshot.excludes(namespace) {
        return Ok(found);
    }
    let with_exemption = |plugin: &'s Arc<CompiledPlugin>| (plugin, plugin.exempts(user));
    if let Some(known) = snapshot.namespaces.known(namespace) {
        let candidates = if known.lacks_labels() {
            snapshot.plugins.iter().collect()
        } else {
            snapshot.plugins.candidates(known.labels())
        };
        for plugin in candidates.into_iter().filter(|one| chosen(one) && !one.excludes(namespace)) {
            match plugin.namespaces.as_ref().map_or(Some(true), |selector| known.is_selected(selector)) {
                Some(true) => found.plugins.push(with_exemption(plugin)),
                None if binds(&[with_exemption(plugin)]) => {
                    return Err(Unserved::NamespaceLabels(namespace.to_owned()));
                }
                _ => {}
            }
        }
        found.placement = known.placement();
        return Ok(found);
    }
    let named = &[(NAMESPACE_NAME_LABEL, namespace)][..];
    for plugin in snapshot.plugins.iter().filter(|one| chosen(one) && !one.excludes(namespace)) {
        let by_name = plugin.is_by_name_alone();
        if by_name && plugin.namespaces.as_ref().is_some_and(|selector| !selector.matches(named)) {
            continue;
        }
        if snapshot.namespaces_may_appear && (!by_name || plugin.reads_annotations()) {
            let one = [with_exemption(plugin)];
            if binds(&one) {
                return Err(Unserved::NamespaceUnknown(namespace.to_owned()));
            }
            let why = format!("namespace {namespace:?} has not been seen yet");
            found.warnings.extend(cannot_tell(&one, &why));
            continue;
        }
        let (name, what) = (&plugin.name, if by_name { "annotations" } else { "labels" });
        if !by_name || plugin.reads_annotations() {
            let counts = if by_name { "they count as absent" } else { "the plugin counts as not matching" };
            found.warnings.push(format!(
                "AdmissionPlugin {name:?} reads {what} of namespaces, and those of namespace {namespace:?} are not known; {counts}. \
                 Add the Namespace to the manifests"
            ));
        }
        if by_name {
            found.plugins.push(with_exemption(plugin));
        }
    }
    Ok(found)
}
