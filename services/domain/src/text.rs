//! Macro for validated names: text that is checked once, where it enters, and never again.

/// Defines a text type with one rule, and every conversion that such a type needs. Clones share
/// the text.
///
/// `$valid` is a `fn(&str) -> bool`; `$rule` says the rule in words and `$pattern` as a regular
/// expression, which the custom resources' schema carries.
macro_rules! validated_text {
    ($(#[$doc:meta])* $name:ident, $error:ident, $what:literal, $valid:path, $rule:literal, $pattern:literal, $max:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(std::sync::Arc<str>);

        #[doc = concat!("Text that is no ", $what, "; the rule is in the message, the text is not.")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
        #[error($rule)]
        pub struct $error;

        impl $name {
            /// The largest number of characters.
            pub const MAX_LENGTH: usize = $max;

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                if $valid(text) { Ok(Self(text.into())) } else { Err($error) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().into()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        #[cfg(feature = "schemars")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "maxLength": $max })
            }
        }
    };
}
pub(crate) use validated_text;
