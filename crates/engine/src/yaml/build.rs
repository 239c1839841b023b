//! Builds one JSON value from a parser's events. Nothing recurses, and depth and growth are bounded.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::resolve::{Scalar, resolve};
use super::{MAX_DEPTH, Problem};

/// Takes the nodes of one document in the order of the text.
pub(super) struct Builder<'budget> {
    open: Vec<Collection>,
    root: Option<Value>,
    anchors: HashMap<usize, Anchored>,
    budget: &'budget mut usize,
}

enum Collection {
    List { anchor: usize, items: Vec<Value> },
    Mapping(Mapping),
}

struct Mapping {
    anchor: usize,
    fields: Map<String, Value>,
    /// The keys that are written in this mapping, not merged into it, and their lines.
    written: HashMap<String, usize>,
    next: Next,
}

/// What the next node of a mapping is.
enum Next {
    Key,
    ValueOf(String),
    Merged,
}

struct Anchored {
    node: Node,
    weight: usize,
    height: usize,
}

#[derive(Clone)]
enum Node {
    Scalar(Scalar),
    Collection(Value),
}

impl<'budget> Builder<'budget> {
    /// `budget` is what anchors and aliases may still copy, in bytes of memory, roughly.
    pub(super) fn new(budget: &'budget mut usize) -> Self {
        Self { open: Vec::new(), root: None, anchors: HashMap::new(), budget }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.root.is_some()
    }

    pub(super) fn into_value(self) -> Option<Value> {
        self.root
    }

    /// Where the builder is, as in `spec.containers[0].image`.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for collection in &self.open {
            // Writing to a String cannot fail.
            let _ = match collection {
                Collection::List { items, .. } => write!(path, "[{}]", items.len()),
                Collection::Mapping(Mapping { next: Next::ValueOf(key), .. }) if path.is_empty() => {
                    write!(path, "{key}")
                }
                Collection::Mapping(Mapping { next: Next::ValueOf(key), .. }) => write!(path, ".{key}"),
                Collection::Mapping(_) => Ok(()),
            };
        }
        path
    }

    pub(super) fn scalar(
        &mut self,
        tag: Option<&str>,
        plain: bool,
        text: &str,
        anchor: usize,
        line: usize,
    ) -> Result<(), Problem> {
        if let Some(mapping) = self.mapping_at_key()
            && text == "<<"
            && is_merge(tag, plain)
        {
            mapping.next = Next::Merged;
            return Ok(());
        }
        let scalar = resolve(tag, plain, text)?;
        if anchor != 0 {
            self.remember(anchor, Node::Scalar(scalar.clone()))?;
        }
        self.place_scalar(scalar, line)
    }

    pub(super) fn open_list(&mut self, anchor: usize) -> Result<(), Problem> {
        if self.mapping_at_key().is_some() {
            return Err(Problem::UnsupportedKey("a list"));
        }
        self.push(Collection::List { anchor, items: Vec::new() })
    }

    pub(super) fn open_mapping(&mut self, anchor: usize) -> Result<(), Problem> {
        if self.mapping_at_key().is_some() {
            return Err(Problem::UnsupportedKey("a mapping"));
        }
        let mapping = Mapping { anchor, fields: Map::new(), written: HashMap::new(), next: Next::Key };
        self.push(Collection::Mapping(mapping))
    }

    pub(super) fn close(&mut self) -> Result<(), Problem> {
        let (anchor, value) = match self.open.pop() {
            Some(Collection::List { anchor, items }) => (anchor, Value::Array(items)),
            Some(Collection::Mapping(mapping)) => (mapping.anchor, Value::Object(mapping.fields)),
            None => return Ok(()),
        };
        if anchor != 0 {
            self.remember(anchor, Node::Collection(value.clone()))?;
        }
        self.place(value, false)
    }

    pub(super) fn alias(&mut self, anchor: usize, line: usize) -> Result<(), Problem> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            // The parser has refused unknown names; the anchor's node is not finished.
            return Err(Problem::AliasOfItself);
        };
        if self.open.len() + anchored.height > MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        *self.budget = self.budget.checked_sub(anchored.weight).ok_or(Problem::TooMuchAliasing)?;
        match anchored.node.clone() {
            Node::Scalar(scalar) => self.place_scalar(scalar, line),
            Node::Collection(_) if self.mapping_at_key().is_some() => {
                Err(Problem::UnsupportedKey("a list or a mapping"))
            }
            Node::Collection(value) => self.place(value, true),
        }
    }

    fn push(&mut self, collection: Collection) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        self.open.push(collection);
        Ok(())
    }

    fn mapping_at_key(&mut self) -> Option<&mut Mapping> {
        match self.open.last_mut() {
            Some(Collection::Mapping(mapping)) if matches!(mapping.next, Next::Key) => Some(mapping),
            _ => None,
        }
    }

    fn remember(&mut self, anchor: usize, node: Node) -> Result<(), Problem> {
        let (weight, height) = match &node {
            Node::Scalar(Scalar::Text(text)) => (NODE + text.len(), 0),
            Node::Scalar(_) => (NODE, 0),
            Node::Collection(value) => measure(value),
        };
        *self.budget = self.budget.checked_sub(weight).ok_or(Problem::TooMuchAliasing)?;
        self.anchors.insert(anchor, Anchored { node, weight, height });
        Ok(())
    }

    fn place_scalar(&mut self, scalar: Scalar, line: usize) -> Result<(), Problem> {
        let Some(mapping) = self.mapping_at_key() else {
            return self.place(scalar.into_value()?, false);
        };
        let key = scalar.into_key()?;
        if let Some(first_line) = mapping.written.insert(key.clone(), line) {
            return Err(Problem::DuplicateKey { key, first_line });
        }
        mapping.next = Next::ValueOf(key);
        Ok(())
    }

    fn place(&mut self, value: Value, from_alias: bool) -> Result<(), Problem> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Collection::List { items, .. }) => items.push(value),
            Some(Collection::Mapping(mapping)) => match std::mem::replace(&mut mapping.next, Next::Key) {
                Next::ValueOf(key) => {
                    mapping.fields.insert(key, value);
                }
                Next::Merged => merge(&mut mapping.fields, value, from_alias)?,
                // Collections are refused as keys when they open, scalars go through `place_scalar`.
                Next::Key => return Err(Problem::UnsupportedKey("this")),
            },
        }
        Ok(())
    }
}

