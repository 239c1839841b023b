//! `PodTolerationRestriction`: pods get the tolerations of their namespace, and may have only those that an allow-list has.

use super::change::{PodChange, Tolerations};
use super::compiled::At;
use super::default_toleration_seconds::{NOT_READY, UNREACHABLE};
use super::placement::{DEFAULT_TOLERATIONS, Read, TOLERATIONS_WHITELIST};
use super::pod_facts::Spec;
use super::toleration::{AllowedTolerations, Cover, EXISTS, NO_EXECUTE, NO_SCHEDULE, Tolerated, Toleration, merged};

const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";

/// What Kubernetes itself adds: `DefaultTolerationSeconds`, this plugin, and the controller of every `DaemonSet`
/// (`AddOrUpdateDaemonPodTolerations` of k8s.io/kubernetes/pkg/controller/daemon/util).
const BUILT_IN: [&str; 7] = [
    NOT_READY,
    UNREACHABLE,
    "node.kubernetes.io/disk-pressure",
    MEMORY_PRESSURE,
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/network-unavailable",
];

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodTolerationRestriction {
    /// Tolerations of pods in namespaces without the annotation.
    pub default: Vec<Toleration<'static>>,
    /// What pods may tolerate in namespaces without the annotation; everything where empty.
    pub allowed: AllowedTolerations,
    /// Whether tolerations that Kubernetes itself adds are always allowed.
    pub allows_built_in: bool,
    /// Whether annotations of namespaces are read.
    pub reads_annotations: bool,
}

impl PodTolerationRestriction {
    /// A list of the namespace, or that of the configuration; and whether it is the namespace's.
    fn list<'s, T>(
        &'s self,
        own: &'s T,
        key: &str,
        at: &'s At<'_>,
        read: impl Fn(&'s super::placement::Placement) -> &'s Read<T>,
    ) -> Result<(&'s T, bool), String> {
        let placement = at.placement.filter(|_| self.reads_annotations);
        match placement.and_then(|placement| read(placement).as_ref()) {
            None => Ok((own, false)),
            Some(Ok(list)) => Ok((list, true)),
            Some(Err(error)) => Err(at.annotation(key, error)),
        }
    }

    /// What is to be changed in a new pod.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn change<'a>(&self, spec: &Spec<'a>, at: &At<'_>) -> Result<PodChange<'a>, String> {
        if at.is_mirror {
            return Ok(PodChange::default());
        }
        let (defaults, _) =
            self.list(&self.default, DEFAULT_TOLERATIONS, at, |placement| &placement.default_tolerations)?;
        let more = (!spec.is_best_effort()).then(memory_pressure);
        let extra: Vec<Tolerated<'a>> = defaults.iter().cloned().chain(more).map(Tolerated::from).collect();
        if extra.is_empty() {
            // Only where something is added are lists merged.
            self.within(spec.tolerations().iter().map(|one| &one.toleration), at)?;
            return Ok(PodChange::default());
        }
        let own = spec.tolerations().len();
        let all: Vec<&Toleration<'_>> = spec.tolerations().iter().chain(&extra).map(|one| &one.toleration).collect();
        let kept = merged(&all);
        self.within(all.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|(one, _)| one), at)?;
        let (of_own, of_extra) = kept.split_at(own);
        let added = extra.into_iter().zip(of_extra).filter(|(_, kept)| **kept).map(|(one, _)| one);
        let tolerations = if of_own.iter().all(|kept| *kept) {
            Tolerations::Added(added.collect())
        } else {
            let rest = spec.tolerations().iter().zip(of_own).filter(|(_, kept)| **kept).map(|(one, _)| one.clone());
            Tolerations::Replaced(rest.chain(added).collect())
        };
        Ok(PodChange { tolerations, ..PodChange::default() })
    }

    /// What is to be added to a pod that is changed. Tolerations of a pod can only be added to.
    pub fn change_update<'a>(spec: &Spec<'a>) -> PodChange<'a> {
        let pressure = memory_pressure();
        let covered = || Cover::of(spec.tolerations().iter().map(|one| &one.toleration)).covers(&pressure);
        if spec.is_best_effort() || covered() {
            return PodChange::default();
        }
        PodChange { tolerations: Tolerations::Added(vec![pressure.into()]), ..PodChange::default() }
    }

    /// Judges a pod as it is to be stored.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn check(&self, spec: &Spec<'_>, at: &At<'_>) -> Result<(), String> {
        if at.is_mirror { Ok(()) } else { self.within(spec.tolerations().iter().map(|one| &one.toleration), at) }
    }

    fn within<'t, 'a: 't>(
        &self,
        tolerations: impl Iterator<Item = &'t Toleration<'a>>,
        at: &At<'_>,
    ) -> Result<(), String> {
        let mut tolerations = tolerations.peekable();
        if tolerations.peek().is_none() {
            return Ok(());
        }
        let (allowed, is_own) =
            self.list(&self.allowed, TOLERATIONS_WHITELIST, at, |placement| &placement.allowed_tolerations)?;
        if allowed.is_empty() {
            return Ok(());
        }
        let mut tolerations = tolerations.filter(|one| !(self.allows_built_in && is_built_in(one)));
        if tolerations.all(|one| allowed.covers(one)) {
            return Ok(());
        }
        let whose = if is_own { "namespace" } else { "cluster" };
        Err(format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its {whose} whitelist"
        ))
    }
}

fn memory_pressure() -> Toleration<'static> {
    Toleration::exists(MEMORY_PRESSURE, NO_SCHEDULE, None)
}

/// Whether it is one that Kubernetes itself adds.
pub fn is_built_in(one: &Toleration<'_>) -> bool {
    let key = one.key.as_str();
    let effect = if matches!(key, NOT_READY | UNREACHABLE) { NO_EXECUTE } else { NO_SCHEDULE };
    one.operator.as_str() == EXISTS && one.value.is_empty() && one.effect.as_str() == effect && BUILT_IN.contains(&key)
}
