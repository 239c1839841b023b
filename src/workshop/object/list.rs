//! Lists in a status that somebody else may have written.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Decodes the first `N` items of a list. `N` is to be more than a controller writes: then a longer list is not what it wrote.
///
/// # Errors
/// What the deserializer says.
pub fn at_most<'de, const N: usize, T, D>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::<First<N, T>>::deserialize(deserializer)?.map(|first| first.0))
}

struct First<const N: usize, T>(Vec<T>);

impl<'de, const N: usize, T: Deserialize<'de>> Deserialize<'de> for First<N, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

struct Items<const N: usize, T>(PhantomData<T>);

impl<'de, const N: usize, T: Deserialize<'de>> Visitor<'de> for Items<N, T> {
    type Value = First<N, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut first = Vec::new();
        while first.len() < N {
            match items.next_element()? {
                Some(item) => first.push(item),
                None => return Ok(First(first)),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_decoded_up_to_so_many_items() {
        for (list, expected) in [
            (json!(null), None),
            (json!([]), Some(vec![])),
            (json!([1, 2]), Some(vec![1, 2])),
            (json!([1, 2, 3, "x"]), Some(vec![1, 2, 3])),
        ] {
            assert_eq!(at_most::<3, u8, _>(list.clone()).unwrap(), expected, "{list}");
        }
        assert!(at_most::<3, u8, _>(json!("x")).is_err());
        let text = "[1, 2, 3, 4, 5]";
        assert_eq!(at_most::<3, u8, _>(&mut serde_json::Deserializer::from_str(text)).unwrap(), Some(vec![1, 2, 3]));
    }
}
