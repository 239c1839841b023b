//! Paths from the root of an object to one of its fields.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The way from the root of an object to one field of it.
///
/// Extending a path shares everything before the new step, so one parent serves any number of children. It
/// prints as `spec.containers[0].name` or `metadata.annotations[example.com/key]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Path(Arc<Step>);

#[derive(Debug)]
struct Step {
    parent: Option<Path>,
    segment: Segment,
}

#[derive(Debug)]
enum Segment {
    Name(Cow<'static, str>),
    Index(usize),
    Key(Box<str>),
}

impl Path {
    /// Starts a path at a field of the root object, such as `spec`.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self::step(None, Segment::Name(name.into()))
    }

    /// The field `name` of the object at this path.
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Self {
        Self::step(Some(self), Segment::Name(name.into()))
    }

    /// The element at `index`, counted from 0, of the list at this path.
    pub fn index(&self, index: usize) -> Self {
        Self::step(Some(self), Segment::Index(index))
    }

    /// The value under `key` of the map at this path.
    pub fn key(&self, key: impl Into<Box<str>>) -> Self {
        Self::step(Some(self), Segment::Key(key.into()))
    }

    fn step(parent: Option<&Self>, segment: Segment) -> Self {
        Self(Arc::new(Step { parent: parent.cloned(), segment }))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut next = Some(self);
        while let Some(Self(step)) = next {
            steps.push(step);
            next = step.parent.as_ref();
        }
        for step in steps.iter().rev() {
            match &step.segment {
                Segment::Name(name) if step.parent.is_some() => write!(f, ".{name}")?,
                Segment::Name(name) => f.write_str(name)?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn paths_print_as_the_api_server_prints_them() {
        let spec = Path::new("spec");
        let containers = spec.child("containers");
        let annotations = Path::new("metadata").child("annotations");
        let cases = [
            (spec.clone(), "spec"),
            (containers.index(0).child("name"), "spec.containers[0].name"),
            (containers.index(12), "spec.containers[12]"),
            (annotations.key("a/b"), "metadata.annotations[a/b]"),
            (annotations.key("x").child("y"), "metadata.annotations[x].y"),
            (Path::new("matrix").index(1).index(2), "matrix[1][2]"),
            (spec.child(String::from("made at run time")), "spec.made at run time"),
        ];
        for (path, expected) in cases {
            assert_eq!(path.to_string(), expected);
        }
    }

    #[test]
    fn extending_a_path_leaves_it_and_its_other_children_alone() {
        let list = Path::new("spec").child("volumes");
        let (first, second) = (list.index(0), list.index(1));
        assert_eq!(format!("{list} {first} {second}"), "spec.volumes spec.volumes[0] spec.volumes[1]");
    }
}
