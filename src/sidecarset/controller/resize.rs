//! Gives containers of a pod other requests and limits, before anything else of a change: where that is refused, the pod stays as it is.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use serde_json::{Value, json};

use crate::answers::{code, said};
use crate::field_managers::{SIDECARSET, patching};
use crate::sidecarset::controller::change::{Failure, PodChanger, in_time};
use crate::sidecarset::controller::pod_patch::{in_place_state, resize_patch, state_patch};
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::records::IN_PLACE_STATE;
use engine::pod::in_place::Change;
use engine::sidecarset::compiled::CompiledSet;

/// What the API server answers to an object that is not valid.
const INVALID: u16 = 422;

/// Why containers were not resized.
#[derive(Debug)]
pub(super) enum NotResized {
    /// The API server does not do it in this pod, whenever it is asked.
    Invalid(String),
    /// It may do it another time.
    Failed(Failure),
}

impl From<Failure> for NotResized {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl PodChanger {
    /// Resizes the containers of `pod`, which is then as it is since. What they were is written down first: a leader that finds the pod
    /// half changed knows by it what it was. `is_begun` afterwards unless it is known that nothing restarts.
    pub(super) async fn resize(
        &self,
        set: &CompiledSet,
        (key, pod): (&PodKey, &mut Value),
        change: &Change,
        takes_place: bool,
        is_begun: &mut bool,
    ) -> Result<(), NotResized> {
        let (pods, params) = (self.pods(&key.namespace), patching(SIDECARSET));
        let state = in_place_state(pod, set, change, takes_place, Timestamp::now());
        let noted = state_patch(pod, &state);
        let written = in_time(pods.patch(&key.name, &params, &Patch::Strategic(&noted))).await?;
        see(pod, &written);
        let resize = resize_patch(pod, change);
        let resized = in_time(pods.patch_resize(&key.name, &params, &Patch::Strategic(&resize))).await;
        *is_begun = !matches!(resized, Err(Failure::Answer(_)));
        match resized {
            Ok(written) => see(pod, &written),
            Err(Failure::Answer(error)) if code(&error) == Some(INVALID) => {
                return Err(NotResized::Invalid(format!("the API server does not resize it: {}", said(&error))));
            }
            Err(failure) => return Err(failure.into()),
        }
        Ok(())
    }
}

/// Takes over what the next patch is made from.
fn see(pod: &mut Value, written: &Pod) {
    let state = written.metadata.annotations.as_ref().and_then(|annotations| annotations.get(IN_PLACE_STATE));
    let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.insert("resourceVersion".to_owned(), json!(written.metadata.resource_version));
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let (Some(annotations), Some(state)) = (annotations.as_object_mut(), state) {
        annotations.insert(IN_PLACE_STATE.to_owned(), json!(state));
    }
}
