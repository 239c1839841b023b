//! Whether a volume of a pod is a set's.

use serde_json::Value;

use crate::sidecarset::api::RawObject;
use crate::sidecarset::canonical::sorted_json;
use crate::sidecarset::compiled::VolumePiece;
use crate::sidecarset::defaults::image::pull_policy;

/// Whether the volume, in the form of [`strict_volume`](crate::sidecarset::canonical::strict_volume), is the set's. The admission
/// plugin `AlwaysPullImages` turns the policy of an image in a volume into `Always`, as that of a container.
pub(super) fn is_same(found: RawObject, ours: &VolumePiece) -> bool {
    let found = Value::Object(found);
    if sorted_json(&found) == *ours.canonical {
        return true;
    }
    let Value::Object(mut found) = found else { return false };
    let Ok(mut ours) = serde_json::from_str(&ours.canonical) else { return false };
    let policies = (take_policy(&mut ours), take_policy(&mut found));
    matches!(policies, (Some(_), Some(policy)) if policy == "Always") && found == ours
}

/// Takes the pull policy away, and says what it is: the default depends on the image. `None` where there is no image, or no word.
fn take_policy(volume: &mut RawObject) -> Option<String> {
    let Some(Value::Object(image)) = volume.get_mut("image") else { return None };
    match image.remove("pullPolicy") {
        Some(Value::String(policy)) => Some(policy),
        Some(_) => None,
        None => Some(pull_policy(image.get("reference")?.as_str()?).to_owned()),
    }
}
