//! The request side: an `AdmissionReview`, borrowed from the body.
//!
//! Field meanings follow `k8s.io/api/admission/v1` (`types.go`). JSON `null` and an absent field are the same everywhere,
//! as they are to the Go decoder.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::deadline::Deadline;
use crate::limit::{ObjectLimit, values};
use crate::question::{Answers, Known, Question};
use crate::unserved::Unserved;

mod error;
mod groups;
#[cfg(test)]
mod tests;
mod text;

pub use error::ParseError;
use error::blame;
pub(crate) use error::{NAME_MAX_BYTES, found, unreadable, utf8, without_position};
pub use groups::Groups;
pub use text::{EMPTY, Text, null_as_default};

/// The two wire versions of the review; a reply repeats the one that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReviewVersion {
    /// `admission.k8s.io/v1`
    #[default]
    V1,
    /// `admission.k8s.io/v1beta1`
    V1Beta1,
}

impl ReviewVersion {
    /// The `apiVersion` of the review.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "admission.k8s.io/v1" => Some(Self::V1),
            "admission.k8s.io/v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }
}

/// What is being done to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object, or a sub-resource of it, changes.
    Update,
    /// The object goes away; only `oldObject` is set.
    Delete,
    /// A connection such as exec or port-forward; the object holds its options and has no metadata.
    Connect,
}

impl Operation {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The type of an object in a review; empty where the review leaves it out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", default)]
pub struct GroupVersionKind<'a> {
    /// API group, empty for the core group.
    #[serde(borrow)]
    pub group: Text<'a>,
    /// API version.
    #[serde(borrow)]
    pub version: Text<'a>,
    /// The kind, such as `Pod`.
    #[serde(borrow)]
    pub kind: Text<'a>,
}

/// Group, version and resource (the plural in URLs).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", default)]
pub struct GroupVersionResource<'a> {
    /// API group, empty for the core group.
    #[serde(borrow)]
    pub group: Text<'a>,
    /// API version.
    #[serde(borrow)]
    pub version: Text<'a>,
    /// The resource: the plural in URLs, such as `pods`.
    #[serde(borrow)]
    pub resource: Text<'a>,
}

/// The user of a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct UserInfo<'a> {
    /// The name that uniquely identifies the user among active users.
    #[serde(borrow)]
    pub username: Text<'a>,
    /// Identifies the user over time, where a name may be used again.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// Groups of the user.
    #[serde(borrow)]
    pub groups: Groups<'a>,
    /// What the authenticator adds: a map of lists of strings.
    #[serde(borrow)]
    pub extra: Option<&'a RawValue>,
}

/// Bytes of the groups of a user, and of what the authenticator adds. The API server has both from headers and tokens, which may be a
/// few times as long.
pub const IDENTITY_MAX_BYTES: usize = 256 * 1024;
/// Values that are read of the groups of a user, and of what the authenticator adds.
pub const IDENTITY_MAX_VALUES: usize = 5_000;

impl UserInfo<'_> {
    /// What is too long to ask about the user's rights with it: who asks holds it many times, and with a part of it would ask about
    /// another user.
    pub fn too_long(&self) -> Option<&'static str> {
        let is_long = |raw: &RawValue| {
            let text = raw.get();
            text.len() > IDENTITY_MAX_BYTES || values(text, IDENTITY_MAX_VALUES) > IDENTITY_MAX_VALUES
        };
        let fields = [("userInfo.groups", self.groups.raw()), ("userInfo.extra", self.extra)];
        fields.into_iter().find_map(|(field, raw)| raw.is_some_and(is_long).then_some(field))
    }
}

