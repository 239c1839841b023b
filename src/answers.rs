//! What the API server answered, in words. The library's own words for an answer hold the Rust structure that it was read into.

use kube::core::Status;

/// The API server's sentence without the structure around it, or why there was none.
pub fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) if !status.reason.is_empty() => format!("{} (code {})", status.reason, status.code),
        kube::Error::Api(status) => format!("code {}", status.code),
        kube::Error::Service(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// As [`said`], to whoever runs a command: of a right that is missing, what they may not do, and what the command `needs`.
pub fn to_user(error: &kube::Error, needs: &str) -> String {
    let kube::Error::Api(status) = error else { return said(error) };
    lacking(status).map_or_else(|| said(error), |lacking| format!("{lacking}; {needs}"))
}

/// What the user may not do, of an answer of the API server's authorizers:
/// `RESOURCE.GROUP "NAME" is forbidden: User "U" cannot VERB resource "RESOURCE" in API group "GROUP" …`
/// (`responsewriters.Forbidden` in `k8s.io/apiserver`). Refusals of admission have code 403 too, and other words.
fn lacking(status: &Status) -> Option<String> {
    if status.code != 403 {
        return None;
    }
    let (_, act) = status.message.split_once(" cannot ")?;
    let (verb, rest) = act.split_once(" resource \"")?;
    let (resource, place) = rest.split_once('"')?;
    let name = status.details.as_ref().map(|details| details.name.as_str()).filter(|name| !name.is_empty());
    let object = name.map_or_else(|| resource.to_owned(), |name| format!("{resource}/{name}"));
    let namespace = place.split_once("in the namespace \"").and_then(|(_, rest)| rest.split('"').next());
    let place = namespace.map(|namespace| format!(" in the namespace {namespace}")).unwrap_or_default();
    Some(format!("you may not {verb} {object}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(code: u16, message: &str, name: &str) -> kube::Error {
        let status = json!({"code": code, "message": message, "details": {"name": name}});
        kube::Error::Api(serde_json::from_value(status).unwrap())
    }

    #[test]
    fn a_missing_right_is_named() {
        let configuration = r#"mutatingwebhookconfigurations.admissionregistration.k8s.io "outrider-mutating" is forbidden: User "jane" cannot get resource "mutatingwebhookconfigurations" in API group "admissionregistration.k8s.io" at the cluster scope"#;
        let error = answer(403, configuration, "outrider-mutating");
        let told = "you may not get mutatingwebhookconfigurations/outrider-mutating; break-glass needs get and patch";
        assert_eq!(to_user(&error, "break-glass needs get and patch"), told);
        assert_eq!(said(&error), configuration);
        let pods =
            r#"pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "shop""#;
        assert_eq!(
            to_user(&answer(403, pods, ""), "it does"),
            "you may not create pods in the namespace shop; it does"
        );
    }

    #[test]
    fn other_answers_are_the_api_servers_words_and_never_a_structure() {
        let denied = r#"admission webhook "x.example.com" denied the request: no"#;
        assert_eq!(to_user(&answer(403, denied, "a"), "more"), denied);
        let bare = kube::Error::Api(Box::new(Status { code: 500, ..Status::default() }));
        assert_eq!(to_user(&bare, "more"), "code 500");
        let reason = Status { code: 429, reason: "TooManyRequests".to_owned(), ..Status::default() };
        assert_eq!(to_user(&kube::Error::Api(Box::new(reason)), "more"), "TooManyRequests (code 429)");
    }
}
