//! Where an object holds caBundles, and what it says about them. Pure.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::merge::Bundle;
use crate::certs::trust_anchor::{self, TrustAnchor};

/// Annotation of an object with caBundles: since when a certificate is kept there although it is not needed any more, by
/// fingerprint, as JSON.
pub const RETIRING: &str = concat!(api_domain!(), "/ca-retiring");

/// Annotations by which cert-manager's cainjector knows what it owns
/// (`pkg/apis/certmanager/v1/types.go`: inject-ca-from, inject-ca-from-secret, inject-apiserver-ca).
const INJECTED: &str = "cert-manager.io/inject-";

/// Where an object holds caBundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleLocation {
    /// In every entry of `webhooks`.
    Webhooks,
    /// In `spec.conversion.webhook`.
    Conversion,
}

/// What one object has the API server trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// The certificates in each of its caBundles.
    pub entries: Vec<Vec<TrustAnchor>>,
    /// Since when a certificate that is not needed is kept, by fingerprint.
    pub retiring: BTreeMap<String, Timestamp>,
}

impl Trust {
    /// The trust that the object declares. A bundle that cannot be read trusts no certificate.
    pub fn of(object: &Value, place: BundleLocation) -> Self {
        let entries = clients(object, place).map(|(_, client)| {
            let bundle = client.get("caBundle").and_then(Value::as_str).unwrap_or_default();
            TrustAnchor::read_all(&STANDARD.decode(bundle).unwrap_or_default())
        });
        let retiring = annotations(object).and_then(|all| all.get(RETIRING)?.as_str());
        Self {
            entries: entries.collect(),
            retiring: retiring.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        }
    }

    /// Whether every caBundle of the object has it.
    pub fn has(&self, anchor: &TrustAnchor) -> bool {
        self.entries.iter().all(|entry| entry.contains(anchor))
    }

    /// Every certificate in it, once, in the order of the object.
    pub fn anchors(&self) -> Vec<&TrustAnchor> {
        let mut anchors = Vec::new();
        for anchor in self.entries.iter().flatten() {
            if !anchors.contains(&anchor) {
                anchors.push(anchor);
            }
        }
        anchors
    }
}

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.pointer("/metadata/annotations")?.as_object()
}

/// Name and address of each webhook.
fn clients(object: &Value, place: BundleLocation) -> Box<dyn Iterator<Item = (Option<&Value>, &Value)> + '_> {
    match place {
        BundleLocation::Webhooks => {
            let entries = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
            Box::new(entries.filter_map(|entry| Some((entry.get("name"), entry.get("clientConfig")?))))
        }
        BundleLocation::Conversion => {
            Box::new(object.pointer("/spec/conversion/webhook/clientConfig").map(|client| (None, client)).into_iter())
        }
    }
}

/// Whether cert-manager's cainjector writes the caBundles.
pub fn is_injected(object: &Value) -> bool {
    annotations(object).is_some_and(|all| all.keys().any(|key| key.starts_with(INJECTED)))
}

/// What gives every caBundle of the object these certificates, and touches nothing else, by server-side apply. It holds for the
/// version that was read only.
pub fn patch(object: &Value, place: BundleLocation, bundle: &Bundle) -> Value {
    let ca_bundle = json!({"caBundle": STANDARD.encode(trust_anchor::bundle(&bundle.anchors))});
    let mut metadata = json!({
        "name": object.pointer("/metadata/name"),
        "resourceVersion": object.pointer("/metadata/resourceVersion"),
    });
    if !bundle.retiring.is_empty() {
        metadata["annotations"] = json!({RETIRING: json!(bundle.retiring).to_string()});
    }
    let mut patch = json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind"), "metadata": metadata});
    match place {
        BundleLocation::Webhooks => {
            let entries = clients(object, place).map(|(name, _)| json!({"name": name, "clientConfig": ca_bundle}));
            patch["webhooks"] = entries.collect();
        }
        BundleLocation::Conversion => patch["spec"] = json!({"conversion": {"webhook": {"clientConfig": ca_bundle}}}),
    }
    patch
}