/// The request of a review. `O` is the type that `object` and `oldObject` are decoded into, in the same pass.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
pub struct Request<'a, O = &'a RawValue> {
    /// Identifies this call; the reply repeats it.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// The kind of the object as it is sent to the webhook.
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub kind: GroupVersionKind<'a>,
    /// The resource as it is sent to the webhook.
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub resource: GroupVersionResource<'a>,
    /// The sub-resource, such as `status`; empty for the object itself.
    #[serde(borrow, default)]
    pub sub_resource: Text<'a>,
    /// The kind that the user sent, before `matchPolicy: Equivalent` converted it.
    #[serde(borrow, default)]
    pub request_kind: Option<GroupVersionKind<'a>>,
    /// The resource that the user sent.
    #[serde(borrow, default)]
    pub request_resource: Option<GroupVersionResource<'a>>,
    /// The sub-resource that the user sent.
    #[serde(borrow, default)]
    pub request_sub_resource: Text<'a>,
    /// Empty when the API server will make the name from `generateName`.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// The namespace, which is the truth also when the object does not repeat it; empty for cluster-scoped objects.
    #[serde(borrow, default)]
    pub namespace: Text<'a>,
    /// What is being done.
    pub operation: Operation,
    /// Who does it.
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub user_info: UserInfo<'a>,
    /// The new object; absent on DELETE.
    #[serde(default = "absent")]
    pub object: Option<O>,
    /// The stored object; absent on CREATE and CONNECT.
    #[serde(default = "absent")]
    pub old_object: Option<O>,
    /// Nothing will be stored.
    #[serde(default, deserialize_with = "null_as_default")]
    pub dry_run: bool,
    /// `CreateOptions`, `UpdateOptions`, … as sent.
    #[serde(borrow, default)]
    pub options: Option<&'a RawValue>,
    /// The text that the request was read from; empty where it was read from none.
    ///
    /// An object that borrows from it can find in it what its type leaves out.
    #[serde(skip)]
    pub body: &'a str,
    /// What is known of what the decision may ask.
    #[serde(skip)]
    pub answers: Option<&'a Answers>,
    /// Whether anybody still waits for the answer.
    #[serde(skip)]
    pub deadline: Deadline<'a>,
}

// `#[serde(default)]` would ask for `O: Default`.
const fn absent<O>() -> Option<O> {
    None
}

impl<O> Request<'_, O> {
    /// The answer to a question. One that is not known yet ends the decision, which is taken again with the answer.
    ///
    /// # Errors
    /// [`Unserved::Unanswered`].
    pub fn ask(&self, question: Question) -> Result<&Known, Unserved> {
        let known = self.answers.and_then(|answers| answers.get(&question));
        known.ok_or_else(|| Unserved::Unanswered(vec![question]))
    }

    /// The answers to several questions, in their order, which are asked at one time.
    ///
    /// # Errors
    /// [`Unserved::Unanswered`] with those that are not known yet.
    pub fn ask_all(&self, questions: Vec<Question>) -> Result<Vec<&Known>, Unserved> {
        let known = |question: &Question| self.answers.and_then(|answers| answers.get(question));
        let found: Option<Vec<&Known>> = questions.iter().map(known).collect();
        found.ok_or_else(|| Unserved::Unanswered(questions.into_iter().filter(|one| known(one).is_none()).collect()))
    }

    /// Whether what is not known yet will not be known in time: who can decide without it should.
    pub fn has_final_answers(&self) -> bool {
        self.answers.is_some_and(Answers::is_final)
    }

    /// Whether the request is for a sub-resource, not for the object itself.
    pub fn is_sub_resource(&self) -> bool {
        !self.sub_resource.is_empty()
    }

    /// Whether `object` is the new form of one that is being deleted. Only an update says so: what the author of a new object
    /// writes into `deletionTimestamp` is not what the API server has written.
    pub fn is_of_leaving(&self, object: &serde_json::Value) -> bool {
        self.operation == Operation::Update && is_terminating(object)
    }
}

/// Whether an object is being deleted, by what is stored of it.
pub fn is_terminating(object: &serde_json::Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

impl<'a, O> Request<'a, O> {
    fn with_objects<P>(self, object: Option<P>, old_object: Option<P>) -> Request<'a, P> {
        Request {
            object,
            old_object,
            uid: self.uid,
            kind: self.kind,
            resource: self.resource,
            sub_resource: self.sub_resource,
            request_kind: self.request_kind,
            request_resource: self.request_resource,
            request_sub_resource: self.request_sub_resource,
            name: self.name,
            namespace: self.namespace,
            operation: self.operation,
            user_info: self.user_info,
            dry_run: self.dry_run,
            options: self.options,
            body: self.body,
            answers: self.answers,
            deadline: self.deadline,
        }
    }
}

/// An `AdmissionReview` that asks.
#[derive(Debug, Clone)]
pub struct Review<'a, O = &'a RawValue> {
    /// The wire version that asked.
    pub version: ReviewVersion,
    /// The question.
    pub request: Request<'a, O>,
    /// Whether `oldObject` was left out because it is larger than what is decoded.
    pub lacks_old: bool,
}

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
struct Envelope<'a, O> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default = "absent")]
    request: Option<Request<'a, O>>,
}

