//! The section of `ResourceQuota`.

use admission::field::{Error, ErrorList, Path};

use super::Settings;
use super::sections::bounded;
use crate::plugins::api::{LimitedResourceSpec, PluginSpec, ScopeSpec};
use crate::plugins::resource_quota::{LimitedResource, OPERATORS, QuotaScope, RESOURCES, ResourceQuota, SCOPES};
use crate::plugins::shortened;

/// Entries of a list here: for each object all of them are compared with all that it consumes.
const MAX_LIMITED: usize = 64;

pub(super) fn resource_quota(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.resource_quota.clone().unwrap_or_default();
    let path = path.child("limitedResources");
    let all = section.limited_resources;
    if all.is_empty() {
        let detail = "what a quota must cover, such as {resource: pods, matchContains: [requests.nvidia.com/gpu]}";
        errors.push(Error::required(&path, detail));
    }
    if all.len() > MAX_LIMITED {
        errors.push(Error::too_many(&path, all.len(), MAX_LIMITED));
        return Settings::ResourceQuota(ResourceQuota::default());
    }
    let limited = all.into_iter().enumerate().map(|(index, one)| limited(one, &path.index(index), errors)).collect();
    Settings::ResourceQuota(ResourceQuota { limited })
}

fn limited(one: LimitedResourceSpec, path: &Path, errors: &mut ErrorList) -> LimitedResource {
    let LimitedResourceSpec { api_group, resource, match_contains, match_scopes } = one;
    if let Some(group) = api_group.filter(|group| !group.is_empty()) {
        let detail = "must be empty: Outrider covers pods, persistentvolumeclaims and services of the core group";
        errors.push(Error::invalid(&path.child("apiGroup"), shortened(&group), detail));
    }
    if !RESOURCES.contains(&resource.as_str()) {
        errors.push(Error::not_supported(&path.child("resource"), shortened(&resource), &RESOURCES));
    }
    if match_contains.is_empty() && match_scopes.is_empty() {
        errors.push(Error::required(&path.child("matchContains"), "or matchScopes: what a quota must cover"));
    }
    if match_contains.len() > MAX_LIMITED {
        errors.push(Error::too_many(&path.child("matchContains"), match_contains.len(), MAX_LIMITED));
        return LimitedResource::default();
    }
    bounded(&match_contains, &path.child("matchContains"), errors, |text| {
        text.is_empty().then(|| "must not be empty".to_owned())
    });
    let path = path.child("matchScopes");
    if match_scopes.len() > MAX_LIMITED {
        errors.push(Error::too_many(&path, match_scopes.len(), MAX_LIMITED));
    }
    let scopes = match_scopes.into_iter().take(MAX_LIMITED).enumerate();
    let scopes = scopes.map(|(index, one)| scope(one, &path.index(index), errors)).collect();
    LimitedResource { resource, contains: match_contains, scopes }
}

/// What the API server's own validation of quotas says (`validateScopedResourceSelectorRequirement` of
/// k8s.io/kubernetes/pkg/apis/core/validation).
fn scope(one: ScopeSpec, path: &Path, errors: &mut ErrorList) -> QuotaScope {
    let ScopeSpec { scope_name: name, operator, values } = &one;
    if !SCOPES.contains(&name.as_str()) {
        errors.push(Error::not_supported(&path.child("scopeName"), shortened(name), &SCOPES));
    }
    let path_of_operator = path.child("operator");
    let has_values = ["PriorityClass", "VolumeAttributesClass"].contains(&name.as_str());
    match operator.as_str() {
        _ if !OPERATORS.contains(&operator.as_str()) => {
            errors.push(Error::not_supported(&path_of_operator, shortened(operator), &OPERATORS));
        }
        "Exists" => {}
        _ if !has_values => {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, \
                          ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                          ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(Error::invalid(&path_of_operator, shortened(operator), detail));
        }
        _ => {}
    }
    let takes_values = ["In", "NotIn"].contains(&operator.as_str());
    if takes_values && values.is_empty() {
        let detail = "must be at least one scope value when `operator` is 'In' or 'NotIn' for scope selector";
        errors.push(Error::required(&path.child("values"), detail));
    } else if !takes_values && !values.is_empty() {
        let detail = "must be no scope value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
        errors.push(Error::forbidden(&path.child("values"), detail));
    }
    bounded(values, &path.child("values"), errors, |text| text.is_empty().then(|| "must not be empty".to_owned()));
    one.into()
}
