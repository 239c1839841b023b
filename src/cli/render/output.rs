//! Rendered objects as text.

use serde_json::{Value, json};

use super::RenderFormat;
use super::file_diff::{file_of, of_file};
use super::rendered::{Fate, Rendered};
use crate::cli::diff::unified;
use engine::yaml;

/// Prints all objects in a format; and what a reader must know beside it.
pub fn print(all: &[Rendered], format: RenderFormat) -> (String, Vec<String>) {
    let text = match format {
        RenderFormat::Yaml => {
            yaml::write_documents(&all.iter().map(|rendered| rendered.after.clone()).collect::<Vec<_>>())
        }
        RenderFormat::Json => line(&objects(all)),
        RenderFormat::Diff => return diffs_of_files(all),
        RenderFormat::Patch => patches(all),
        // Findings, and no objects.
        RenderFormat::Findings | RenderFormat::Sarif => String::new(),
    };
    (text, Vec::new())
}

fn changed(all: &[Rendered]) -> impl Iterator<Item = &Rendered> {
    all.iter().filter(|rendered| rendered.is_changed())
}

/// The objects of each file, in their order.
fn files(all: &[Rendered]) -> impl Iterator<Item = (&str, Vec<&Rendered>)> {
    all.chunk_by(|one, other| file_of(one) == file_of(other)).filter_map(|objects| {
        let file = file_of(objects.first()?);
        objects.iter().any(Rendered::is_changed).then(|| (file, objects.iter().collect()))
    })
}

/// The diffs, with notes of files whose layout they replace, and of those that they do not apply to.
fn diffs_of_files(all: &[Rendered]) -> (String, Vec<String>) {
    let (mut text, mut notes) = (String::new(), Vec::new());
    for (file, objects) in files(all) {
        let Some(diff) = of_file(file, &objects) else {
            notes.push(format!("patch does not apply the diff of {file}, which shows objects as they are printed"));
            text.push_str(&diffs(&objects));
            continue;
        };
        if !diff.keeps_layout {
            notes.push(format!("the diff of {file} replaces its layout too, and leaves out its comments"));
        }
        text.push_str(&diff.text);
    }
    (text, notes)
}

fn diffs(objects: &[&Rendered]) -> String {
    objects.iter().filter(|rendered| rendered.is_changed()).map(|rendered| diff(rendered)).collect()
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
    !rendered.is_changed() || !rendered.identity.name.is_empty()
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
