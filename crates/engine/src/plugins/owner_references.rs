//! `OwnerReferencesPermissionEnforcement`: an owner reference has an object deleted, or kept from being deleted, only for a user who
//! may do so directly.

use std::collections::{BTreeSet, HashMap, HashSet};

use admission::format::names::{dns1123_label, dns1123_subdomain};
use admission::question::{Access, GroupVersion, Known, Question, ServedResource};
use admission::review::{GroupVersionResource, UserInfo, null_as_default};
use admission::{Operation, Request, Text, Unserved};
use serde::Deserialize;

use super::{forbidden, said_name, shortened};
use crate::pod::limits::at_most_or_none;

/// Owner references that are read: each takes at least 14 bytes of what can be stored.
pub const REFERENCES: usize = 115_000;
/// Questions of one kind about one request.
const QUESTIONS: usize = 16;
/// Longest name of an owner that is asked for, in bytes: no object of Kubernetes has a longer one.
const NAME: usize = 253;

/// Who keeps a cluster alive: the controllers that create our own pods are among them. The match conditions of the entry say
/// the same.
pub const CONTROL_PLANE_USERS: [&str; 3] =
    ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"];
/// Groups of those.
pub const CONTROL_PLANE_GROUPS: [&str; 2] = ["system:masters", "system:serviceaccounts:kube-system"];

/// What is written all the time, or by what every request needs: group, a slash and the resource.
pub const LEFT_ALONE: [&str; 11] = [
    "/events",
    "authentication.k8s.io/selfsubjectreviews",
    "authentication.k8s.io/tokenreviews",
    "authorization.k8s.io/localsubjectaccessreviews",
    "authorization.k8s.io/selfsubjectaccessreviews",
    "authorization.k8s.io/selfsubjectrulesreviews",
    "authorization.k8s.io/subjectaccessreviews",
    "coordination.k8s.io/leases",
    "discovery.k8s.io/endpointslices",
    "events.k8s.io/events",
    concat!("policy.", api_domain!(), "/admissionplugins"),
];

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerReferences {
    /// Resources whose objects are covered, as `resource` or `resource.group`; all where empty.
    pub resources: BTreeSet<String>,
}

/// An object of any kind.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct OwnedFacts<'a> {
    /// The owners, and what names the object in a refusal.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: OwnedMetadata<'a>,
}

/// Metadata of an object of any kind.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct OwnedMetadata<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    generate_name: Text<'a>,
    /// The owners, cut behind the first that are too many.
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, REFERENCES>")]
    pub owner_references: Vec<OwnerReference<'a>>,
}

/// An entry of `metadata.ownerReferences`, as far as rights depend on it.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct OwnerReference<'a> {
    #[serde(borrow)]
    api_version: Text<'a>,
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    uid: Text<'a>,
    controller: Option<bool>,
    block_owner_deletion: Option<bool>,
}

