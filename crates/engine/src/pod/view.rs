//! The fields of a pod that decisions read, borrowed from the body. Everything else is skipped in the same pass.

use std::fmt;

use admission::Text;
use admission::review::null_as_default;
use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::pod::borrowed_map::{self, BorrowedMap};
use crate::pod::decoded::Limited;
use crate::pod::limits::{self, Exceeded, at_most, at_most_or_none};
use crate::pod::owners::Owners;

/// On a pod that the kubelet made for a static pod; changing its API object changes nothing on the node.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// What decisions read of a pod, borrowed from the body.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct PodView<'a> {
    /// The metadata that decisions read.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: Metadata<'a>,
    /// The spec, as far as decisions read it.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub spec: Spec<'a>,
}

/// Metadata of a pod. The namespace is not here: the request's is the truth.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    /// Name; empty where the API server has yet to make one up.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The beginning of a name that the API server makes up.
    #[serde(borrow)]
    pub generate_name: Text<'a>,
    /// The labels, which selectors match.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub labels: BorrowedMap<'a>,
    /// Annotations; absent and empty differ for the patch.
    #[serde(borrow, deserialize_with = "borrowed_map::annotations")]
    pub annotations: Option<BorrowedMap<'a>>,
    /// What decisions read of its owners: whether a Job is among them, and which controls it.
    #[serde(borrow, rename = "ownerReferences")]
    pub owners: Owners<'a>,
    /// Set while the object is being deleted. Only what is stored says so: authors of new objects write what they like.
    pub deletion_timestamp: Option<IgnoredAny>,
    /// Whether the pod has metadata at all, which the patch has to make otherwise.
    #[serde(skip, default = "yes")]
    pub is_there: bool,
}

// The value of a field that no JSON sets: reached only when the object around it is there.
pub(crate) const fn yes() -> bool {
    true
}

impl Limited for PodView<'_> {
    fn exceeds(&self) -> Option<Exceeded> {
        let metadata = &self.metadata;
        limits::labels(&metadata.labels)
            .or_else(|| limits::annotations(metadata.annotations.as_ref()))
            .or_else(|| limits::spec(&self.spec))
    }
}

impl Metadata<'_> {
    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key)
    }
}

/// Spec of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Spec<'a> {
    /// Containers, as many as [`limits`] allows and one more.
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::CONTAINERS }>")]
    pub containers: Option<Vec<Container<'a>>>,
    /// Init containers, native sidecars among them; as many as of the containers.
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::CONTAINERS }>")]
    pub init_containers: Option<Vec<Container<'a>>>,
    /// Ephemeral containers, raw: the API server refuses new pods that have some.
    #[serde(borrow)]
    pub ephemeral_containers: Option<&'a RawValue>,
    /// Volumes, raw: only a volume of the same name as one of ours is looked into.
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::VOLUMES }>")]
    pub volumes: Option<Vec<&'a RawValue>>,
    /// Pull secrets, by name: a set adds those that are missing.
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::NAMES }>")]
    pub image_pull_secrets: Option<Vec<NameOnly<'a>>>,
    /// Claims that containers may refer to.
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, { limits::NAMES }>")]
    pub resource_claims: Vec<NameOnly<'a>>,
    /// The pod shares the node's network.
    #[serde(deserialize_with = "null_as_default")]
    pub host_network: bool,
    /// False when the pod has a user namespace of its own.
    pub host_users: Option<bool>,
    /// `Always`, `OnFailure` or `Never`; empty means `Always`.
    #[serde(borrow)]
    pub restart_policy: Text<'a>,
    /// Seconds that containers get to end; 30 when absent.
    pub termination_grace_period_seconds: Option<i64>,
    /// Security context of the pod as a whole: containers inherit from it.
    #[serde(borrow)]
    pub security_context: Option<&'a RawValue>,
    /// The operating system that the pod names.
    #[serde(borrow)]
    pub os: Option<NameOnly<'a>>,
    /// Node labels that the pod asks for.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub node_selector: BorrowedMap<'a>,
    /// The node that the pod runs on; empty where the scheduler chooses one.
    #[serde(borrow)]
    pub node_name: Text<'a>,
    /// Class of priority; empty where there is none.
    #[serde(borrow)]
    pub priority_class_name: Text<'a>,
    /// Whether there is a number, which follows from the class.
    pub priority: Option<IgnoredAny>,
    /// Whether there is a policy, which follows from the class.
    pub preemption_policy: Option<IgnoredAny>,
    /// Class of runtimes; empty where there is none.
    #[serde(borrow)]
    pub runtime_class_name: Text<'a>,
    /// Tolerations, raw: plugins alone read them.
    #[serde(borrow)]
    pub tolerations: Option<&'a RawValue>,
    /// Where the pod asks to run, raw: few pods name their operating system there.
    #[serde(borrow)]
    pub affinity: Option<&'a RawValue>,
    /// Requests and limits of the pod as a whole.
    #[serde(borrow)]
    pub resources: Option<&'a RawValue>,
    /// Whether the pod has a spec at all, which the patch has to make otherwise.
    #[serde(skip, default = "yes")]
    pub is_there: bool,
}

impl<'a> Spec<'a> {
    /// The containers, none where the list is absent.
    pub fn containers(&self) -> &[Container<'a>] {
        self.containers.as_deref().unwrap_or_default()
    }

