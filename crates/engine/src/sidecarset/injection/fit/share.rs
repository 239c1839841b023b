//! `shareVolumePolicy`, `shareVolumeDevicePolicy` and `shareServiceAccountToken`: mounts and devices of the pod's own containers.
//!
//! A container's own mount wins over one at the same path. Of two containers that mount at one path the first wins.

use std::collections::BTreeMap;

use admission::raw::{member, string};
use serde_json::Value;
use serde_json::value::RawValue;

use super::sources::Own;
use super::{Container, DecodeRoom, Fitting, TooMuch, same_path};
use crate::sidecarset::api::text;
use crate::sidecarset::references::references;

/// Where containers have the token of the pod's service account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What the containers of a pod have to share.
#[derive(Default)]
pub(super) struct Shared<'p> {
    mounts: SharedMounts<'p>,
    devices: SharedMounts<'p>,
}

/// Mounts, or devices, of which the first at each path counts.
#[derive(Default)]
struct SharedMounts<'p> {
    all: Vec<SharedMount<'p>>,
    by_path: BTreeMap<String, usize>,
}

/// A mount or device, and the position of the container that has it.
struct SharedMount<'p> {
    path: String,
    volume: String,
    of: usize,
    element: Value,
    raw: &'p RawValue,
}

impl SharedMount<'_> {
    /// The API server mounts tokens so. With a sub-path the container would get variables of any name that the pod's author chooses,
    /// and sharing a token is no leave for that.
    fn is_whole_volume(&self) -> bool {
        ["subPath", "subPathExpr"].iter().all(|field| text(&self.element, field).is_empty())
    }
}

impl<'p> Shared<'p> {
    fn of<'o>(containers: impl Iterator<Item = (usize, &'o Own<'p>)>) -> Result<Self, TooMuch>
    where
        'p: 'o,
    {
        let mut left = DecodeRoom::all();
        let mut shared = Self::default();
        for (of, container) in containers {
            for raw in container.mounts() {
                shared.mounts.add(raw, of, "mountPath", &mut left)?;
            }
            for raw in container.devices() {
                shared.devices.add(raw, of, "devicePath", &mut left)?;
            }
        }
        Ok(shared)
    }
}

impl<'p> SharedMounts<'p> {
    /// Takes in what is at a path where nothing is yet. Containers of one pod often mount at the same places, and each is shared once.
    fn add(&mut self, raw: &'p RawValue, of: usize, field: &str, left: &mut DecodeRoom) -> Result<(), TooMuch> {
        let Some(path) = member(raw, field) else { return Ok(()) };
        // Each path is decoded, also one that is not shared as there is something already.
        left.take_text(path)?;
        let Some(path) = path_of(path).filter(|path| !self.by_path.contains_key(path)) else { return Ok(()) };
        left.take(raw)?;
        if let Some(place) = place(raw, of, &path) {
            self.by_path.insert(path, self.all.len());
            self.all.push(place);
        }
        Ok(())
    }
}

/// The path of a mount or device, of which nothing else is decoded.
fn path_of(raw: &RawValue) -> Option<String> {
    let path = string(raw)?;
    Some(same_path(&path).to_owned()).filter(|path| !path.is_empty())
}

fn place<'p>(raw: &'p RawValue, of: usize, path: &str) -> Option<SharedMount<'p>> {
    let element: Value = serde_json::from_str(raw.get()).ok()?;
    let volume = text(&element, "name").to_owned();
    (!volume.is_empty()).then(|| SharedMount { path: path.to_owned(), volume, of, element, raw })
}