admission::only_objects!(OwnedFacts<'a>, OwnedMetadata<'a>, OwnerReference<'a>);

impl OwnerReference<'_> {
    fn blocks(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}

impl OwnerReferences {
    /// Whether objects of the resource are covered.
    pub fn covers(&self, resource: &GroupVersionResource<'_>) -> bool {
        let listed = |text: &str| self.resources.contains(text);
        self.resources.is_empty() || listed(&resource.resource) || listed(&in_words(resource))
    }
}

/// Whether requests about the resource, or of the user, are never looked into.
pub fn is_left_alone(resource: &GroupVersionResource<'_>, sub_resource: &str, user: &UserInfo<'_>) -> bool {
    let place = format!("{}/{}", resource.group.as_str(), resource.resource.as_str());
    LEFT_ALONE.contains(&place.as_str())
        // The API server keeps owners of pods from being changed there; that of nodes is the heartbeat.
        || (["/pods", "/nodes"].contains(&place.as_str()) && sub_resource == "status")
        || CONTROL_PLANE_USERS.contains(&user.username.as_str())
        || CONTROL_PLANE_GROUPS.iter().any(|group| user.groups.contains(group))
}

fn in_words(resource: &GroupVersionResource<'_>) -> String {
    let dot = if resource.group.is_empty() { "" } else { "." };
    format!("{}{dot}{}", resource.resource.as_str(), resource.group.as_str())
}

/// What came out: nothing, or why the request is refused.
type Judged = Result<(), String>;

/// Judges an object as it is to be, and as it was: what its author may do decides.
///
/// # Errors
/// [`Unserved::Unanswered`] with the rights and resources that must be known.
pub fn judge<'a>(
    request: &Request<'a, OwnedFacts<'a>>,
    new: &OwnedFacts<'a>,
    old: Option<&OwnedFacts<'a>>,
) -> Result<Judged, Unserved> {
    let had = old.map_or(&[][..], |old| &old.metadata.owner_references);
    let has = new.metadata.owner_references.as_slice();
    if has == had {
        return Ok(Ok(()));
    }
    let blocking = newly_blocking(has, had);
    let refuse = |why: String| {
        let names = [request.name.as_str(), &new.metadata.name, &new.metadata.generate_name];
        Ok(Err(forbidden(&in_words(&request.resource), said_name(names), &why)))
    };
    if let Some(field) = request.user_info.too_long() {
        return refuse(format!("{field} is too long to ask what the user may do; use an account with fewer groups"));
    }
    let must_delete = request.operation != Operation::Create;
    let delete = must_delete.then(|| delete(request)).into_iter();
    let anything = (!blocking.is_empty()).then(|| finalize_anything(request)).into_iter();
    let known = request.ask_all(delete.chain(anything).map(Question::Access).collect())?;
    if let Some(denied) = known.first().filter(|_| must_delete).and_then(|known| denial(known)) {
        return refuse(format!("cannot set an ownerRef on a resource you can't delete: {denied}"));
    }
    if blocking.is_empty() || known.last().is_some_and(|known| known.is_yes()) {
        return Ok(Ok(()));
    }
    match finalize(request, &blocking)? {
        Ok(()) => Ok(Ok(())),
        Err(why) => refuse(why),
    }
}

/// Owners that block, and are new or did not block. As in the API server, a uid that is there twice counts as its last.
fn newly_blocking<'r, 'a>(has: &'r [OwnerReference<'a>], had: &[OwnerReference<'a>]) -> Vec<&'r OwnerReference<'a>> {
    let known: HashMap<&str, bool> = had.iter().map(|one| (one.uid.as_str(), one.blocks())).collect();
    has.iter().filter(|one| one.blocks() && known.get(one.uid.as_str()) != Some(&true)).collect()
}

fn delete<O>(request: &Request<'_, O>) -> Access {
    Access {
        verb: "delete".to_owned(),
        group: request.resource.group.to_string(),
        version: request.resource.version.to_string(),
        resource: request.resource.resource.to_string(),
        sub_resource: request.sub_resource.to_string(),
        namespace: request.namespace.to_string(),
        name: request.name.to_string(),
        ..Access::by(&request.user_info)
    }
}

/// Who may do so needs no discovery, which a cluster that starts may not have.
fn finalize_anything<O>(request: &Request<'_, O>) -> Access {
    let any = || "*".to_owned();
    Access {
        verb: "update".to_owned(),
        group: any(),
        version: any(),
        resource: any(),
        sub_resource: "finalizers".to_owned(),
        name: any(),
        ..Access::by(&request.user_info)
    }
}

