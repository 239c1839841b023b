//! Both judgements, side by side.

use serde_json::Value;

use crate::api_server::{ApiServer, as_sent_to_webhooks};
use crate::ours::{Answer, Outrider, is_warned_of, refusal_of_set};
use crate::pair::Pair;
use crate::sets;

/// What came of one question to both.
pub enum Outcome {
    /// The pod is illegal by itself.
    PodIllegal,
    /// We left the pod alone, for this reason.
    Untouched(String),
    /// We injected, and the result is legal. Whether we had warned that it is not on this API server, and the result.
    Injected(bool, Value),
    /// Both refuse; our words.
    Refused(String),
    /// We injected, and the result is illegal: the API server's words, whether we had warned of that, and the result.
    Broken(String, bool, Value),
    /// We refused what the API server takes: our words, and what it takes.
    OverRefusal(String, Value),
}

/// Judges the pod as it is written, and as the API server sends it to webhooks.
pub async fn judge(api_server: &ApiServer, pair: &Pair) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    if pair.sets_are_judged {
        for set in &pair.sets {
            outcomes.extend(judge_set(api_server, set, &pair.pod).await);
        }
    }
    if !outcomes.is_empty() {
        return outcomes;
    }
    let Ok(stored) = api_server.judge(&pair.pod).await else { return vec![Outcome::PodIllegal] };
    let outrider = Outrider::with(&pair.sets);
    let warned = pair.sets.iter().any(|set| is_warned_of(set, api_server.minor_version()));
    for pod in [pair.pod.clone(), as_sent_to_webhooks(&stored)] {
        outcomes.extend(judge_pod(api_server, &outrider, &pod, pair.sets.len() == 1, warned).await);
    }
    outcomes
}

/// Judges a set that may be of any form, by the pod that it is for.
pub async fn judge_freely(api_server: &ApiServer, pair: &Pair) -> Vec<Outcome> {
    if let Some(refusal) = refusal_of_set(&pair.sets[0]) {
        return vec![refused(api_server, format!("Invalid: {refusal}"), sets::forced(pair)).await];
    }
    let outrider = Outrider::with(&pair.sets);
    judge_pod(api_server, &outrider, &pair.pod, true, false).await.into_iter().collect()
}

/// A set that we refuse must not fit the pod either.
async fn judge_set(api_server: &ApiServer, set: &Value, pod: &Value) -> Option<Outcome> {
    let message = format!("Invalid: {}", refusal_of_set(set)?);
    let forced = Outrider::with(std::slice::from_ref(set)).forced(pod);
    Some(refused(api_server, message, forced).await)
}

async fn judge_pod(
    api_server: &ApiServer,
    outrider: &Outrider,
    pod: &Value,
    is_alone: bool,
    warned: bool,
) -> Option<Outcome> {
    match outrider.answer(pod, api_server.namespace()) {
        Answer::Untouched(reason) => Some(Outcome::Untouched(reason)),
        Answer::Injected(injected) => Some(match api_server.judge(&injected).await {
            Ok(_) => Outcome::Injected(warned, injected),
            Err(theirs) => Outcome::Broken(theirs, warned, injected),
        }),
        // Of several sets it is unknown which to force upon the pod.
        Answer::Refused { .. } if !is_alone => None,
        Answer::Refused { reason, message } => {
            Some(refused(api_server, format!("{reason}: {message}"), outrider.forced(pod)).await)
        }
    }
}

async fn refused(api_server: &ApiServer, ours: String, forced: Value) -> Outcome {
    match api_server.judge(&forced).await {
        Ok(_) => Outcome::OverRefusal(ours, forced),
        Err(_) => Outcome::Refused(ours),
    }
}
