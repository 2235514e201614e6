//! How words appear in the OpenAPI document. Structs that are sent derive `ToSchema` instead.

use utoipa::openapi::schema::{ObjectBuilder, Type};

/// A text that is one of these words.
pub fn one_of(words: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words))
}

/// Describes an enum by the words it is sent as.
macro_rules! words {
    ($type:ty, $name:literal, $description:literal) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let words = $crate::schema::one_of(<$type>::ALL.map(<$type>::as_str));
                words.description(Some($description)).into()
            }
        }

        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($name)
            }
        }
    };
}
pub(crate) use words;