/// `isMerge` of goyaml v2 (decode.go).
fn is_merge(tag: Option<&str>, plain: bool) -> bool {
    match tag {
        None => plain,
        Some(tag) => tag == "!" || tag == "tag:yaml.org,2002:merge",
    }
}

/// As in goyaml v2: what is merged wins over what precedes the `<<` line, and loses to what follows; of
/// several mappings the first wins.
fn merge(fields: &mut Map<String, Value>, value: Value, from_alias: bool) -> Result<(), Problem> {
    match value {
        Value::Object(merged) => fields.extend(merged),
        Value::Array(items) if !from_alias => {
            for item in items.into_iter().rev() {
                let Value::Object(merged) = item else {
                    return Err(Problem::MergeNeedsMapping);
                };
                fields.extend(merged);
            }
        }
        _ => return Err(Problem::MergeNeedsMapping),
    }
    Ok(())
}

/// Bytes that a value takes at least.
const NODE: usize = 64;
/// Bytes that the first entries of a mapping take: the leaf of a B-tree.
const LEAF: usize = 640;

/// Weight (bytes of memory, roughly) and height (levels of collections).
fn measure(value: &Value) -> (usize, usize) {
    let (own, children): (usize, Vec<(usize, usize)>) = match value {
        Value::String(text) => return (NODE + text.len(), 0),
        Value::Array(items) => (NODE, items.iter().map(measure).collect()),
        Value::Object(fields) => {
            let keys: usize = fields.keys().map(|key| NODE + key.len()).sum();
            (LEAF + keys, fields.values().map(measure).collect())
        }
        _ => return (NODE, 0),
    };
    children.iter().fold((own, 1), |(weight, height), child| (weight + child.0, height.max(child.1 + 1)))
}
