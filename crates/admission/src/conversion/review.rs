//! A `ConversionReview`, from its bytes to those of the reply.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Conversion;
use crate::bounded::beginning;
use crate::deadline::Deadline;
use crate::patch::quoted;
use crate::raw;
use crate::registry::Registry;
use crate::review::{NAME_MAX_BYTES, Text, found, unreadable, utf8};
use crate::unserved::Unserved;

/// Bytes of a failure's message. Types say what they found in an object, and that may be all of it.
const MESSAGE_MAX_BYTES: usize = 4096;

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct ConversionReview<'a> {
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    request: Option<ConversionRequest<'a>>,
}

#[derive(Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
struct ConversionRequest<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow, rename = "desiredAPIVersion")]
    desired_api_version: Text<'a>,
    /// A list. A place for every element of a list of zeros would take eight times its text.
    #[serde(borrow, default)]
    objects: Option<&'a RawValue>,
}

crate::only_objects!(ConversionReview<'a>, ConversionRequest<'a>);

impl<'a> ConversionReview<'a> {
    /// The version that asked, and what for.
    fn parse(body: &'a [u8]) -> Result<(Text<'a>, ConversionRequest<'a>), String> {
        let text = utf8(body, "a ConversionReview")?;
        let Self { kind, api_version, request } =
            serde_json::from_str(text).map_err(|error| unreadable(text, &error, "a ConversionReview"))?;
        if kind.as_str() != "ConversionReview" {
            return Err(format!("kind is {}, expected \"ConversionReview\"", found(&kind)));
        }
        if !matches!(api_version.as_str(), "apiextensions.k8s.io/v1" | "apiextensions.k8s.io/v1beta1") {
            return Err(format!("apiVersion is {}, expected \"apiextensions.k8s.io/v1\"", found(&api_version)));
        }
        let request = request.ok_or("request is missing")?;
        if request.uid.is_empty() {
            return Err("request.uid is missing".to_owned());
        }
        if request.objects.is_some_and(|objects| !objects.get().starts_with('[')) {
            return Err("request.objects is no list".to_owned());
        }
        Ok((api_version, request))
    }
}

impl<W: 'static> Registry<W> {
    /// Answers a `ConversionReview`. An object that cannot be converted fails the review with a message that names it.
    ///
    /// # Errors
    /// [`Unserved::Unreadable`] when the body is not a `ConversionReview`.
    pub fn convert(&self, body: &[u8]) -> Result<Vec<u8>, Unserved> {
        self.convert_within(body, Deadline::default())
    }

    /// The same while somebody waits for the reply: the deadline is checked before each object.
    ///
    /// # Errors
    /// [`Unserved::Unreadable`] when the body is not a `ConversionReview`, [`Unserved::OutOfTime`].
    pub fn convert_within(&self, body: &[u8], deadline: Deadline<'_>) -> Result<Vec<u8>, Unserved> {
        let (api_version, request) = ConversionReview::parse(body).map_err(Unserved::Unreadable)?;
        // What most conversions add fits into an eighth.
        let mut reply = String::with_capacity(body.len() + body.len() / 8 + 256);
        for part in [r#"{"apiVersion":"#, &quoted(&api_version), r#","kind":"ConversionReview","response":{"uid":"#] {
            reply.push_str(part);
        }
        reply.push_str(&quoted(&request.uid));
        let head = reply.len();
        reply.push_str(r#","convertedObjects":["#);
        match self.convert_all(request.objects, &request.desired_api_version, deadline, &mut reply) {
            Ok(()) => reply.push_str(r#"],"result":{"status":"Success"}}}"#),
            Err(Stop::Unserved(unserved)) => return Err(unserved),
            Err(Stop::Failure(message)) => {
                reply.truncate(head);
                reply.push_str(r#","result":{"status":"Failure","message":"#);
                reply.push_str(&quoted(beginning(&message, MESSAGE_MAX_BYTES)));
                reply.push_str("}}}");
                reply.shrink_to_fit();
            }
        }
        Ok(reply.into_bytes())
    }

    fn convert_all(
        &self,
        objects: Option<&RawValue>,
        desired: &str,
        deadline: Deadline<'_>,
        out: &mut String,
    ) -> Result<(), Stop> {
        let mut is_first = true;
        objects.map_or(Ok(()), |objects| {
            raw::elements(objects, |object| {
                deadline.check().map_err(Stop::Unserved)?;
                if !std::mem::take(&mut is_first) {
                    out.push(',');
                }
                let converted = self.convert_one(object, desired, out);
                converted.map_err(|error| Stop::Failure(format!("{}: {error}", subject(object))))
            })
        })
    }

    fn convert_one(&self, object: &RawValue, desired: &str, out: &mut String) -> Result<(), String> {
        let kind = raw::member(object, "kind").and_then(raw::string).unwrap_or_default();
        let (group, version) = desired.split_once('/').unwrap_or(("", desired));
        let serves = |conversion: &&Conversion| conversion.group() == group && conversion.kind() == kind;
        let conversion = self.conversions().iter().find(serves);
        let unknown = || format!("no conversion to {} is served", shortened(desired));
        conversion.ok_or_else(unknown)?.convert(object, version, out)
    }
}

/// Why objects are not converted.
enum Stop {
    /// One of them cannot be: the message of the reply.
    Failure(String),
    Unserved(Unserved),
}

/// Kind and name of an object, for a sentence.
fn subject(object: &RawValue) -> String {
    let kind = raw::member(object, "kind").and_then(raw::string).unwrap_or_default();
    let metadata = raw::member(object, "metadata");
    let name = metadata.and_then(|metadata| raw::member(metadata, "name")).and_then(raw::string).unwrap_or_default();
    format!("{} {:?}", shortened(&kind), shortened(&name))
}

/// As much of a name from the review as is said again.
pub(super) fn shortened(name: &str) -> &str {
    beginning(name, NAME_MAX_BYTES)
}
