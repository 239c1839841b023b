//! Test files.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{self, PathBuf};

use admission::field::{Error, Path};
use engine::suggest::suggest;
use engine::{reasons, yaml};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::schema::SHAPE;

/// The `apiVersion` of a test file.
pub const API_VERSION: &str = "cli.outrider.dev/v1alpha1";
/// The kind of a test file.
pub const KIND: &str = "Test";
/// The name by which files are found in folders.
const FILE_NAME: &str = "outrider-test.yaml";
/// Folders in folders.
const DEPTH_MAX: usize = 32;

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestFile {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(rename = "metadata")]
    _metadata: Option<Value>,
    /// Files and folders with sets and namespaces.
    pub sets: Vec<PathBuf>,
    /// Files and folders with what is tested.
    pub resources: Vec<PathBuf>,
    /// Namespace of objects without one.
    pub namespace: Option<String>,
    /// Namespaces that are never touched.
    #[serde(default)]
    pub excluded_namespaces: Vec<String>,
    /// What is expected.
    pub results: Vec<Expected>,
    /// On which line the document starts.
    #[serde(skip)]
    pub line: usize,
}

/// What is expected of a resource.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expected {
    /// What the case is called; the resource, where it has no name.
    name: Option<String>,
    /// The name of the resource.
    pub resource: String,
    /// Its kind, where several have the name.
    pub kind: Option<String>,
    /// Its namespace, where several have the name.
    pub namespace: Option<String>,
    /// What becomes of it.
    pub result: Verdict,
    /// A code among those that are given for it.
    pub reason: Option<String>,
    /// A part of what is said.
    pub message: Option<String>,
    /// Values of fields, by their paths, after the injection; `null` where there is to be nothing.
    #[serde(default)]
    pub fields: BTreeMap<String, Value>,
}

impl Expected {
    /// What the case is called.
    pub fn title(&self) -> String {
        let kind = self.kind.as_deref().map(|kind| format!("{kind} ")).unwrap_or_default();
        self.name.clone().unwrap_or_else(|| format!("{kind}{}", self.resource))
    }
}

/// What becomes of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Sets or plugins change it.
    Injected,
    /// It stays as it is.
    Unchanged,
    /// It, or its pods, would be refused.
    Refused,
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Injected => "injected",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
        })
    }
}

impl TestFile {
    /// Reads a file; an error begins with its name.
    pub fn read(path: &path::Path) -> Result<Self, Vec<String>> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| vec![format!("{name}: {error}")])?;
        let documents = yaml::read(&text).map_err(|error| format!("{name}:{}: {}", error.line, error.detail()));
        let mut documents = documents.map_err(|error| vec![error])?;
        let (Some(document), true) = (documents.pop(), documents.is_empty()) else {
            return Err(vec![format!("{name}:1: a test file holds one document of kind {KIND}")]);
        };
        let at = |text: String| format!("{name}:{}: {text}", document.line);
        let is = |field: &str, wanted: &str| document.value.get(field).is_none_or(|found| found == wanted);
        if !document.value.is_object() || !is("apiVersion", API_VERSION) || !is("kind", KIND) {
            return Err(vec![at(format!("a test file is of apiVersion {API_VERSION} and kind {KIND}"))]);
        }
        let (wrong, unknown) = SHAPE.compared(&document.value);
        let faults = wrong.iter().map(ToString::to_string).chain(unknown.iter().map(ToString::to_string));
        let faults = faults.chain(no_sets(&document.value).map(|fault| fault.to_string()));
        let faults = faults.chain(faults_of_cases(&document.value).into_iter().map(|fault| fault.to_string()));
        let faults: Vec<String> = faults.map(at).collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let file = serde_json::from_value(document.value.clone()).map_err(|error| vec![at(error.to_string())])?;
        Ok(Self { line: document.line, ..file })
    }
}

/// Without anything that decides there is nothing to test.
fn no_sets(file: &Value) -> Option<Error> {
    let is_empty = match file.get("sets") {
        None | Some(Value::Null) => true,
        Some(sets) => sets.as_array().is_some_and(Vec::is_empty),
    };
    is_empty.then(|| Error::required(&Path::new("sets"), "at least one file or folder with sets"))
}

/// What no case may be without, and what would never be as expected.
fn faults_of_cases(file: &Value) -> Vec<Error> {
    let results = Path::new("results");
    let cases = match file.get("results") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(cases)) => cases,
        // The shape says what is wrong.
        Some(_) => return Vec::new(),
    };
    if cases.is_empty() {
        return vec![Error::required(&results, "at least one case")];
    }
    let faults = |(index, case): (usize, &Value)| {
        let path = results.index(index);
        let missing = ["resource", "result"].into_iter().filter(|field| case.get(field).is_none_or(Value::is_null));
        let mut faults: Vec<Error> = missing.map(|field| Error::required(&path.child(field), "")).collect();
        if let Some(reason) = case.get("reason").and_then(Value::as_str)
            && !reasons::ALL.iter().any(|(code, _)| code.as_str() == reason)
        {
            let meant = suggest(reason, reasons::ALL.iter().map(|(code, _)| code.as_str()));
            let meant = meant.map(|code| format!("did you mean {code}? ")).unwrap_or_default();
            let detail = format!("no reason code; {meant}docs/reasons.md lists them");
            faults.push(Error::invalid(&path.child("reason"), reason, detail));
        }
        let fields = case.get("fields").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        for field in fields.filter(|field| !yaml::is_path(field)) {
            let detail = "no field path, such as spec.containers[0].image spec.containers[name=web].image or metadata.labels[example.com/team]";
            faults.push(Error::invalid(&path.child("fields"), field.as_str(), detail));
        }
        faults
    };
    cases.iter().enumerate().flat_map(faults).collect()
}

/// The test files at these paths, in the order of their names, or why there are none.
pub fn files(paths: &[PathBuf]) -> Vec<Result<PathBuf, Vec<String>>> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(Ok(path.clone()));
            continue;
        }
        let mut inside = Vec::new();
        collect(path, DEPTH_MAX, &mut inside);
        inside.sort();
        if inside.is_empty() {
            found.push(Err(vec![format!("{}: no file named {FILE_NAME} in it", path.display())]));
        }
        found.extend(inside.into_iter().map(Ok));
    }
    found
}

fn collect(folder: &path::Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, depth, found);
        } else if entry.file_name() == FILE_NAME {
            found.push(path);
        }
    }
}
