//! Whether the pod would still be legal with the set in it: what the API server judges by the pod as a whole.
//!
//! The closed list, with the place of each rule in Kubernetes' own validation, is `docs/legality.md`. What can be judged by
//! the set alone is refused when the set is written, and not looked at again here.

use std::collections::BTreeMap;

use admission::format::Quantity;
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use serde_json::Value;

use crate::pod::pairs::Pairs;
use crate::pod::view::{Container, PodView, name_of};
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::{Clash, INJECTED_ANNOTATION, Injection, Missing};
use crate::sidecarset::needs::{Needs, quantities};

/// The API server's default of `terminationGracePeriodSeconds`.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// Judges the pod with what is missing of the set added to it.
pub(super) fn check(injection: &Injection<'_, '_>, set: &CompiledSet, missing: &Missing<'_>) -> Result<(), Clash> {
    for piece in missing.containers() {
        check_container(injection.pod, set, piece)?;
        check_mounts(injection, set, piece, missing)?;
    }
    if missing.is_empty() {
        return Ok(());
    }
    check_annotations(injection, set)?;
    check_pod_resources(injection, set, missing)
}

fn check_container(pod: &PodView<'_>, set: &CompiledSet, piece: &Piece) -> Result<(), Clash> {
    let (spec, needs, name) = (&pod.spec, &piece.needs, &piece.name);
    let fail = |field: &str, text: String| Err(Clash::illegal(set, field, &text));
    if spec.host_network
        && let Some(port) = needs.ports.iter().find(|port| port.host_port != 0 && port.host_port != port.container_port)
    {
        return fail(
            "spec.hostNetwork",
            format!(
                "container {name:?} maps host port {} to port {}, and with the node's network both must be equal",
                port.host_port, port.container_port
            ),
        );
    }
    if needs.restarts_on_resize && spec.restart_policy.as_str() == "Never" {
        return fail(
            "spec.restartPolicy",
            format!("container {name:?} restarts on resize, and the pod never restarts"),
        );
    }
    if needs.unmasked_proc && spec.host_users != Some(false) {
        return fail(
            "spec.hostUsers",
            format!("container {name:?} has procMount Unmasked, which needs hostUsers: false"),
        );
    }
    if needs.has_devices && spec.host_users == Some(false) {
        return fail("spec.hostUsers", format!("container {name:?} has volumeDevices, which need the host's users"));
    }
    if needs.stop_signal && spec.os.is_none() {
        return fail("spec.os", format!("container {name:?} has a stopSignal, which needs spec.os.name"));
    }
    let grace = spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
    if needs.longest_sleep > grace {
        return fail(
            "spec.terminationGracePeriodSeconds",
            format!("container {name:?} sleeps {} s in a hook, the pod grants {grace} s", needs.longest_sleep),
        );
    }
    match needs.claims.iter().find(|claim| !spec.resource_claims.iter().any(|there| there.name.as_str() == **claim)) {
        Some(claim) => fail(
            "spec.resourceClaims",
            format!("container {name:?} uses resource claim {claim:?}, which the pod does not have"),
        ),
        None => Ok(()),
    }
}

/// Validation refuses a set whose containers mount what is not in its volumes, but may have been away.
fn check_mounts(
    injection: &Injection<'_, '_>,
    set: &CompiledSet,
    piece: &Piece,
    missing: &Missing<'_>,
) -> Result<(), Clash> {
    let in_pod = |name: &str| {
        let volumes = injection.pod.spec.volumes.as_deref().unwrap_or_default();
        volumes.iter().any(|volume| name_of(volume).as_str() == name)
    };
    let added = |name: &str| injection.added.volumes.iter().chain(&missing.volumes).any(|volume| volume.name == name);
    // What the set brings itself is in the pod or among what is missing.
    let own = |name: &str| set.volumes.iter().any(|volume| volume.name == name);
    let lacking = piece.needs.volumes.iter().find(|name| !own(name) && !added(name) && !in_pod(name));
    lacking.map_or(Ok(()), |volume| {
        let text =
            format!("container {:?} mounts volume {volume:?}, which neither the set nor the pod has", piece.name);
        Err(Clash::illegal(set, "spec.volumes", &text))
    })
}

