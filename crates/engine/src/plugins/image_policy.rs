//! `ImagePolicyWebhook`: a backend outside the cluster's own servers says whether images may run.

use std::collections::BTreeMap;

use admission::question::{ImageBackend, ImageVerdict, Images};

use super::forbidden;
use super::pod_facts::{PodFacts, Spec};
use crate::plugins::change::List;
use crate::pod::borrowed_map::BorrowedMap;

/// What the keys of annotations contain that the backend is sent.
const SENT: &str = ".image-policy.k8s.io/";
/// Key of the audit annotation of a pod that was let through because the backend failed. The API server's own plugin has it behind
/// the prefix `imagepolicywebhook.image-policy.k8s.io/`; a webhook's key has no slash, and the webhook's name in front.
pub const FAILED_OPEN: &str = "failed-open";
/// Key of the Secret with the kubeconfig, unless another is given.
pub const KUBECONFIG: &str = "kubeconfig";

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImagePolicy {
    /// Who reviews images.
    pub backend: ImageBackend,
    /// Whether images may run while the backend gives no verdict on them.
    pub default_allow: bool,
}

/// What a backend said of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed<'k> {
    /// What it decided.
    Verdict(&'k ImageVerdict),
    /// A yes without one, where there is no backend.
    Allowed,
    /// Nothing, and why.
    Failed(&'k str),
}

/// What the backend is asked: the images of a pod, or those of its ephemeral containers alone where the request is for those.
pub fn images(backend: &ImageBackend, pod: &PodFacts<'_>, spec: &Spec<'_>, namespace: &str, ephemeral: bool) -> Images {
    let lists = if ephemeral { &[List::Ephemeral][..] } else { &[List::Containers, List::Init] };
    let containers = lists.iter().flat_map(|list| spec.list(*list));
    let annotations: BTreeMap<String, String> = pod
        .metadata
        .annotations
        .iter()
        .flat_map(BorrowedMap::iter)
        .filter(|(key, _)| key.contains(SENT))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    Images {
        backend: backend.clone(),
        namespace: namespace.to_owned(),
        images: containers.map(|container| container.image.to_string()).collect(),
        annotations,
    }
}

impl ImagePolicy {
    /// Whether the pod is let through, in the words of the API server's own plugin
    /// (`k8s.io/kubernetes/plugin/pkg/admission/imagepolicy`).
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn check(&self, reviewed: &Reviewed<'_>, name: &str) -> Result<(), String> {
        let why = match reviewed {
            Reviewed::Allowed => return Ok(()),
            Reviewed::Verdict(verdict) if verdict.allowed => return Ok(()),
            Reviewed::Failed(_) if self.default_allow => return Ok(()),
            Reviewed::Verdict(verdict) if verdict.reason.is_empty() => {
                "one or more images rejected by webhook backend".to_owned()
            }
            Reviewed::Verdict(verdict) => {
                format!("image policy webhook backend denied one or more images: {}", verdict.reason)
            }
            Reviewed::Failed(why) => (*why).to_owned(),
        };
        Err(forbidden("pods", name, &why))
    }

    /// What the audit log has of it.
    pub fn audit(&self, reviewed: &Reviewed<'_>) -> BTreeMap<String, String> {
        match reviewed {
            Reviewed::Verdict(verdict) => verdict.audit.clone(),
            Reviewed::Failed(_) if self.default_allow => BTreeMap::from([(FAILED_OPEN.to_owned(), "true".to_owned())]),
            _ => BTreeMap::new(),
        }
    }
}