/// Judges owners that are to block, in their order: the first that may not decides.
fn finalize<'a>(request: &Request<'a, OwnedFacts<'a>>, blocking: &[&OwnerReference<'a>]) -> Result<Judged, Unserved> {
    let places: Vec<Result<GroupVersion, String>> = blocking.iter().map(|one| group_version(one)).collect();
    let distinct: BTreeSet<&GroupVersion> = places.iter().flatten().collect();
    if distinct.len() > QUESTIONS {
        return Ok(Err(too_many("API versions")));
    }
    let questions: Vec<Question> = distinct.into_iter().cloned().map(Question::Resources).collect();
    request.ask_all(questions)?;
    let mut rights: Vec<Question> = Vec::new();
    let (mut missing, mut seen) = (None, HashSet::new());
    for (one, place) in blocking.iter().zip(&places) {
        // The same owner twice is one question.
        if !seen.insert((one.api_version.as_str(), one.kind.as_str(), one.name.as_str())) {
            continue;
        }
        match mapped(request, one, place.as_ref())? {
            Ok(found) => {
                for (place, resource) in found {
                    let right = Question::Access(finalizers(request, one, place, resource));
                    if !rights.contains(&right) {
                        rights.push(right);
                    }
                    if rights.len() > QUESTIONS {
                        return Ok(Err(too_many("owners")));
                    }
                }
            }
            Err(why) => {
                missing = Some(why);
                break;
            }
        }
    }
    // One that is known to be denied decides, whether the others are answered or not.
    let denied = rights.iter().find_map(|right| denial(request.ask(right.clone()).ok()?));
    if denied.is_none() {
        request.ask_all(rights)?;
    }
    let denied = denied.map(|reason| {
        format!(
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {reason}"
        )
    });
    Ok(denied.or(missing).map_or(Ok(()), Err))
}

/// Reason and error of an authorizer, as Go prints both.
fn denial(known: &Known) -> Option<String> {
    match known {
        Known::Allowed(false, reason) => Some(format!("{reason}, <nil>")),
        Known::Unsure { reason, error } => Some(format!("{reason}, {error}")),
        _ => None,
    }
}

fn too_many(what: &str) -> String {
    format!(
        "cannot set blockOwnerDeletion for more than {QUESTIONS} {what} in one request; set it for some of them at a time"
    )
}

/// The resources of a kind.
type Mapping<'r> = Vec<(&'r GroupVersion, &'r ServedResource)>;

/// The resources of the owner's kind, or why there is none.
fn mapped<'r>(
    request: &'r Request<'_, OwnedFacts<'_>>,
    one: &OwnerReference<'_>,
    place: Result<&'r GroupVersion, &String>,
) -> Result<Result<Mapping<'r>, String>, Unserved> {
    let (version, kind) = (shortened(&one.api_version), shortened(&one.kind));
    let none = |why: &str| {
        Ok(Err(format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {version} Kind {kind}: {why}"
        )))
    };
    let place = match place {
        Ok(place) => place,
        Err(why) => return none(why),
    };
    if one.name.len() > NAME {
        return none(&format!("the name of the owner is longer than {NAME} bytes"));
    }
    let resources = match request.ask(Question::Resources(place.clone()))? {
        Known::Resources(resources) => resources,
        Known::Failed(why) => return none(why),
        _ => return none("it was not answered"),
    };
    let found: Vec<_> =
        resources.iter().filter(|served| served.kind == one.kind.as_str()).map(|it| (place, it)).collect();
    if found.is_empty() { none(&no_match(&one.kind, &one.api_version)) } else { Ok(Ok(found)) }
}

fn no_match(kind: &str, version: &str) -> String {
    format!("no matches for kind {:?} in version {:?}", shortened(kind), shortened(version))
}

/// Group and version as `ParseGroupVersion` of k8s.io/apimachinery/pkg/runtime/schema reads them. What can be no part of a URL is
/// not asked for.
fn group_version(one: &OwnerReference<'_>) -> Result<GroupVersion, String> {
    let text = one.api_version.as_str();
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    if version.contains('/') {
        return Err(format!("unexpected GroupVersion string: {}", shortened(text)));
    }
    let is_named = (group.is_empty() || dns1123_subdomain(group).is_empty()) && dns1123_label(version).is_empty();
    if is_named {
        Ok(GroupVersion { group: group.to_owned(), version: version.to_owned() })
    } else {
        Err(no_match(&one.kind, text))
    }
}

/// The right to keep the owner from being deleted. An owner in a namespace is in that of the object.
fn finalizers(
    request: &Request<'_, OwnedFacts<'_>>,
    one: &OwnerReference<'_>,
    place: &GroupVersion,
    served: &ServedResource,
) -> Access {
    Access {
        verb: "update".to_owned(),
        group: place.group.clone(),
        version: place.version.clone(),
        resource: served.resource.clone(),
        sub_resource: "finalizers".to_owned(),
        namespace: if served.is_namespaced { request.namespace.to_string() } else { String::new() },
        name: one.name.to_string(),
        ..Access::by(&request.user_info)
    }
}
