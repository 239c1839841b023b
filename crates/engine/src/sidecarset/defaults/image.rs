//! Which pull policy an image gets when none is written.
//!
//! The tag decides, so the reference is parsed as the API server parses it: `ParseImageName` of
//! `k8s.io/kubernetes/pkg/util/parsers`, which is `github.com/distribution/reference` with `latest` for no tag.

/// Longest path of a repository in bytes (`RepositoryNameTotalLengthMax`).
const PATH_MAX_BYTES: usize = 255;
const TAG_MAX_BYTES: usize = 128;

/// `Always` for the tag `latest`, written or not; `IfNotPresent` for every other tag, for a digest without a tag and, as the
/// API server does, for what is no image reference.
pub fn pull_policy(image: &str) -> &'static str {
    if tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

/// The tag, `None` for a digest alone and for what is no image reference.
fn tag(image: &str) -> Option<&str> {
    if is_hex(image, 64) {
        return None;
    }
    let (domain, remainder) = split_domain(image);
    let (name, digest) = match remainder.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (remainder, None),
    };
    let (path, tag) = match name.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (name, None),
    };
    let well_formed = path.len() <= PATH_MAX_BYTES
        && path.split('/').all(is_path_component)
        && domain.is_none_or(|domain| is_domain(domain) || is_path_component(domain))
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    match (tag, digest) {
        _ if !well_formed => None,
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

/// The image in front of a digest; `None` where there is no digest.
pub fn without_digest(image: &str) -> Option<&str> {
    let (tagged, digest) = image.rsplit_once('@')?;
    is_digest(digest).then_some(tagged)
}

/// The registry in front, if the first part can be nothing else.
fn split_domain(image: &str) -> (Option<&str>, &str) {
    match image.split_once('/') {
        Some((first, rest))
            if first == "localhost" || first.contains(['.', ':']) || first.chars().any(char::is_uppercase) =>
        {
            (Some(first), rest)
        }
        _ => (None, image),
    }
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let is_address = !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
            if !is_address {
                return false;
            }
            (None, port.strip_prefix(':').or_else(|| (!port.is_empty()).then_some("")))
        }
        None => match domain.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(domain), None),
        },
    };
    let is_label = |label: &str| {
        let edge = |c: char| c.is_ascii_alphanumeric();
        label.starts_with(edge)
            && label.ends_with(edge)
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    host.is_none_or(|host| host.split('.').all(is_label))
        && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

/// Lower case letters and digits, in groups between one dot, one or two underscores, or any number of dashes.
fn is_path_component(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && text
            .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            .all(|separator| matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    !tag.is_empty()
        && tag.len() <= TAG_MAX_BYTES
        && !tag.starts_with(['.', '-'])
        && tag.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    // The algorithms of github.com/opencontainers/go-digest.
    match digest.split_once(':') {
        Some(("sha256", hex)) => is_hex(hex, 64),
        Some(("sha384", hex)) => is_hex(hex, 96),
        Some(("sha512", hex)) => is_hex(hex, 128),
        _ => false,
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn only_the_tag_latest_is_pulled_always() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let cases = [
            ("nginx", true),
            ("nginx:latest", true),
            ("library/nginx", true),
            ("localhost/nginx", true),
            ("registry.example:5000/team/app", true),
            ("[2001:db8::1]:5000/app", true),
            ("[::1]/app", true),
            ("Registry/app", true),
            ("a_b.c/app", true),
            ("a__b/c-d---e/f.g:latest", true),
            (&format!("nginx:latest@{digest}"), true),
            ("nginx:1.27", false),
            ("nginx:Latest", false),
            ("registry.example:5000/team/app:v1", false),
            (&format!("nginx@{digest}"), false),
            (&format!("nginx:1.27@{digest}"), false),
            // No image references: the API server reads no tag out of them.
            ("", false),
            ("NGINX", false),
            ("team/NGINX:latest", false),
            ("nginx:", false),
            ("nginx:latest@sha256:abc", false),
            (&format!("nginx@md5:{}", "a".repeat(32)), false),
            ("a___b", false),
            ("a..b", false),
            ("-a", false),
            ("[::1]x/app", false),
            ("[]/app", false),
            ("host:/app", false),
            ("a//b", false),
            (&"a".repeat(64), false),
            (&"b".repeat(256), false),
            (&format!("nginx:{}", "t".repeat(129)), false),
            ("ünïcode", false),
        ];
        for (image, always) in cases {
            assert_eq!(pull_policy(image), if always { "Always" } else { "IfNotPresent" }, "{image}");
        }
    }
}