    /// The init containers, none where the list is absent.
    pub fn init_containers(&self) -> &[Container<'a>] {
        self.init_containers.as_deref().unwrap_or_default()
    }
}

/// A container or init container of the pod.
#[derive(Debug, Default)]
pub struct Container<'a> {
    /// Name of the container.
    pub name: Text<'a>,
    /// Image of the container.
    pub image: Text<'a>,
    /// `Always`, `IfNotPresent`, `Never`, or empty.
    pub image_pull_policy: Text<'a>,
    /// Ports, raw: they matter only where a set has some, and a body may hold millions.
    pub ports: Option<&'a RawValue>,
    /// Security context, raw: it matters only for pods of Windows.
    pub security_context: Option<&'a RawValue>,
    /// Requests and limits.
    pub resources: Option<&'a RawValue>,
    /// `Always` makes an init container a native sidecar.
    pub restart_policy: Text<'a>,
    // The first key as it is in the body, quotes and escapes included, by which the whole container is found there.
    first_key: Option<&'a RawValue>,
}

impl<'a> Container<'a> {
    /// Whether the container, as an init container, keeps running beside the pod's containers.
    pub fn is_native_sidecar(&self) -> bool {
        self.restart_policy.as_str() == "Always"
    }

    /// The ports, which are known to be readable.
    pub fn ports(&self) -> Vec<Port<'a>> {
        #[derive(Default, Deserialize)]
        #[serde(transparent)]
        struct Ports<'a>(
            #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, { limits::PORTS }>")] Vec<Port<'a>>,
        );
        let ports = self.ports.and_then(|raw| serde_json::from_str::<Ports<'a>>(raw.get()).ok());
        ports.unwrap_or_default().0
    }

    /// The whole container as it is in the body that the pod was read from; `None` where it is not found there.
    ///
    /// Few containers are needed whole, so that to keep the text of each would cost every pod more than to find these.
    pub fn raw(&self, body: &'a str) -> Option<&'a RawValue> {
        let key = self.first_key?.get();
        let at = key.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
        let (before, rest) = body.split_at_checked(at)?;
        if !rest.starts_with(key) {
            return None;
        }
        let open = before.trim_ascii_end().strip_suffix('{')?.len();
        <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(body.get(open..)?)).ok()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Container<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ContainerVisitor)
    }
}

struct ContainerVisitor;

impl<'de> Visitor<'de> for ContainerVisitor {
    type Value = Container<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a container")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut container = Container { first_key: map.next_key()?, ..Container::default() };
        let first_key = container.first_key.map(|key| serde_json::from_str::<Text<'de>>(key.get()));
        let mut key = first_key.transpose().map_err(A::Error::custom)?;
        while let Some(field) = key {
            match field.as_str() {
                "name" => container.name = map.next_value()?,
                "image" => container.image = map.next_value()?,
                "imagePullPolicy" => container.image_pull_policy = map.next_value()?,
                "ports" => container.ports = map.next_value::<ReadablePorts<'_>>()?.0,
                "securityContext" => container.security_context = map.next_value()?,
                "resources" => container.resources = map.next_value()?,
                "restartPolicy" => container.restart_policy = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            key = map.next_key()?;
        }
        Ok(container)
    }
}

/// The ports of a container, raw.
#[derive(Deserialize)]
#[serde(transparent)]
struct ReadablePorts<'a>(#[serde(borrow, deserialize_with = "readable_ports")] Option<&'a RawValue>);

/// Reads every port and keeps none.
fn readable_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    struct Readable;
    impl<'de> Deserialize<'de> for Readable {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_seq(Self)
        }
    }
    impl<'de> Visitor<'de> for Readable {
        type Value = Self;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a sequence")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
            while seq.next_element::<Port<'de>>()?.is_some() {}
            Ok(self)
        }
    }
    let raw = Option::<&'de RawValue>::deserialize(deserializer)?;
    if let Some(raw) = raw {
        serde_json::from_str::<Readable>(raw.get()).map_err(D::Error::custom)?;
    }
    Ok(raw)
}

/// A port of a container.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Port<'a> {
    /// Port in the container.
    #[serde(deserialize_with = "null_as_default")]
    pub container_port: i32,
    /// Port on the node; 0 for none.
    #[serde(deserialize_with = "null_as_default")]
    pub host_port: i32,
    /// Address on the node; empty for all.
    #[serde(borrow, rename = "hostIP")]
    pub host_ip: Text<'a>,
    /// `TCP`, `UDP` or `SCTP`; empty means `TCP`.
    #[serde(borrow)]
    pub protocol: Text<'a>,
}

/// Anything whose name alone is read.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(remote = "Self", default)]
pub struct NameOnly<'a> {
    /// Name of the object.
    #[serde(borrow)]
    pub name: Text<'a>,
}

admission::only_objects!(PodView<'a>, Metadata<'a>, Spec<'a>, Port<'a>, NameOnly<'a>);

/// Whether a raw object has this name.
pub fn is_named(raw: &RawValue, name: &str) -> bool {
    // Most are others, and a search is cheaper than reading the object. Escapes can spell a name in many ways.
    let may_be = raw.get().contains(name) || raw.get().contains('\\');
    may_be && serde_json::from_str::<NameOnly<'_>>(raw.get()).is_ok_and(|named| named.name.as_str() == name)
}
