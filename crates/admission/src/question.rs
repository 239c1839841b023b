//! What a decision must know and its read model does not say.
//!
//! Decisions send no requests. One that needs an answer from outside returns the question ([`Request::ask`](crate::Request::ask)); its
//! caller gets the answer, and runs the decision again with the answers so far.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::bounded::beginning;
use crate::review::UserInfo;

/// What a decision must know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// Whether a user may do something: a `SubjectAccessReview` of `authorization.k8s.io/v1`.
    Access(Access),
    /// Whether images may run: an `ImageReview` of `imagepolicy.k8s.io/v1alpha1`. A pod may have very many, and all who wait for the
    /// answer hold them.
    Images(Arc<Images>),
    /// An object that the read model may not have yet.
    Object(Object),
    /// The resources of a group and version: discovery.
    Resources(GroupVersion),
    /// Whether rate limits have a token left. Each is taken by being asked for, once in a review.
    Tokens(Vec<Token>),
}

impl Question {
    /// The word for metrics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Access(_) => "access",
            Self::Images(_) => "images",
            Self::Object(_) => "object",
            Self::Resources(_) => "resources",
            Self::Tokens(_) => "tokens",
        }
    }

    /// Bytes that it holds, about.
    pub fn size(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| TEXT + text.len()).sum::<usize>();
        TEXT + match self {
            Self::Access(access) => {
                let extra = access.extra.iter().map(|(key, values)| TEXT + key.len() + texts(values));
                access.user.len() + texts(&access.groups) + extra.sum::<usize>()
            }
            Self::Images(of) => {
                let annotations = of.annotations.iter().map(|(key, value)| 2 * TEXT + key.len() + value.len());
                texts(&of.images) + annotations.sum::<usize>()
            }
            Self::Object(_) | Self::Resources(_) => 0,
            Self::Tokens(tokens) => tokens.iter().map(|token| TEXT + token.key.len()).sum(),
        }
    }
}

/// Bytes of a text beside its own: where it is, and how long.
const TEXT: usize = 40;

/// Whether a user may do something with a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Name of the user, as the authenticator gave it.
    pub user: String,
    /// Their uid.
    pub uid: String,
    /// Their groups.
    pub groups: Vec<String>,
    /// What the authenticator adds.
    pub extra: BTreeMap<String, Vec<String>>,
    /// The verb, such as `get`.
    pub verb: String,
    /// API group, empty for the core group.
    pub group: String,
    /// API version; empty for any.
    pub version: String,
    /// The resource: the plural in URLs.
    pub resource: String,
    /// Sub-resource; empty for the object itself.
    pub sub_resource: String,
    /// Namespace; empty for the whole cluster.
    pub namespace: String,
    /// Name; empty for all objects.
    pub name: String,
}

impl Access {
    /// About the user of a request; the attributes are still to be filled in.
    pub fn by(user: &UserInfo<'_>) -> Self {
        let mut groups = Vec::new();
        user.groups.each(|group| groups.push(group.to_string()));
        let extra = user.extra.and_then(|extra| serde_json::from_str(extra.get()).ok());
        Self {
            user: user.username.to_string(),
            uid: user.uid.to_string(),
            groups,
            extra: extra.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// Whether the images of a pod may run.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Images {
    /// Who reviews them.
    pub backend: ImageBackend,
    /// Namespace of the pod.
    pub namespace: String,
    /// Images, as the containers of the pod name them.
    pub images: Vec<String>,
    /// Annotations of the pod that the reviewer reads.
    pub annotations: BTreeMap<String, String>,
}

/// Who reviews images, and how long an answer counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageBackend {
    /// Its name among those that the process knows.
    pub name: String,
    /// Seconds for which a yes counts; 0 where it does not.
    pub allow_ttl: u32,
    /// Seconds for which a no counts; 0 where it does not.
    pub deny_ttl: u32,
    /// Milliseconds between the first try and the second.
    pub retry_backoff: u32,
    /// Seconds for which a verdict is waited for. A review that has less time, as the client gave its own request less, ends without one.
    pub timeout_seconds: u32,
}

/// What a reviewer of images said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageVerdict {
    /// Whether the images may run.
    pub allowed: bool,
    /// Why not.
    pub reason: String,
    /// What the audit log is to have.
    pub audit: BTreeMap<String, String>,
}

