//! Who may read the metrics, as the API server says: `TokenReview` returns the user of a token,
//! `SubjectAccessReview` the user's rights.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use ring::digest::{SHA256, digest};
use tokio::sync::Semaphore;

use crate::answers::{URGENT_REQUEST_TIMEOUT, within};
use crate::server::{Bearer, Scrapers};

/// How long an answer that allowed a user counts; a token that is revoked is good for so long.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Answers that are remembered: a Prometheus or two, and those before them whose tokens were renewed.
const ANSWERS: usize = 16;
/// Questions at one time. Any client may send any token, and each costs the API server two answers.
const QUESTIONS: usize = 4;

/// Asks the API server.
pub struct TokenReviews {
    client: Client,
    asking: Semaphore,
    /// Digests of tokens whose bearers were allowed, oldest first.
    allowed: Mutex<Vec<(Vec<u8>, Instant)>>,
}

impl std::fmt::Debug for TokenReviews {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TokenReviews").finish_non_exhaustive()
    }
}

impl TokenReviews {
    /// With a client that may create both kinds of reviews.
    pub fn new(client: Client) -> Self {
        Self { client, asking: Semaphore::new(QUESTIONS), allowed: Mutex::default() }
    }

    fn remembers(&self, token: &[u8]) -> bool {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.retain(|(_, since)| since.elapsed() < REMEMBERED);
        allowed.iter().any(|(known, _)| known == token)
    }

    fn remember(&self, token: Vec<u8>) {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if allowed.len() >= ANSWERS {
            allowed.remove(0);
        }
        allowed.push((token, Instant::now()));
    }

    async fn ask(&self, token: &str) -> Result<Bearer, kube::Error> {
        let Some(user) = self.user(token).await? else { return Ok(Bearer::Unknown) };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some("/metrics".to_owned()),
                    verb: Some("get".to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        Ok(if allowed { Bearer::Allowed } else { Bearer::Forbidden })
    }

    async fn user(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        let status = answer.status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user))
    }
}

impl Scrapers for TokenReviews {
    fn look_up<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Bearer, String>> {
        async move {
            let known = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
            if self.remembers(&known) {
                return Ok(Bearer::Allowed);
            }
            let question = async {
                let _asking = self.asking.acquire().await;
                self.ask(token).await.map_err(|error| error.to_string())
            };
            let bearer = within(URGENT_REQUEST_TIMEOUT, question).await?;
            if bearer == Bearer::Allowed {
                self.remember(known);
            }
            Ok(bearer)
        }
        .boxed()
    }
}
