//! Questions of decisions, asked of the API server, and of reviewers of images.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client};

use crate::answers::{code, said};
use crate::image_policy::ImageBackends;
use crate::server::Asker;
use admission::question::{Access, GroupVersion, Object, ServedResource};
use admission::{Known, Question};

/// Asks the API server. What a question needs of RBAC is in the row of the kind that has it.
#[derive(Clone)]
pub struct ApiServer(Client, Arc<ImageBackends>);

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl ApiServer {
    /// With a client that may do what the questions need, and who reviews images.
    pub const fn new(client: Client, images: Arc<ImageBackends>) -> Self {
        Self(client, images)
    }

    async fn access(&self, access: &Access) -> Result<Known, kube::Error> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let attributes = ResourceAttributes {
            verb: given(&access.verb),
            group: Some(access.group.clone()),
            version: given(&access.version),
            resource: given(&access.resource),
            subresource: given(&access.sub_resource),
            namespace: given(&access.namespace),
            name: given(&access.name),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: given(&access.user),
            uid: given(&access.uid),
            groups: Some(access.groups.clone()),
            extra: Some(access.extra.clone()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = Api::all(self.0.clone()).create(&PostParams::default(), &review).await?;
        let status = answer.status.unwrap_or_default();
        Ok(answer_of(status))
    }

    async fn object(&self, object: &Object) -> Result<Known, kube::Error> {
        // The kind is not in the URL.
        let kind = GroupVersionKind::gvk(&object.group, &object.version, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, &object.resource);
        let api: Api<DynamicObject> = if object.namespace.is_empty() {
            Api::all_with(self.0.clone(), &resource)
        } else {
            Api::namespaced_with(self.0.clone(), &object.namespace, &resource)
        };
        let found = api.get_opt(&object.name).await?;
        Ok(Known::Object(found.map(|found| serde_json::json!(found))))
    }

    /// Discovery, of which every authenticated user may read all.
    async fn resources(&self, of: &GroupVersion) -> Result<Known, kube::Error> {
        let found = if of.group.is_empty() {
            self.0.list_core_api_resources(&of.version).await
        } else {
            self.0.list_api_group_resources(&of.to_string()).await
        };
        let resources = match found {
            Ok(list) => list.resources,
            Err(error) if code(&error) == Some(404) => Vec::new(),
            // An API that does not work has no kinds, as for the API server's own plugin.
            Err(error) => return Ok(Known::Failed(said(&error))),
        };
        let of_objects = resources.into_iter().filter(|resource| !resource.name.contains('/'));
        let served = |APIResource { kind, name, namespaced, .. }: APIResource| ServedResource {
            kind,
            resource: name,
            is_namespaced: namespaced,
        };
        Ok(Known::Resources(of_objects.map(served).collect()))
    }
}

/// A no beside an error is that of an authorizer that did not answer, or of a rule that is missing.
fn answer_of(status: SubjectAccessReviewStatus) -> Known {
    let reason = status.reason.unwrap_or_default();
    let is_allowed = status.allowed && status.denied != Some(true);
    match status.evaluation_error.filter(|error| !is_allowed && !error.is_empty()) {
        Some(error) => Known::Unsure { reason, error },
        None => Known::Allowed(is_allowed, reason),
    }
}

impl Asker for ApiServer {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Known, String>> {
        async move {
            match question {
                Question::Access(access) => self.access(access).await.map_err(|error| said(&error)),
                Question::Object(object) => self.object(object).await.map_err(|error| said(&error)),
                Question::Resources(of) => self.resources(of).await.map_err(|error| said(&error)),
                Question::Images(images) => Ok(self.1.ask(images).await),
                Question::Tokens(_) => Err("the API server has no tokens".to_owned()),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_beside_an_error_of_an_authorizer_says_both() {
        let status = |allowed, error: Option<&str>| SubjectAccessReviewStatus {
            allowed,
            reason: Some("why".to_owned()),
            evaluation_error: error.map(str::to_owned),
            ..SubjectAccessReviewStatus::default()
        };
        let why = || "why".to_owned();
        for (status, expected) in [
            (status(false, None), Known::Allowed(false, why())),
            (status(false, Some("down")), Known::Unsure { reason: why(), error: "down".to_owned() }),
            (status(true, Some("down")), Known::Allowed(true, why())),
        ] {
            assert_eq!(answer_of(status), expected);
        }
        let denied = SubjectAccessReviewStatus { allowed: true, denied: Some(true), ..status(true, None) };
        assert!(!answer_of(denied).is_yes());
    }
}
