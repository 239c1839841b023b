//! What a patch of the pod changes in the fields that plugins read.

use admission::Text;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Container, PodFacts};

#[derive(Deserialize)]
struct PatchOperation<'a> {
    #[serde(borrow)]
    op: Text<'a>,
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

impl<'a> PodFacts<'a> {
    /// Follows a patch of the pod, as far as it is about what is read here. What is elsewhere in the pod concerns no plugin.
    ///
    /// # Errors
    /// When the patch is no patch.
    pub fn follow(&mut self, patch: &'a [u8]) -> Result<(), serde_json::Error> {
        if patch.is_empty() {
            return Ok(());
        }
        for step in serde_json::from_slice::<Vec<PatchOperation<'a>>>(patch)? {
            self.take(&step)?;
        }
        Ok(())
    }

    fn take(&mut self, step: &PatchOperation<'a>) -> Result<(), serde_json::Error> {
        let json = step.value.map_or("null", RawValue::get);
        if step.path.as_str() == "/metadata" {
            self.metadata = serde_json::from_str(json)?;
            return Ok(());
        }
        if step.path.as_str() == "/metadata/annotations" {
            self.metadata.annotations = serde_json::from_str(json)?;
            return Ok(());
        }
        let Some(rest) = step.path.strip_prefix("/spec") else { return Ok(()) };
        if rest.is_empty() {
            self.spec = serde_json::from_str(json)?;
            return Ok(());
        }
        let Some(spec) = &mut self.spec else { return Ok(()) };
        let mut tokens = rest.trim_start_matches('/').splitn(3, '/');
        let (field, place, below) = (tokens.next().unwrap_or_default(), tokens.next(), tokens.next());
        match field {
            "containers" => follow_list(&mut spec.containers, place, below, step, container_field),
            "initContainers" => follow_list(&mut spec.init_containers, place, below, step, container_field),
            "volumes" => follow_list(&mut spec.volumes, place, below, step, |_, _, _| Ok(())),
            "tolerations" => follow_list(&mut spec.tolerations, place, below, step, |_, _, _| Ok(())),
            "nodeSelector" => {
                match place {
                    None => spec.node_selector = serde_json::from_str(json)?,
                    Some(key) => {
                        let key = key.replace("~1", "/").replace("~0", "~");
                        // A map of the pod's own never loses a label to a set.
                        let value: Text<'a> = serde_json::from_str(json)?;
                        spec.selected.insert(key, value.to_string());
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn follow_list<'a, T: Deserialize<'a>>(
    list: &mut Option<Vec<T>>,
    place: Option<&str>,
    below: Option<&str>,
    step: &PatchOperation<'a>,
    set_field: impl FnOnce(&mut T, &str, Option<&'a RawValue>) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let json = step.value.map_or("null", RawValue::get);
    let Some(place) = place else {
        *list = if step.op.as_str() == "remove" { None } else { serde_json::from_str(json)? };
        return Ok(());
    };
    let list = list.get_or_insert_default();
    let index = if place == "-" { list.len() } else { place.parse().unwrap_or(usize::MAX) };
    match (below, step.op.as_str()) {
        (Some(field), _) => list.get_mut(index).map_or(Ok(()), |element| set_field(element, field, step.value)),
        (None, "add") if index <= list.len() => {
            list.insert(index, serde_json::from_str(json)?);
            Ok(())
        }
        (None, "replace") => {
            if let Some(element) = list.get_mut(index) {
                *element = serde_json::from_str(json)?;
            }
            Ok(())
        }
        (None, "remove") if index < list.len() => {
            list.remove(index);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn container_field<'a>(
    container: &mut Container<'a>,
    field: &str,
    value: Option<&'a RawValue>,
) -> Result<(), serde_json::Error> {
    let json = value.map_or("null", RawValue::get);
    match field {
        "image" => container.image = serde_json::from_str(json)?,
        "imagePullPolicy" => container.image_pull_policy = serde_json::from_str(json)?,
        "resources" => container.resources = serde_json::from_str(json)?,
        "resources/requests" => container.resources.get_or_insert_default().requests = value,
        "resources/limits" => container.resources.get_or_insert_default().limits = value,
        _ => {}
    }
    Ok(())
}
