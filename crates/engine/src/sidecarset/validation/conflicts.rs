//! What two sets that can meet in one pod must not both bring.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use admission::field::{Error, ErrorList, Path};
use admission::format::{LabelSelector, Selector};
use serde_json::{Value, json};

use super::node::Node;
use super::{metadata as annotations, names, selectors};
use crate::sidecarset::api::{AppContainers, SidecarSetSpec};
use crate::sidecarset::app_containers::{self, AppPiece, Variable};
use crate::sidecarset::canonical::strict_volume;
use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL, NamespaceScope, bases};
use crate::sidecarset::index::SetIndex;
use crate::sidecarset::needs::{PortNeed, PortView};

/// Adds an error for everything of the set that another one, which can select the same pod, brings as well.
pub fn check(metadata: &Node<'_>, spec: &Node<'_>, sets: &SetIndex, errors: &mut ErrorList) {
    let mut conflicting = 0;
    for_each(metadata, spec, sets, |_, found| {
        conflicting += usize::from(!found.is_empty());
        errors.extend(found);
        if conflicting < NAMED {
            return ControlFlow::Continue(());
        }
        errors.push(Error::forbidden(&spec.path, "further SidecarSets may bring the same; correct these first"));
        ControlFlow::Break(())
    });
}

/// Conflicting sets that are named: of many sets that bring the same, each conflicts with all others.
const NAMED: usize = 32;

/// Names of the sets that bring something that an accepted set brings as well, each with what it is. Two such sets can be stored
/// while the webhook is away, or at one moment.
pub fn of_compiled(set: &CompiledSet, sets: &SetIndex) -> Vec<(String, String)> {
    let object = json!({"metadata": {"name": set.name, "annotations": set.annotations}, "spec": set.spec_value()});
    let (metadata, spec) = (Node::root(&object, "metadata"), Node::root(&object, "spec"));
    let mut conflicts = Vec::new();
    for_each(&metadata, &spec, sets, |other, found| {
        if !found.is_empty() {
            conflicts.push((other.name.clone(), found.to_string()));
        }
        ControlFlow::Continue(())
    });
    conflicts
}

/// Calls `f` with each set that can select the same pods, and with what both bring.
fn for_each(
    metadata: &Node<'_>,
    spec: &Node<'_>,
    sets: &SetIndex,
    mut f: impl FnMut(&CompiledSet, ErrorList) -> ControlFlow<()>,
) {
    let own_name = metadata.text("name");
    let annotations_written = metadata.child("annotations");
    let own_bases: Vec<&str> = bases(|key| annotations_written.value.get(key).and_then(Value::as_str)).collect();
    let Some(selector) = selectors::compiled(&spec.child("selector")) else { return };
    let namespaces = match (spec.text("namespace"), spec.get("namespaceSelector")) {
        ("", None) => None,
        ("", Some(node)) => selectors::compiled(&node),
        (name, _) => named(name),
    };
    let own_containers = container_names(spec);
    let volumes = spec.child("volumes");
    let volumes: Vec<&str> = volumes.items().map(|volume| volume.text("name")).collect();
    let variables = overwritten(spec);
    let names = own_containers.keys().map(String::as_str).chain(volumes).chain(annotations::keys(spec));
    let names = names.chain(variables.iter().map(|(variable, _)| variable.name.as_str()));
    let ports = host_ports(spec);
    for other in sets.rivals(names, ports.keys().copied(), &selector).filter(|other| other.name != own_name) {
        if !meet(&selector, namespaces.as_ref(), other) {
            continue;
        }
        // A canary takes the place of its base, so the two never meet in a pod.
        let is_base = other.bases.iter().any(|base| **base == *own_name);
        if !own_bases.contains(&other.name.as_str()) && !is_base {
            let (their_spec, mut errors) = (other.spec(), ErrorList::default());
            check_containers(&own_containers, &other.name, &their_spec, &mut errors);
            check_volumes(&spec.child("volumes"), &other.name, &their_spec, &mut errors);
            check_host_ports(&ports, other, &mut errors);
            annotations::check_against(spec, &other.name, &their_spec, &mut errors);
            check_variables(&variables, other, &mut errors);
            if f(other, errors).is_break() {
                return;
            }
        }
    }
}

fn named(namespace: &str) -> Option<Selector> {
    let match_labels = BTreeMap::from([(NAMESPACE_NAME_LABEL.to_owned(), namespace.to_owned())]);
    LabelSelector { match_labels, ..LabelSelector::default() }.compile().ok()
}

/// Whether some pod in some namespace is selected by both.
fn meet(selector: &Selector, namespaces: Option<&Selector>, other: &CompiledSet) -> bool {
    let in_one_namespace = namespaces.is_none_or(|own| match &other.scope {
        NamespaceScope::All => true,
        NamespaceScope::Named(name) => named(name).is_some_and(|other| own.overlaps(&other)),
        NamespaceScope::Selected { selector, .. } => own.overlaps(selector),
    });
    in_one_namespace && selector.overlaps(&other.selector)
}