/// All annotations of an object together are limited; the record of the sets counts too.
fn check_annotations(injection: &Injection<'_, '_>, set: &CompiledSet) -> Result<(), Clash> {
    let annotations = injection.pod.metadata.annotations.as_ref();
    let others: usize = annotations
        .into_iter()
        .flat_map(Pairs::iter)
        .filter(|(key, _)| *key != INJECTED_ANNOTATION)
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if others + INJECTED_ANNOTATION.len() + injection.record_len_with(set) > ANNOTATIONS_MAX_BYTES {
        return Err(Clash::illegal(
            set,
            "metadata.annotations",
            &format!("with the record of the set its annotations exceed {ANNOTATIONS_MAX_BYTES} bytes"),
        ));
    }
    Ok(())
}

type Amounts = BTreeMap<String, Quantity>;

/// With requests or limits for the pod as a whole, those of its containers must fit in
/// (`validatePodResourceConsistency` in `pkg/apis/core/validation`).
fn check_pod_resources(injection: &Injection<'_, '_>, set: &CompiledSet, missing: &Missing<'_>) -> Result<(), Clash> {
    let Some(raw) = injection.pod.spec.resources else { return Ok(()) };
    let pod: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let (requests, limits) = (quantities(pod.get("requests")), quantities(pod.get("limits")));
    for piece in missing.containers() {
        let too_much =
            piece.needs.limits.iter().find(|(name, limit)| limits.get(*name).is_some_and(|whole| *limit > whole));
        if let Some((name, limit)) = too_much {
            let text = format!("container {:?} has a limit of {limit} {name}, above the pod's own limit", piece.name);
            return Err(Clash::illegal(set, &format!("spec.resources.limits[{name}]"), &text));
        }
    }
    let total = aggregate_requests(injection, missing);
    match total.iter().find(|(name, sum)| requests.get(*name).is_some_and(|whole| *sum > whole)) {
        Some((name, sum)) => Err(Clash::illegal(
            set,
            &format!("spec.resources.requests[{name}]"),
            &format!("its containers would request {sum} {name}, more than the pod as a whole"),
        )),
        None => Ok(()),
    }
}

/// What all containers together request, as `AggregateContainerRequests` in `k8s.io/component-helpers` counts: containers and
/// native sidecars add up; a plain init container runs alone beside the native sidecars in front of it.
fn aggregate_requests(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Amounts {
    let spec = &injection.pod.spec;
    let added = &injection.added;
    let ours = |pieces: &[&Piece]| pieces.iter().map(|piece| piece.needs.clone()).collect::<Vec<Needs>>();
    let theirs = |containers: &[Container<'_>]| containers.iter().map(needs_of).collect::<Vec<Needs>>();
    let init = [
        ours(&added.init_before),
        ours(&missing.init_before),
        theirs(spec.init_containers()),
        ours(&added.init_after),
        ours(&missing.init_after),
    ];
    let running = [
        ours(&added.before),
        ours(&missing.before),
        theirs(spec.containers()),
        ours(&added.after),
        ours(&missing.after),
    ];
    let mut total = Amounts::new();
    running.iter().flatten().for_each(|needs| add(&mut total, &needs.requests));
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for needs in init.iter().flatten() {
        if needs.is_native_sidecar {
            add(&mut sidecars, &needs.requests);
            add(&mut total, &needs.requests);
            raise(&mut peak, &sidecars);
        } else {
            let mut alone = sidecars.clone();
            add(&mut alone, &needs.requests);
            raise(&mut peak, &alone);
        }
    }
    raise(&mut total, &peak);
    total
}

fn needs_of(container: &Container<'_>) -> Needs {
    let resources: Value = container.resources.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let limits = quantities(resources.get("limits"));
    let mut requests = limits.clone();
    requests.extend(quantities(resources.get("requests")));
    Needs { requests, limits, is_native_sidecar: container.is_native_sidecar(), ..Needs::default() }
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        total.entry(name.clone()).or_insert(Quantity::ZERO).add(amount);
    }
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let place = total.entry(name.clone()).or_insert(Quantity::ZERO);
        if amount > place {
            *place = amount.clone();
        }
    }
}
