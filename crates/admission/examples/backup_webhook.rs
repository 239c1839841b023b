//! A whole webhook: `cargo run --example backup_webhook -- /validate-acme-example-v1-backup < review.json`
use admission::field::{Error, Path};
use admission::registry::Resource;
use admission::{Defaulting, Findings, Operation, PatchBuilder, PatchError, Registry, Request, Rule, Validating};
use serde_json::{Value, json};

const BACKUPS: &[Resource] = &[Resource { group: "acme.example", version: "v1", resource: "backups", kind: "Backup" }];
const RULE: Rule = Rule::new("backup.acme.example", BACKUPS, &[Operation::Create, Operation::Update]);

#[derive(serde::Deserialize)]
struct Backup {
    spec: Spec,
}

#[derive(serde::Deserialize)]
struct Spec {
    keep: i64,
}

struct Backups;

impl Defaulting<()> for Backups {
    fn default(&self, _: &Request<'_, Value>, patch: &mut PatchBuilder, (): &()) -> Result<(), PatchError> {
        patch.default("/spec/keep", json!(7))
    }
}

impl Validating<()> for Backups {
    type Object<'a> = Backup;
    fn create(&self, Backup { spec }: &Backup, _: &Request<'_, Backup>, (): &(), findings: &mut Findings) {
        if spec.keep < 1 {
            let path = Path::new("spec").child("keep");
            findings.errors.push(Error::invalid(&path, spec.keep, "must be at least 1"));
        }
    }
    fn update(&self, new: &Backup, _: &Backup, request: &Request<'_, Backup>, (): &(), findings: &mut Findings) {
        self.create(new, request, &(), findings);
    }
}

pub(crate) fn answer(path: &str, body: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let registry = Registry::default().defaulting(RULE, Backups).validating(RULE, Backups);
    let entry = registry.find(path).ok_or_else(|| format!("nothing is served at {path:?}"))?;
    Ok(entry.endpoint.answer(body, &())?.body)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let body = std::io::read_to_string(std::io::stdin())?;
    println!("{}", String::from_utf8(answer(&std::env::args().nth(1).unwrap_or_default(), body.as_bytes())?)?);
    Ok(())
}