crate::only_objects!(
    GroupVersionKind<'a> as "group, version and kind",
    GroupVersionResource<'a> as "group, version and resource",
    UserInfo<'a> as "a user",
    Request<'a, O> as "a request",
    Envelope<'a, O> as "an AdmissionReview",
);

impl<'a> Review<'a, &'a RawValue> {
    /// With its objects decoded; with the old one if it should be.
    fn decoded<O: Deserialize<'a>>(
        self,
        is_to_be_decoded: impl Fn(&RawValue) -> bool,
    ) -> Result<Review<'a, O>, ParseError> {
        let Self { version, request, .. } = self;
        let decode = |field: &str, raw: Option<&'a RawValue>| {
            let decoded = raw.map(|raw| serde_json::from_str::<O>(raw.get())).transpose();
            decoded.map_err(|error| ParseError::Object {
                uid: request.uid.to_string(),
                version,
                message: format!("{field}: {}", without_position(&error)),
            })
        };
        let object = decode("object", request.object)?;
        let old = request.old_object.filter(|old| is_to_be_decoded(old));
        let old_object = decode("oldObject", old)?;
        let lacks_old = request.old_object.is_some() && old.is_none();
        Ok(Review { version, request: request.with_objects(object, old_object), lacks_old })
    }
}

impl<'a, O: Deserialize<'a>> Review<'a, O> {
    /// Reads a review from the whole body, decoding `object` and `oldObject` in the same pass.
    ///
    /// ```
    /// use admission::Review;
    /// let body = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
    ///     "request":{"uid":"a","operation":"DELETE","namespace":"shop","object":null,"oldObject":{"spec":{}}}}"#;
    /// let review: Review = Review::parse(body)?;
    /// assert_eq!(review.request.namespace.as_str(), "shop");
    /// assert!(review.request.object.is_none());
    /// # Ok::<(), admission::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// [`ParseError::Unreadable`] when the body is not a review; [`ParseError::Object`] when only the object is at fault.
    pub fn parse(body: &'a [u8]) -> Result<Self, ParseError> {
        // Checking the encoding once is cheaper than at each text, and what reads the whole body later reads the same.
        let text = utf8(body, "an AdmissionReview").map_err(ParseError::Unreadable)?;
        let envelope = serde_json::from_str::<Envelope<'a, O>>(text).map_err(|error| blame::<O>(text, &error))?;
        let mut review = Self::from_envelope(envelope).map_err(ParseError::Unreadable)?;
        review.request.body = text;
        Ok(review)
    }

    /// As [`Self::parse`], in two passes: the objects are decoded once all else is read. This takes longer, and a tenth of the code
    /// for each type of object: all share the first pass.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_in_two_passes(body: &'a [u8]) -> Result<Self, ParseError> {
        Review::<'a, &'a RawValue>::parse(body)?.decoded(|_| true)
    }

    /// As [`Self::parse_in_two_passes`]; what is not within `limit` is not decoded.
    ///
    /// An `oldObject` beyond the limit is left out: it was stored before there was the limit, and must not keep the object from
    /// being changed or deleted.
    ///
    /// # Errors
    /// As [`Self::parse`], and [`ParseError::TooLarge`] when the object is not within the limit.
    pub fn parse_within(body: &'a [u8], limit: ObjectLimit) -> Result<Self, ParseError> {
        let review = Review::<'a, &'a RawValue>::parse(body)?;
        if let Some(Err(message)) = review.request.object.map(|object| limit.check(object)) {
            let (uid, version) = (review.request.uid.to_string(), review.version);
            return Err(ParseError::TooLarge { uid, version, message });
        }
        review.decoded(|old| limit.check(old).is_ok())
    }

    fn from_envelope(envelope: Envelope<'a, O>) -> Result<Self, String> {
        if envelope.kind.as_str() != "AdmissionReview" {
            return Err(format!("kind is {}, expected \"AdmissionReview\"", found(&envelope.kind)));
        }
        let Some(version) = ReviewVersion::parse(&envelope.api_version) else {
            return Err(format!(
                "apiVersion is {}, expected \"admission.k8s.io/v1\" or \"admission.k8s.io/v1beta1\"",
                found(&envelope.api_version)
            ));
        };
        let request = envelope.request.ok_or("request is missing")?;
        if request.uid.is_empty() {
            return Err("request.uid is missing".to_owned());
        }
        Ok(Self { version, request, lacks_old: false })
    }
}
