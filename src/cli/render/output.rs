//! Rendered objects as text.

use serde_json::{Value, json};

use super::Format;
use super::file_diff::{file_of, of_file};
use super::inject::{Fate, Rendered};
use crate::cli::diff::unified;
use engine::yaml;

/// Prints all objects in a format.
pub fn print(all: &[Rendered], format: Format) -> String {
    match format {
        Format::Yaml => yaml::write_documents(&all.iter().map(|rendered| rendered.after.clone()).collect::<Vec<_>>()),
        Format::Json => line(&objects(all)),
        Format::Diff => files(all)
            .map(|(file, objects)| of_file(file, &objects).map_or_else(|| diffs(&objects), |diff| diff.text))
            .collect(),
        Format::Patch => patches(all),
        // Findings, and no objects.
        Format::Findings | Format::Sarif => String::new(),
    }
}

fn changed(all: &[Rendered]) -> impl Iterator<Item = &Rendered> {
    all.iter().filter(|rendered| !rendered.patch.is_empty())
}

/// The objects of each file, in their order.
fn files(all: &[Rendered]) -> impl Iterator<Item = (&str, Vec<&Rendered>)> {
    all.chunk_by(|one, other| file_of(one) == file_of(other)).filter_map(|objects| {
        let file = file_of(objects.first()?);
        objects.iter().any(|rendered| !rendered.patch.is_empty()).then(|| (file, objects.iter().collect()))
    })
}

/// What a reader of the diffs must know: files whose layout they replace, and those that they do not apply to.
pub fn notes_on_diffs(all: &[Rendered]) -> Vec<String> {
    let note = |(file, objects): (&str, Vec<&Rendered>)| match of_file(file, &objects) {
        Some(diff) if diff.keeps_layout => None,
        Some(_) => Some(format!("the diff of {file} replaces its layout too, and leaves out its comments")),
        None => Some(format!("patch does not apply the diff of {file}, which shows objects as they are printed")),
    };
    files(all).filter_map(note).collect()
}

fn diffs(objects: &[&Rendered]) -> String {
    objects.iter().filter(|rendered| !rendered.patch.is_empty()).map(|rendered| diff(rendered)).collect()
}

fn line(value: &Value) -> String {
    format!("{value:#}\n")
}

fn objects(all: &[Rendered]) -> Value {
    if let [only] = all {
        return only.after.clone();
    }
    let items: Vec<&Value> = all.iter().map(|rendered| &rendered.after).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn diff(rendered: &Rendered) -> String {
    let Rendered { source, title, before, after, .. } = rendered;
    let word = if rendered.fate() == Fate::ChangedByPlugins { "changed" } else { "injected" };
    unified(
        &yaml::write(before),
        &yaml::write(after),
        &format!("{source} {title}"),
        &format!("{source} {title}, {word}"),
    )
}

/// The field `patches` of a kustomization, whose every `patch` is a text.
fn patches(all: &[Rendered]) -> String {
    let entries: String = changed(all).filter(|rendered| has_target(rendered)).map(patch).collect();
    if entries.is_empty() { "patches: []\n".to_owned() } else { format!("patches:\n{entries}") }
}

/// Whether a patch of a kustomization can select it: without a name, it would select every object of the kind.
pub fn has_target(rendered: &Rendered) -> bool {
    rendered.patch.is_empty() || !rendered.identity.name.is_empty()
}

/// The target is named as kustomize names the target of a patch; the name is a regular expression there.
fn patch(rendered: &Rendered) -> String {
    let identity = &rendered.identity;
    let mut target = json!({
        "version": identity.api_version.rsplit('/').next(),
        "kind": identity.kind,
        "name": identity.name.replace('.', "\\."),
    });
    for (field, value) in
        [("group", identity.group()), ("namespace", identity.namespace.as_deref().unwrap_or_default())]
    {
        if !value.is_empty() {
            target[field] = value.into();
        }
    }
    let indented =
        |text: &str, by: &str| -> String { text.split_inclusive('\n').flat_map(|line| [by, line]).collect() };
    let operations = indented(&yaml::write(&Value::from(rendered.patch.clone())), "    ");
    format!("- target:\n{}  patch: |\n{operations}", indented(&yaml::write(&target), "    "))
}