/// An object that the snapshot may not have yet, by which it is requested.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// The resource: the plural in URLs.
    pub resource: String,
    /// Namespace; empty for an object without one.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

/// An API group and version.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
}

/// `group/version`, as manifests have it.
impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version } = self;
        if group.is_empty() { f.write_str(version) } else { write!(f, "{group}/{version}") }
    }
}

/// A rate limit, with a bucket of tokens for each key.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateLimit {
    /// Which of them: two that are named alike and limit alike are one.
    pub name: String,
    /// Tokens that a bucket gains in a second.
    pub qps: u32,
    /// Tokens that a bucket holds, and begins with.
    pub burst: u32,
    /// Buckets that are kept: the one that was not used for longest goes.
    pub buckets: u32,
}

/// A token of a bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// By which the bucket is filled.
    pub limit: RateLimit,
    /// The bucket.
    pub key: String,
}

/// As text, for the user who learns that there was no answer.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |namespace: &str| if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
        match self {
            Self::Access(Access { user, verb, resource, sub_resource, namespace, .. }) => {
                let slash = if sub_resource.is_empty() { "" } else { "/" };
                write!(f, "whether {user} may {verb} {resource}{slash}{sub_resource}{}", place(namespace))
            }
            Self::Images(of) => write!(f, "whether {} may run{}", few(&of.images), place(&of.namespace)),
            Self::Object(Object { resource, name, namespace, .. }) => {
                write!(f, "whether there is {resource}/{name}{}", place(namespace))
            }
            Self::Resources(of) => write!(f, "which resources {of} has"),
            Self::Tokens(_) => f.write_str("whether a rate limit is reached"),
        }
    }
}

/// Images that a text names; a pod may have very many.
const NAMED: usize = 8;
/// Bytes that it has of each image.
const NAME_BYTES: usize = 256;

fn few(images: &[String]) -> String {
    let first = images.iter().take(NAMED).map(|image| beginning(image, NAME_BYTES)).collect::<Vec<_>>().join(", ");
    match images.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// To [`Question::Access`], and to [`Question::Images`] where there is no backend to review them.
    Allowed(bool, String),
    /// To [`Question::Images`].
    Images(Arc<ImageVerdict>),
    /// To [`Question::Access`]: no, but an authorizer failed, and might have said yes.
    Unsure {
        /// What the authorizers say.
        reason: String,
        /// What failed.
        error: String,
    },
    /// To [`Question::Object`]: the object, if there is one.
    Object(Option<Value>),
    /// To [`Question::Resources`]: those of objects, without sub-resources; none where there is no such version.
    Resources(Arc<[ServedResource]>),
    /// To any question whose answer is that it cannot be answered, and why.
    Failed(String),
    /// To [`Question::Tokens`]: whether there was one, in the order of the question.
    Tokens(Vec<bool>),
}

/// A resource that the API server serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedResource {
    /// Kind of its objects.
    pub kind: String,
    /// The plural in URLs.
    pub resource: String,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

impl Known {
    /// Whether it is a yes. That there is an object is one as well.
    pub fn is_yes(&self) -> bool {
        match self {
            Self::Allowed(allowed, _) => *allowed,
            Self::Images(verdict) => verdict.allowed,
            Self::Object(object) => object.is_some(),
            Self::Resources(resources) => !resources.is_empty(),
            Self::Failed(_) | Self::Unsure { .. } => false,
            Self::Tokens(taken) => taken.iter().all(|taken| *taken),
        }
    }
}

/// The answers so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    known: BTreeMap<Question, Known>,
    is_final: bool,
}

impl Answers {
    /// No answer.
    pub const NONE: &Self = &Self { known: BTreeMap::new(), is_final: false };

    /// An answer, if there is one.
    pub fn get(&self, question: &Question) -> Option<&Known> {
        self.known.get(question)
    }

    /// Adds an answer.
    pub fn insert(&mut self, question: Question, answer: Known) {
        self.known.insert(question, answer);
    }

    /// Marks them as all that there will be: a decision that can do without the others is to be taken now.
    pub const fn close(&mut self) {
        self.is_final = true;
    }

    /// Whether no further answer will come.
    pub const fn is_final(&self) -> bool {
        self.is_final
    }
}