/// The names of the set's own containers in a pod, and where they are written.
fn container_names(spec: &Node<'_>) -> HashMap<String, Path> {
    let mut names = HashMap::new();
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            for (name, _) in container.value.as_object().map(names::names_in_pod).unwrap_or_default() {
                names.insert(name, container.path.child("name"));
            }
        }
    }
    names
}

fn check_containers(own: &HashMap<String, Path>, other_name: &str, other: &SidecarSetSpec, errors: &mut ErrorList) {
    let theirs = other.init_containers.iter().chain(&other.containers).flatten();
    for (name, _) in theirs.flat_map(|container| names::names_in_pod(&container.0)) {
        if let Some(path) = own.get(&name) {
            let detail =
                format!("SidecarSet {other_name:?} adds a container of this name to pods that both sets select");
            errors.push(Error::invalid(path, name, detail));
        }
    }
}

fn check_volumes(list: &Node<'_>, other_name: &str, other: &SidecarSetSpec, errors: &mut ErrorList) {
    let theirs: HashMap<&str, _> =
        other.volumes.iter().flatten().filter_map(|volume| Some((volume.get("name")?.as_str()?, volume))).collect();
    for volume in list.items() {
        let (name, Value::Object(own)) = (volume.text("name"), volume.value) else { continue };
        if let Some(their) = theirs.get(name)
            && strict_volume((*their).clone()) != strict_volume(own.clone())
        {
            let detail = format!(
                "SidecarSet {other_name:?} adds a volume of this name with another source to pods that both sets select"
            );
            errors.push(Error::invalid(&volume.path.child("name"), name, detail));
        }
    }
}

/// The variables of the pod's own containers that the set overwrites, and where they are written.
fn overwritten(spec: &Node<'_>) -> Vec<(Variable, Path)> {
    let mut found = Vec::new();
    for entry in spec.child("appContainers").items() {
        let Ok(written) = serde_json::from_value::<AppContainers>(entry.value.clone()) else { continue };
        let (pieces, list) = (AppPiece::all(Some(&vec![written])), entry.child("env"));
        for variable in app_containers::overwritten(&pieces) {
            let path = list.items().find(|it| it.text("name") == variable.name).map(|it| it.path.child("name"));
            found.extend(path.map(|path| (variable.clone(), path)));
        }
    }
    found
}

/// In a pod the later of the two is skipped, whichever containers it names.
fn check_variables(own: &[(Variable, Path)], other: &CompiledSet, errors: &mut ErrorList) {
    for (variable, path) in own {
        let mut theirs = app_containers::overwritten(&other.app_containers);
        if theirs.any(|their| their.name == variable.name && !their.agrees_with(variable)) {
            let detail = format!(
                "SidecarSet {:?} overwrites this variable with another value in containers of pods that both sets select",
                other.name
            );
            errors.push(Error::invalid(path, variable.name.as_str(), detail));
        }
    }
}

/// The ports of the node that the set's containers take, by number, and where they are written. A plain init container has
/// ended when the others start: its ports conflict with none.
fn host_ports(spec: &Node<'_>) -> BTreeMap<i64, Vec<(PortNeed, Path)>> {
    let mut taken = BTreeMap::<i64, Vec<(PortNeed, Path)>>::new();
    for list in ["containers", "initContainers"] {
        let containers = spec.child(list);
        let running = containers.items().filter(|it| list == "containers" || it.text("restartPolicy") == "Always");
        for port in running.flat_map(|container| container.child("ports").items().collect::<Vec<_>>()) {
            let need = PortNeed::of(port.value);
            if need.host_port != 0 {
                taken.entry(need.host_port).or_default().push((need, port.path.child("hostPort")));
            }
        }
    }
    taken
}

fn check_host_ports(own: &BTreeMap<i64, Vec<(PortNeed, Path)>>, other: &CompiledSet, errors: &mut ErrorList) {
    let theirs = other.running().flat_map(|piece| &piece.needs.ports);
    let mut told = HashSet::new();
    for port in theirs.filter(|port| port.host_port != 0) {
        let rivals = own.get(&port.host_port).into_iter().flatten();
        // Each port of the set is reported once.
        for (index, (need, path)) in rivals.enumerate() {
            if takes(need.view(), port.view()) && told.insert((port.host_port, index)) {
                let detail =
                    format!("SidecarSet {:?} takes this port of the node for pods that both sets select", other.name);
                errors.push(Error::invalid(path, need.host_port, detail));
            }
        }
    }
}

/// Whether two ports of the node cannot both be had.
fn takes(one: PortView<'_>, other: PortView<'_>) -> bool {
    let meet = one.host_ip == other.host_ip || one.is_everywhere() || other.is_everywhere();
    one.on_node() == other.on_node() && meet
}
