//! Who may read the metrics, where not everybody may.

use std::fmt::Debug;
use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use futures::future::BoxFuture;

/// What is known of the bearer of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer {
    /// May read.
    Allowed,
    /// Is known and may not read.
    Forbidden,
    /// The token is unknown.
    Unknown,
}

/// Knows the bearers of tokens.
pub trait Scrapers: Debug + Send + Sync {
    /// The bearer of a token; an error says why that cannot be determined.
    fn look_up<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Bearer, String>>;
}

/// Lets a request pass, or says with what status and words it is refused. Without `scrapers` everybody passes.
pub async fn admit(scrapers: Option<&Arc<dyn Scrapers>>, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
    let Some(scrapers) = scrapers else { return Ok(()) };
    let Some(token) = token(headers) else {
        return Err((
            StatusCode::UNAUTHORIZED,
            "send the token of a service account: Authorization: Bearer …\n".to_owned(),
        ));
    };
    match scrapers.look_up(token).await {
        Ok(Bearer::Allowed) => Ok(()),
        Ok(Bearer::Forbidden) => Err((StatusCode::FORBIDDEN, "its bearer may not get /metrics\n".to_owned())),
        Ok(Bearer::Unknown) => Err((StatusCode::UNAUTHORIZED, "the API server does not know this token\n".to_owned())),
        Err(why) => {
            let text = format!("the API server cannot authenticate the client: {why}\n");
            Err((StatusCode::SERVICE_UNAVAILABLE, text))
        }
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()).then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_follows_the_scheme() {
        let table = [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Bearer ", None),
            ("Bearer", None),
            ("Basic abc", None),
            ("", None),
        ];
        for (header, expected) in table {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, header.parse().unwrap())]);
            assert_eq!(token(&headers), expected, "{header:?}");
        }
        assert_eq!(token(&HeaderMap::new()), None);
    }
}