impl<'p> Fitting<'p, '_> {
    pub(super) fn share(&mut self, container: &mut Container<'_>) -> Result<(), TooMuch> {
        let plan = container.plan;
        if !(plan.shares_mounts || plan.shares_devices || plan.shares_token) {
            return Ok(());
        }
        let at = usize::from(container.set.is_must());
        let shared = self.shared.get_mut(at).and_then(Option::take);
        let shared = match shared {
            Some(shared) => shared,
            None => Shared::of(self.sources.own(container.set.is_must()))?,
        };
        let done = self.share_from(&shared, container);
        if let Some(place) = self.shared.get_mut(at) {
            *place = Some(shared);
        }
        done
    }

    fn share_from(&mut self, shared: &Shared<'p>, container: &mut Container<'_>) -> Result<(), TooMuch> {
        let plan = container.plan;
        let mut paths = container.own_paths();
        let mut mounted = container.own_names("volumeMounts");
        let mut devices = container.own_names("volumeDevices");
        let token = shared
            .mounts
            .by_path
            .get(TOKEN_PATH)
            .and_then(|at| shared.mounts.all.get(*at))
            .filter(|it| it.is_whole_volume());
        let mounts = shared.mounts.all.iter().filter(|_| plan.shares_mounts);
        for mount in mounts.chain(token.filter(|_| plan.shares_token)) {
            // The API server takes no volume as a directory and as a device of one container.
            self.left.take(mount.raw)?;
            if paths.contains(&mount.path) || devices.contains(&mount.volume) {
                continue;
            }
            paths.insert(mount.path.clone());
            mounted.insert(mount.volume.clone());
            let mut element = mount.element.clone();
            if let Value::Object(fields) = &mut element
                && fields.get("mountPropagation").is_some_and(|it| it == "Bidirectional")
                && !container.is_privileged()
            {
                // Only privileged containers may have that. What the node mounts there is seen all the same.
                fields.insert("mountPropagation".to_owned(), "HostToContainer".into());
            }
            self.variables_of_path(container, mount)?;
            container.taken.volume_mounts.push(element);
        }
        if plan.shares_token && token.is_none() && !paths.contains(TOKEN_PATH) {
            container.warn("shareServiceAccountToken has nothing to share: no container of the pod mounts the token of its service account");
        }
        for device in shared.devices.all.iter().filter(|_| plan.shares_devices) {
            self.left.take(device.raw)?;
            if paths.contains(&device.path) || mounted.contains(&device.volume) {
                continue;
            }
            if !devices.insert(device.volume.clone()) {
                container.warn(&format!(
                    "block device {:?} is not shared at {:?}: a container can have a device at one path only",
                    device.volume, device.path
                ));
                continue;
            }
            paths.insert(device.path.clone());
            container.taken.volume_devices.push(device.element.clone());
        }
        Ok(())
    }

    /// The variables that a mount's `subPathExpr` refers to, and those that these refer to, in an order in which the kubelet
    /// resolves them.
    fn variables_of_path(&mut self, container: &mut Container<'_>, mount: &SharedMount<'_>) -> Result<(), TooMuch> {
        let expression = text(&mount.element, "subPathExpr");
        let mut open: Vec<(String, bool)> =
            references(expression).into_iter().rev().map(|name| (name.to_owned(), false)).collect();
        while let Some((name, are_others_there)) = open.pop() {
            if !are_others_there && !container.decided.insert((mount.of, name.clone())) {
                continue;
            }
            let Some(raw) = self.sources.at(mount.of).and_then(|own| own.variable(&name)) else { continue };
            // Once before the variables that it refers to, and once behind them.
            self.left.take(raw)?;
            let Ok(variable) = serde_json::from_str::<Value>(raw.get()) else { continue };
            if are_others_there {
                container.add_variable(&name, variable);
                continue;
            }
            match container.variables.get(&name) {
                Some(known) if *known == variable => {}
                Some(_) => container.warn(&format!(
                    "the mount at {:?} has the sub-path {expression:?}, and variable {name:?} has another value here than in the \
                     pod's container, so that it is another directory",
                    mount.path
                )),
                None => {
                    let others = references(text(&variable, "value"));
                    open.push((name, true));
                    open.extend(others.into_iter().rev().map(|name| (name.to_owned(), false)));
                }
            }
        }
        Ok(())
    }
}
