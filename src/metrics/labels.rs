//! The labels of metrics. None holds a name, a namespace or a uid.

use std::borrow::Cow;
use std::sync::Arc;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReviewLabels {
    pub path: Arc<str>,
    pub verdict: &'static str,
    pub reason: &'static str,
    /// Empty where no review was read.
    pub dry_run: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PluginLabels {
    pub plugin: &'static str,
    pub mode: &'static str,
    pub verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PathLabels {
    pub path: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ControllerLabels {
    pub controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReconcileLabels {
    pub controller: &'static str,
    pub result: ReconcileResult,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WatchLabels {
    pub watch: Cow<'static, str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PhaseLabels {
    pub phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StateLabels {
    pub state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WriteLabels {
    pub controller: &'static str,
    pub write: &'static str,
}

/// How a reconciliation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
pub enum ReconcileResult {
    /// Done.
    success,
    /// Failed; will be tried again.
    error,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct QuestionLabels {
    pub kind: &'static str,
    pub result: QuestionResult,
}

/// The result of a question of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
pub enum QuestionResult {
    /// The API server answered.
    answered,
    /// The answer was in the cache.
    cached,
    /// The deadline of the review passed.
    timeout,
    /// The API server returned an error.
    error,
}
