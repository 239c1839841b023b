//! All that is wrong with one object.

use std::collections::HashSet;
use std::fmt;

use super::Error;

/// All that is wrong with one object, in the order in which it was found.
///
/// Prints as the API server prints it: one error alone, more as `[first, second]`, the same text only once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorList(Vec<Error>);

impl ErrorList {
    /// A list without errors.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an error at the end.
    pub fn push(&mut self, error: Error) {
        self.0.push(error);
    }

    /// Whether nothing is wrong.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many errors there are, repeated ones included.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The errors, first found first.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }

    /// `Ok` if nothing is wrong, for use with `?`.
    ///
    /// # Errors
    /// The list itself, when it is not empty.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for ErrorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = HashSet::new();
        let texts: Vec<String> = self.iter().map(Error::to_string).filter(|text| seen.insert(text.clone())).collect();
        match texts.as_slice() {
            [only] => f.write_str(only),
            [] => Ok(()),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl std::error::Error for ErrorList {}

impl Extend<Error> for ErrorList {
    fn extend<I: IntoIterator<Item = Error>>(&mut self, errors: I) {
        self.0.extend(errors);
    }
}

impl FromIterator<Error> for ErrorList {
    fn from_iter<I: IntoIterator<Item = Error>>(errors: I) -> Self {
        Self(errors.into_iter().collect())
    }
}

impl From<Error> for ErrorList {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl IntoIterator for ErrorList {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a ErrorList {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorList;
    use crate::field::{Error, Path};

    #[test]
    fn lists_print_as_the_api_server_aggregates_them() {
        let a = Error::required(&Path::new("a"), "");
        let b = Error::duplicate(&Path::new("b"), "x");
        let cases = [
            (vec![], ""),
            (vec![a.clone()], "a: Required value"),
            (vec![a.clone(), a.clone()], "a: Required value"),
            (vec![b.clone(), a.clone(), b.clone()], r#"[b: Duplicate value: "x", a: Required value]"#),
        ];
        for (errors, expected) in cases {
            let list: ErrorList = errors.into_iter().collect();
            assert_eq!(list.to_string(), expected);
        }
    }

    #[test]
    fn only_an_empty_list_is_a_success() {
        let mut list = ErrorList::new();
        assert_eq!(list.clone().into_result(), Ok(()));
        list.extend([Error::required(&Path::new("a"), "")]);
        assert_eq!((list.is_empty(), list.len()), (false, 1));
        assert_eq!(list.clone().into_result(), Err(list.clone()));
        assert_eq!((&list).into_iter().count(), list.into_iter().count());
    }
}
