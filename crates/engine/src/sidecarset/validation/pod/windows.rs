//! `windowsOptions` of a security context (`validateWindowsSecurityContextOptions` in
//! `k8s.io/kubernetes/pkg/apis/core/validation`).

use admission::field::{Error, ErrorList};
use admission::format::names::dns1123_subdomain;

use super::Node;

const SPEC_MAX_KIB: usize = 64;
const DOMAIN_MAX: usize = 256;
const USER_MAX: usize = 104;
const NOT_IN_USER: &str = r#""/\:;|=,+*?<>@[]"#;
const NOT_IN_NETBIOS: &str = r#"\/:*?"<>|"#;
const NETBIOS_MAX: usize = 15;

/// Checks the options.
pub fn check(options: &Node<'_>, errors: &mut ErrorList) {
    if let Some(name) = options.child("gmsaCredentialSpecName").value.as_str() {
        let path = options.path.child("gmsaCredentialSpecName");
        errors.extend(dns1123_subdomain(name).into_iter().map(|message| Error::invalid(&path, name, message)));
    }
    if let Some(spec) = options.child("gmsaCredentialSpec").value.as_str() {
        let path = options.path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            errors.push(Error::invalid(&path, spec, "gmsaCredentialSpec cannot be an empty string"));
        } else if spec.len() > SPEC_MAX_KIB * 1024 {
            let detail = format!("gmsaCredentialSpec size must be under {SPEC_MAX_KIB} KiB");
            errors.push(Error::invalid(&path, spec, detail));
        }
    }
    if let Some(name) = options.child("runAsUserName").value.as_str() {
        let path = options.path.child("runAsUserName");
        errors.extend(wrong_user_name(name).into_iter().map(|detail| Error::invalid(&path, name, detail)));
    }
}

fn wrong_user_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, user)) if user.contains('\\') => {
            return vec!["runAsUserName cannot contain more than one backslash".to_owned()];
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let mut wrong = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_MAX) {
        wrong.push(format!("runAsUserName's Domain length must be under {DOMAIN_MAX} characters"));
    }
    if domain.is_some_and(|domain| !is_netbios(domain) && !is_dns(domain)) {
        wrong.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        wrong.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER_MAX {
        wrong.push(format!("runAsUserName's User length must not be longer than {USER_MAX} characters"));
    } else if user.chars().all(|c| matches!(c, '.' | ' ')) {
        wrong.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|c| NOT_IN_USER.contains(c)) {
        wrong.push(format!("runAsUserName's User cannot contain the following characters: {NOT_IN_USER}"));
    }
    wrong
}

fn is_netbios(domain: &str) -> bool {
    (1..=NETBIOS_MAX).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(|c| NOT_IN_NETBIOS.contains(c))
}

/// A subdomain but for its case.
fn is_dns(domain: &str) -> bool {
    dns1123_subdomain(&domain.to_ascii_lowercase()).is_empty()
}
