//! Structs that are read from JSON objects and from nothing else.

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
