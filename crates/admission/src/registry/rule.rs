//! What an endpoint serves, and how the API server is asked to call it.

use crate::review::{GroupVersionKind, GroupVersionResource, Operation, Request};

use super::Phase;

/// Whether objects live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One for the whole cluster.
    Cluster,
    /// In a namespace.
    Namespaced,
    /// Objects in namespaces and in the cluster.
    Any,
}

/// `matchPolicy` of a webhook entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MatchPolicy {
    /// Only the versions that the rule names.
    Exact,
    /// Also other versions, converted to the one that the rule names.
    #[default]
    Equivalent,
}

/// `failurePolicy` of a webhook entry: what the API server does with a request when the webhook does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FailurePolicy {
    /// Refuses it.
    #[default]
    Fail,
    /// Lets it pass.
    Ignore,
    /// As the administrator chooses who installs the webhooks.
    Chosen,
}

/// In which namespaces the API server calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Namespaces {
    /// In all of them, and for objects without a namespace.
    #[default]
    All,
    /// Not in those that the administrator excludes who installs the webhooks.
    NotExcluded,
}

/// A resource, in the words of a webhook rule. `*` is any group, version, kind or resource, `pods/*` is `pods` with every
/// sub-resource, and `*/*` is everything (`Matcher` of k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// The plural in URLs; with a sub-resource both, such as `pods/resize`.
    pub resource: &'static str,
    /// Kind of the objects that the API server sends.
    pub kind: &'static str,
}

impl Resource {
    /// Resource and sub-resource, which is empty for the object itself.
    pub fn parts(&self) -> (&'static str, &'static str) {
        self.resource.split_once('/').unwrap_or((self.resource, ""))
    }

    /// Whether it has objects of this kind: not so a sub-resource.
    pub fn has_kind(&self, group: &str, version: &str, kind: &str) -> bool {
        self.parts().1.is_empty() && (self.group, self.version, self.kind) == (group, version, kind)
    }

    fn serves(&self, kind: &GroupVersionKind<'_>, resource: &GroupVersionResource<'_>, sub_resource: &str) -> bool {
        let fits = |wanted: &str, found: &str| wanted == "*" || wanted == found;
        let (plural, sub) = self.parts();
        // What is left out is not compared: the API server always sends it, who posts by hand may not.
        let has_kind = *kind == GroupVersionKind::default()
            || (fits(self.group, &kind.group) || !sub.is_empty()) && fits(self.kind, &kind.kind) && {
                // The kind of a sub-resource has a group of its own: an Eviction of pods is of the group policy.
                !sub.is_empty() || fits(self.version, &kind.version)
            };
        let has_resource = *resource == GroupVersionResource::default()
            || (fits(self.group, &resource.group)
                && fits(self.version, &resource.version)
                && fits(plural, &resource.resource));
        has_kind && has_resource && fits(sub, sub_resource)
    }

    fn in_words(&self) -> String {
        let (plural, sub) = self.parts();
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        let sub = if sub.is_empty() { String::new() } else { format!("/{sub}") };
        format!("{plural}{group}{sub} ({} {})", self.version, self.kind)
    }
}

/// A `matchConditions` entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatchCondition {
    /// Name, qualified.
    pub name: &'static str,
    /// CEL expression.
    pub expression: &'static str,
}

/// What an endpoint is called for.
///
/// ```
/// use admission::registry::{Phase, Resource, Rule, Scope};
/// const SETS: &[Resource] =
///     &[Resource { group: "apps.outrider.dev", version: "v1alpha1", resource: "sidecarsets", kind: "SidecarSet" }];
/// let rule = Rule { scope: Scope::Cluster, ..Rule::new("sidecarset.apps.outrider.dev", SETS, &[]) };
/// assert_eq!(rule.path(Phase::Mutating), "/mutate-apps-outrider-dev-v1alpha1-sidecarset");
///
/// const RESIZE: &[Resource] = &[Resource { group: "", version: "v1", resource: "pods/resize", kind: "Pod" }];
/// assert_eq!(Rule::new("resize.acme.example", RESIZE, &[]).path(Phase::Validating), "/validate--v1-pod-resize");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Name of the webhook entry, such as `sidecarset.apps.outrider.dev`.
    pub name: &'static str,
    /// What it is called for. The first one names the path.
    pub resources: &'static [Resource],
    /// The end of the path, where another rule begins with the same resource.
    pub suffix: &'static str,
    /// Scope of the resources.
    pub scope: Scope,
    /// Operations that the endpoint wants to see.
    pub operations: &'static [Operation],
    /// How other versions are treated.
    pub match_policy: MatchPolicy,
    /// What happens to a request when the webhook does not answer.
    pub failure_policy: FailurePolicy,
    /// How long the API server waits, in seconds, from 1 to 30.
    pub timeout_seconds: u8,
    /// In which namespaces it is called.
    pub namespaces: Namespaces,
    /// Whether the entry exists only while an object needs it.
    pub on_demand: bool,
    /// Conditions on the request, all of which must hold.
    pub match_conditions: &'static [MatchCondition],
    /// Names of definitions: with none of them in the cluster the entry has nothing to serve. Without a name here, that is so for a
    /// resource whose group is not one of Kubernetes' own, and its own definition.
    pub definitions: &'static [&'static str],
}

impl Rule {
    /// The API server's own default is ten seconds as well.
    pub const TIMEOUT_SECONDS: u8 = 10;

    /// A rule about namespaced resources in all namespaces, which fails closed.
    pub const fn new(name: &'static str, resources: &'static [Resource], operations: &'static [Operation]) -> Self {
        Self {
            name,
            resources,
            suffix: "",
            scope: Scope::Namespaced,
            operations,
            match_policy: MatchPolicy::Equivalent,
            failure_policy: FailurePolicy::Fail,
            timeout_seconds: Self::TIMEOUT_SECONDS,
            namespaces: Namespaces::All,
            on_demand: false,
            match_conditions: &[],
            definitions: &[],
        }
    }

    /// The path: `/mutate-<group with dashes>-<version>-<kind>`, or `/validate-…`, for a sub-resource with its name at the end.
    /// What is any is called `any`.
    pub fn path(&self, phase: Phase) -> String {
        let verb = match phase {
            Phase::Mutating => "mutate",
            Phase::Validating => "validate",
        };
        let any = |text: &str| if text == "*" { "any".to_owned() } else { text.replace('.', "-") };
        let Some(first) = self.resources.first() else { return format!("/{verb}") };
        let mut path =
            format!("/{verb}-{}-{}-{}", any(first.group), any(first.version), any(&first.kind.to_lowercase()));
        let (_, sub) = first.parts();
        for end in [sub, self.suffix].into_iter().filter(|end| !end.is_empty()) {
            path.push('-');
            path.push_str(&any(end));
        }
        path
    }

    /// Whether the request is about one of the resources. What a review leaves out of `kind` and `resource` is not compared.
    pub fn serves<O>(&self, request: &Request<'_, O>) -> bool {
        self.resources.iter().any(|served| served.serves(&request.kind, &request.resource, &request.sub_resource))
    }

    /// What it serves, in words.
    pub fn served(&self) -> String {
        self.resources.iter().map(Resource::in_words).collect::<Vec<_>>().join(", ")
    }

    /// Whether one of the resources has objects of this kind.
    pub fn has_kind(&self, group: &str, version: &str, kind: &str) -> bool {
        self.resources.iter().any(|served| served.has_kind(group, version, kind))
    }
}
