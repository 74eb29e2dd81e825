//! Problems of an account's settings: browser sessions, bodies, and changes of keys.

use std::borrow::Cow;

use super::{Code, Problem, Text, texts};

impl Problem {
    /// 400: the member `field` of the body breaks a rule; `detail` states the rule, never the value.
    pub fn invalid_field(field: impl Into<Cow<'static, str>>, detail: Text) -> Self {
        Self {
            parameter: Some(field.into()),
            ..Self::new(Code::InvalidField, detail)
        }
    }

    /// 400: the body does not match its content type.
    pub fn invalid_body(detail: Text) -> Self {
        Self::new(Code::InvalidBody, detail)
    }

    /// 400: path, query, header or body holds text of a key's shape.
    pub fn key_in_request() -> Self {
        Self::new(Code::KeyInRequest, texts::key_in_request())
    }

    /// 400: the identity provider's logout token was rejected.
    pub fn invalid_logout_token() -> Self {
        Self::new(Code::InvalidLogoutToken, texts::invalid_logout_token())
    }

    /// 401: no browser session, or an ended one.
    pub fn sign_in_required() -> Self {
        Self::new(Code::SignInRequired, texts::sign_in_required())
    }

    /// 403: another site's page sent the request, or nothing proves that our own did.
    pub fn cross_origin() -> Self {
        Self::new(Code::CrossOrigin, texts::cross_origin())
    }

    /// 403: a viewer asked for a change.
    pub fn read_only() -> Self {
        Self::new(Code::ReadOnly, texts::read_only())
    }

    /// 405, with the methods of the path.
    pub fn only(allow: &'static str) -> Self {
        Self {
            allow,
            ..Self::new(Code::MethodNotAllowed, texts::other_method())
        }
    }

    /// 409: `code` names the conflict, `detail` the remedy.
    pub fn conflict(code: Code, detail: Text) -> Self {
        Self::new(code, detail)
    }

    /// 413: the body may have at most `most` bytes.
    pub fn body_too_large(most: usize) -> Self {
        Self::new(Code::BodyTooLarge, texts::body_too_large(most))
    }

    /// 415: the body must be of the type `expected`.
    pub fn unsupported_media_type(expected: &'static str) -> Self {
        Self::new(
            Code::UnsupportedMediaType,
            texts::unsupported_media_type(expected),
        )
    }

    /// 429: this caller sends too many requests.
    pub fn too_many_requests(retry_after: u64) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(Code::RateLimited, texts::too_many_requests())
        }
    }
}
