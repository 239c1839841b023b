//! The webhooks of all configurations in one form.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, RuleWithOperations, ValidatingWebhook, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use crate::doctor::definition::FoundDefinition;
use crate::doctor::facts::Facts;
use crate::doctor::report::{Check, Finding, Severity};
use crate::kind::Kind;
use crate::kinds::KINDS;
use crate::names::{MUTATING, ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING, VALIDATING};

/// The API server's default.
const DEFAULT_TIMEOUT_SECONDS: i32 = 10;

const DEFINITION: &str = "customresourcedefinition";
/// Used in place of a converter's missing name.
const CONVERSION: &str = "conversion";
const WEBHOOK: &str = "Webhook";
const OUR_DEFINITIONS: &str = concat!(".", api_domain!());

/// One webhook of a configuration.
#[derive(Debug, Clone)]
pub struct ConfigurationEntry<'a> {
    /// Resource of its configuration, in the singular.
    pub resource: &'static str,
    /// Name of its configuration.
    pub configuration: &'a str,
    /// Its place in the configuration.
    pub index: usize,
    /// A domain name, by which messages call it.
    pub name: &'a str,
    /// Metadata of its configuration.
    pub metadata: &'a ObjectMeta,
    /// Where it is.
    pub client: &'a WebhookClientConfig,
    /// Whether requests are refused when it does not answer.
    pub fails_closed: bool,
    /// Seconds that the API server waits.
    pub timeout_seconds: i32,
    /// In which namespaces.
    pub namespace_selector: Option<&'a LabelSelector>,
    /// For which objects.
    pub object_selector: Option<&'a LabelSelector>,
    /// For which requests.
    pub rules: &'a [RuleWithOperations],
    /// Whether CEL leaves requests out.
    pub has_match_conditions: bool,
}

#[derive(Clone, Copy)]
struct EntryParts<'a> {
    name: &'a str,
    client: &'a WebhookClientConfig,
    failure_policy: Option<&'a str>,
    timeout_seconds: Option<i32>,
    selectors: [Option<&'a LabelSelector>; 2],
    rules: Option<&'a Vec<RuleWithOperations>>,
    conditions: Option<&'a Vec<MatchCondition>>,
}

impl<'a> ConfigurationEntry<'a> {
    /// Every webhook of the cluster.
    pub fn all(facts: &'a Facts) -> Vec<Self> {
        let mutating = facts.mutating.iter().flat_map(|configuration| {
            let webhooks = configuration.webhooks.iter().flatten().map(mutating).enumerate();
            webhooks.map(|(index, parts)| of("mutatingwebhookconfiguration", &configuration.metadata, index, parts))
        });
        let validating = facts.validating.iter().flat_map(|configuration| {
            let webhooks = configuration.webhooks.iter().flatten().map(validating).enumerate();
            webhooks.map(|(index, parts)| of("validatingwebhookconfiguration", &configuration.metadata, index, parts))
        });
        mutating.chain(validating).collect()
    }

    /// The converter of every definition that has one, in the same form: without it no object of the kind is converted.
    pub fn converters(facts: &'a Facts) -> Vec<Self> {
        facts.definitions.iter().filter_map(conversion).collect()
    }

    /// That of one definition.
    pub fn converter(definition: &'a FoundDefinition) -> Option<Self> {
        conversion(definition)
    }

    /// Whether it converts objects of a definition.
    pub fn converts(&self) -> bool {
        self.resource == DEFINITION
    }

    /// Identifies the entry.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.resource, self.configuration, self.name)
    }

    /// Its configuration, as kubectl takes it.
    pub fn object(&self) -> String {
        format!("{}/{}", self.resource, self.configuration)
    }

    /// Whether it is in a configuration of ours.
    pub fn is_ours(&self) -> bool {
        matches!(
            (self.resource, self.configuration),
            ("mutatingwebhookconfiguration", MUTATING | ON_DEMAND_MUTATING)
                | ("validatingwebhookconfiguration", VALIDATING | ON_DEMAND_VALIDATING)
        ) || (self.converts() && self.configuration.ends_with(OUR_DEFINITIONS))
    }

    /// The kind that it converts, if that is one of ours, as `--enable-kinds` takes it.
    pub fn own_kind(&self) -> Option<&'static str> {
        let has_name = |kind: &&Kind| kind.definition().metadata.name.as_deref() == Some(self.configuration);
        KINDS.iter().find(has_name).filter(|_| self.converts()).map(|kind| kind.name)
    }

    /// A finding about it.
    pub fn finding(&self, severity: Severity, check: Check, found: &str, remedy: &str) -> Finding {
        Finding {
            severity,
            check,
            object: self.object(),
            webhook: (!self.converts()).then(|| self.name.to_owned()),
            found: found.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    /// The command that lets requests pass without it.
    pub fn way_out(&self) -> String {
        if self.converts() {
            return format!(
                "if no client reads a version other than the stored one: kubectl patch {} --type=merge -p \
                 '{{\"spec\":{{\"conversion\":{{\"strategy\":\"None\",\"webhook\":null}}}}}}'",
                self.object()
            );
        }
        if self.is_ours() {
            return "outrider break-glass".to_owned();
        }
        format!(
            "kubectl patch {} --type=json -p '[{{\"op\":\"replace\",\"path\":\"/webhooks/{}/failurePolicy\",\
             \"value\":\"Ignore\"}}]'",
            self.object(),
            self.index
        )
    }
}

fn conversion(definition: &FoundDefinition) -> Option<ConfigurationEntry<'_>> {
    let conversion = definition.spec.as_ref()?.conversion.as_ref()?;
    let client = conversion.webhook.as_ref()?.client_config.as_ref()?;
    let parts = EntryParts {
        name: CONVERSION,
        client,
        failure_policy: None,
        timeout_seconds: None,
        selectors: [None, None],
        rules: None,
        conditions: None,
    };
    (conversion.strategy == WEBHOOK).then(|| of(DEFINITION, &definition.metadata, 0, parts))
}

fn of<'a>(
    resource: &'static str,
    metadata: &'a ObjectMeta,
    index: usize,
    parts: EntryParts<'a>,
) -> ConfigurationEntry<'a> {
    let [namespace_selector, object_selector] = parts.selectors;
    ConfigurationEntry {
        resource,
        configuration: metadata.name.as_deref().unwrap_or_default(),
        index,
        name: parts.name,
        metadata,
        client: parts.client,
        fails_closed: parts.failure_policy != Some("Ignore"),
        timeout_seconds: parts.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS),
        namespace_selector,
        object_selector,
        rules: parts.rules.map(Vec::as_slice).unwrap_or_default(),
        has_match_conditions: parts.conditions.is_some_and(|conditions| !conditions.is_empty()),
    }
}

macro_rules! parts {
    ($webhook:expr) => {
        EntryParts {
            name: &$webhook.name,
            client: &$webhook.client_config,
            failure_policy: $webhook.failure_policy.as_deref(),
            timeout_seconds: $webhook.timeout_seconds,
            selectors: [$webhook.namespace_selector.as_ref(), $webhook.object_selector.as_ref()],
            rules: $webhook.rules.as_ref(),
            conditions: $webhook.match_conditions.as_ref(),
        }
    };
}

fn mutating(webhook: &MutatingWebhook) -> EntryParts<'_> {
    parts!(webhook)
}

fn validating(webhook: &ValidatingWebhook) -> EntryParts<'_> {
    parts!(webhook)
}
