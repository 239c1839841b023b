//! The `CustomResourceDefinition`, made from the list of fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, WebhookClientConfig,
};

use crate::config::{FIELDS, GROUP, KIND, MOST_WORKERS, PLURAL, VERSION, ValueForm};
use crate::crd::schema::{FieldSchema, between, column, flag, int32, int64, map_of, object, root, text};
use crate::crd::{Definition, Scope};

const SECTIONS: [(&str, &str); 5] = [
    ("controller", "The controllers."),
    ("metrics", "The metrics."),
    ("health", "The probes."),
    ("webhook", "The webhooks."),
    ("leaderElection", "The election of the replica whose controllers run."),
];

/// The definition of the resource `projectconfigs`. None of its fields is required.
pub fn projectconfig(_: &WebhookClientConfig) -> CustomResourceDefinition {
    let spec = object("Kubebuilder's example.", fields("spec."));
    let status = object("Nothing.", []);
    let mut schema = root("ProjectConfig is the configuration of Outrider, as its file holds it.", spec, status);
    let sections = SECTIONS.map(|(name, meaning)| (name, object(meaning, fields(&format!("{name}.")))));
    let all = fields("").chain(sections).map(|(name, schema)| (name.to_owned(), schema));
    schema.properties.get_or_insert_default().extend(all);
    Definition {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        plural: PLURAL,
        scope: Scope::Namespaced,
        schema,
        columns: vec![column("Cluster", "string", ".clusterName", "Name of the cluster.")],
        scale: None,
    }
    .into_crd()
}

/// The fields right below a prefix.
fn fields(prefix: &str) -> impl Iterator<Item = FieldSchema> {
    let below = |path: &'static str| path.strip_prefix(prefix).filter(|name| !name.contains('.'));
    let found: Vec<FieldSchema> =
        FIELDS.iter().filter_map(|field| Some((below(field.path)?, schema(field.form, field.meaning)))).collect();
    found.into_iter()
}

/// Only what the API server says as well as we do; texts are left to the webhook, which says what to write.
fn schema(form: ValueForm, meaning: &str) -> JSONSchemaProps {
    match form {
        ValueForm::Flag => flag(meaning),
        ValueForm::Port => between(1, 65535, int32(meaning)),
        ValueForm::Nanoseconds => between(1, i64::MAX, int64(meaning)),
        ValueForm::Workers => map_of(between(1, MOST_WORKERS, int32("How many.")), meaning),
        _ => text(meaning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_every_field_of_the_file_and_requires_none() {
        let crd = projectconfig(&WebhookClientConfig::default());
        let schema = crd.spec.versions.into_iter().next().unwrap().schema.unwrap().open_api_v3_schema.unwrap();
        for field in FIELDS {
            let mut at = &schema;
            for step in field.path.split('.') {
                assert_eq!(at.required, None, "{}", field.path);
                at = at.properties.as_ref().unwrap().get(step).unwrap_or_else(|| panic!("{}", field.path));
            }
            assert_eq!(at.description.as_deref(), Some(field.meaning));
        }
    }
}
