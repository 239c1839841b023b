//! Structs that are read from JSON objects and from nothing else.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

/// Decodes a field from a JSON object and from nothing else but `null`, for structs that also derive `Serialize`: these cannot have
/// [`only_objects!`](crate::only_objects).
///
/// # Errors
/// Those of the deserializer and of the struct, and that it is not an object.
pub fn object_or_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_option(ObjectOrNull(PhantomData))
}

/// The same, with the default for `null`.
///
/// # Errors
/// As of [`object_or_null`].
pub fn object_or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Ok(object_or_null(deserializer)?.unwrap_or_default())
}

struct ObjectOrNull<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectOrNull<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        T::deserialize(NoLists(deserializer)).map(Some)
    }
}

/// A deserializer that reads structs from objects only.
struct NoLists<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for NoLists<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, OfObject(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct OfObject<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for OfObject<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        self.0.visit_map(map)
    }
}

/// Implements `Deserialize` for structs that derive it with `#[serde(remote = "Self")]`, so that only a JSON object is read.
///
/// What serde derives alone reads a list too, as the fields of the struct in their order. The API server does not, so that
/// `"spec": []` would be an object to the webhook, and an error to everybody else. What the error says was expected can be named:
/// `only_objects!(Port<'a> as "a port")`.
///
/// ```
/// use serde::Deserialize;
///
/// #[derive(Debug, Deserialize)]
/// #[serde(remote = "Self")]
/// struct Port<'a> {
///     number: u16,
///     name: &'a str,
/// }
/// admission::only_objects!(Port<'a>);
///
/// assert!(serde_json::from_str::<Port>(r#"{"number":80,"name":"web"}"#).is_ok());
/// assert!(serde_json::from_str::<Port>(r#"[80,"web"]"#).is_err());
/// ```
#[macro_export]
macro_rules! only_objects {
    ($($name:ident $(<$lifetime:lifetime $(, $parameter:ident)?>)? $(as $expected:literal)?),+ $(,)?) => { $(
        impl<'de $(: $lifetime, $lifetime $(, $parameter: ::serde::Deserialize<'de>)?)?> ::serde::Deserialize<'de>
            for $name $(<$lifetime $(, $parameter)?>)?
        {
            fn deserialize<Decoder: ::serde::Deserializer<'de>>(decoder: Decoder) -> Result<Self, Decoder::Error> {
                struct OnlyObjects<T>(::std::marker::PhantomData<T>);
                impl<'de $(: $lifetime, $lifetime $(, $parameter: ::serde::Deserialize<'de>)?)?> ::serde::de::Visitor<'de>
                    for OnlyObjects<$name $(<$lifetime $(, $parameter)?>)?>
                {
                    type Value = $name $(<$lifetime $(, $parameter)?>)?;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        // What is named, or else this.
                        f.write_str([$($expected,)? "an object"][0])
                    }
                    fn visit_map<Map: ::serde::de::MapAccess<'de>>(self, map: Map) -> Result<Self::Value, Map::Error> {
                        // The derived function, which is no method of the trait.
                        <$name $(<$lifetime $(, $parameter)?>)?>::deserialize(
                            ::serde::de::value::MapAccessDeserializer::new(map),
                        )
                    }
                }
                decoder.deserialize_map(OnlyObjects(::std::marker::PhantomData))
            }
        }
    )+ };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Holder {
        #[serde(deserialize_with = "object_or_null")]
        port: Option<Port>,
        #[serde(deserialize_with = "object_or_default")]
        other: Port,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Port {
        number: u16,
    }

    #[test]
    fn a_field_is_read_from_an_object_or_null_and_from_no_list() {
        for (text, port, other) in [
            ("{}", None, 0),
            (r#"{"port":null,"other":null}"#, None, 0),
            (r#"{"port":{},"other":{"number":8}}"#, Some(0), 8),
            (r#"{"port":{"number":7,"more":[]}}"#, Some(7), 0),
        ] {
            let read: Holder = serde_json::from_str(text).unwrap();
            assert_eq!((read.port.map(|port| port.number), read.other.number), (port, other), "{text}");
        }
        for text in [r#"{"port":[]}"#, r#"{"port":[7]}"#, r#"{"other":[]}"#, r#"{"other":[7]}"#, r#"{"other":"x"}"#] {
            let error = serde_json::from_str::<Holder>(text).unwrap_err().to_string();
            assert!(error.contains("expected an object"), "{text}: {error}");
        }
    }
}
