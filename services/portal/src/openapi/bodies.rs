//! What requests send, and the bodies that no type of the code describes.

use utoipa::openapi::ComponentsBuilder;
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type,
};

/// The bodies' schemas, by name.
pub fn components(components: ComponentsBuilder) -> ComponentsBuilder {
    let object = || {
        let closed = AdditionalProperties::FreeForm(false);
        ObjectBuilder::new().additional_properties(Some(closed))
    };
    let new = object()
        .property("title", title())
        .property("expiresAt", expires())
        .property("sha256", hash())
        .property("keyId", key_id("The key's public name, part of its text."));
    let rename = object().property("title", title()).required("title");
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(604_800))
        .description(Some(
            "For so many seconds the text before works on; 0 cuts it at once.",
        ));
    let end = ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .description(Some(
            "Whether a text that still works from a rotation before may be ended.",
        ));
    let rotation = object()
        .property("replaces", key_id("The key id of the text that goes."))
        .property("sha256", hash())
        .property("keyId", key_id("The key id of the text that comes."))
        .property("overlapSeconds", seconds)
        .property("expiresAt", expires())
        .property("endPrevious", end);
    let required = |object: ObjectBuilder, names: &[&str]| {
        names
            .iter()
            .fold(object, |object, name| object.required(*name))
    };
    let string = || ObjectBuilder::new().schema_type(Type::String);
    let signed_out = ObjectBuilder::new()
        .property(
            "next",
            string().description(Some("Where to go: the provider's end of session, or `/`.")),
        )
        .required("next");
    let logout = ObjectBuilder::new()
        .property(
            "logout_token",
            string().description(Some("Signed by the identity provider, used once.")),
        )
        .required("logout_token");
    components
        .schema("SignedOut", signed_out)
        .schema("BackChannelLogout", logout)
        .schema("Page", string().description(Some("A page of HTML.")))
        .schema("NewKey", required(new, &["title", "sha256", "keyId"]))
        .schema("Title", rename)
        .schema(
            "Rotation",
            required(rotation, &["replaces", "sha256", "keyId", "overlapSeconds"]),
        )
}

fn title() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(100))
        .description(Some("What the key is for, without control characters."))
}

fn hash() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^[0-9a-f]{64}$"))
        .description(Some(
            "The SHA-256 of the key's whole text. The text itself is never sent.",
        ))
}

fn key_id(text: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^[0-9A-Za-z]{12}$"))
        .description(Some(text))
}

fn expires() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some(
            "The key is refused from then on; null or left out: never.",
        ))
}