/// Who wrote a caBundle last, of those that are not us.
pub fn other_writer<'a>(object: &'a Value, ours: &str) -> Option<&'a str> {
    let fields = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let others = fields.filter(|entry| {
        entry.get("manager").is_some_and(|manager| manager != ours)
            && entry.get("fieldsV1").is_some_and(|fields| fields.to_string().contains("\"f:caBundle\""))
    });
    others.max_by_key(|entry| entry.get("time").and_then(Value::as_str))?.get("manager")?.as_str()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::certs::Authority;

    fn anchor() -> TrustAnchor {
        Authority::create("a", Duration::from_secs(3600), Timestamp::now()).unwrap().anchor().clone()
    }

    fn configuration(bundles: &[Option<&str>]) -> Value {
        let webhooks: Vec<Value> = bundles
            .iter()
            .enumerate()
            .map(|(index, bundle)| json!({"name": format!("{index}.example.com"), "failurePolicy": "Fail", "clientConfig": {"url": "u", "caBundle": bundle}}))
            .collect();
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "outrider-mutating", "resourceVersion": "7"}, "webhooks": webhooks,
        })
    }

    #[test]
    fn an_object_trusts_what_every_one_of_its_bundles_holds() {
        let one = anchor();
        let text = STANDARD.encode(one.pem());
        for (bundles, expected) in [
            (vec![Some(text.as_str()), Some(&text)], true),
            (vec![Some(&text), None], false),
            (vec![Some(&text), Some("bm8gcGVt")], false),
            (vec![], true),
        ] {
            let trust = Trust::of(&configuration(&bundles), BundleLocation::Webhooks);
            assert_eq!(trust.has(&one), expected, "{bundles:?}");
        }
        let definition = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": text}}}}});
        assert!(Trust::of(&definition, BundleLocation::Conversion).has(&one));
        assert!(
            Trust::of(&json!({"spec": {"conversion": {"strategy": "None"}}}), BundleLocation::Conversion).has(&one)
        );
    }

    #[test]
    fn the_patch_names_every_entry_and_holds_nothing_but_the_bundle_and_what_retires() {
        let one = anchor();
        let bundle = Bundle { anchors: vec![one.clone()], retiring: BTreeMap::new() };
        let text = STANDARD.encode(one.pem());
        let expected = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "outrider-mutating", "resourceVersion": "7"},
            "webhooks": [
                {"name": "0.example.com", "clientConfig": {"caBundle": text}},
                {"name": "1.example.com", "clientConfig": {"caBundle": text}},
            ],
        });
        let found = configuration(&[None, None]);
        assert_eq!(patch(&found, BundleLocation::Webhooks, &bundle), expected);
        let since: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let bundle = Bundle { retiring: BTreeMap::from([("ab".to_owned(), since)]), ..bundle };
        let mut patched = patch(&found, BundleLocation::Webhooks, &bundle);
        assert_eq!(patched["metadata"]["annotations"][RETIRING], r#"{"ab":"2026-01-02T03:04:05Z"}"#);
        patched["webhooks"] = json!([]);
        assert_eq!(Trust::of(&patched, BundleLocation::Webhooks).retiring, bundle.retiring);
    }

    #[test]
    fn a_definition_gets_its_bundle_where_it_is_converted() {
        let bundle = Bundle { anchors: vec![anchor()], retiring: BTreeMap::new() };
        let text = STANDARD.encode(bundle.anchors[0].pem());
        let found = json!({"kind": "CustomResourceDefinition", "metadata": {"name": "a"}, "spec": {"group": "b"}});
        let spec = json!({"conversion": {"webhook": {"clientConfig": {"caBundle": text}}}});
        assert_eq!(patch(&found, BundleLocation::Conversion, &bundle)["spec"], spec);
    }

    #[test]
    fn what_belongs_to_the_injector_is_known_by_its_annotations() {
        for (annotations, expected) in [
            (json!({"cert-manager.io/inject-ca-from": "a/b"}), true),
            (json!({"cert-manager.io/inject-ca-from-secret": "a/b"}), true),
            (json!({"cert-manager.io/other": "a"}), false),
            (Value::Null, false),
        ] {
            assert_eq!(is_injected(&json!({"metadata": {"annotations": annotations}})), expected, "{annotations}");
        }
    }

    #[test]
    fn who_wrote_last_is_named() {
        let entry = |manager: &str, time: &str, field: &str| json!({"manager": manager, "time": time, "fieldsV1": {"f:webhooks": {"k:{}": {"f:clientConfig": {field: {}}}}}});
        let fields = [
            entry("ours", "2026-01-03T00:00:00Z", "f:caBundle"),
            entry("first", "2026-01-01T00:00:00Z", "f:caBundle"),
            entry("second", "2026-01-02T00:00:00Z", "f:caBundle"),
            entry("helm", "2026-01-04T00:00:00Z", "f:service"),
        ];
        assert_eq!(other_writer(&json!({"metadata": {"managedFields": fields}}), "ours"), Some("second"));
        assert_eq!(other_writer(&json!({}), "ours"), None);
    }
}
