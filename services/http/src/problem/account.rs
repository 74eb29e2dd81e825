//! The problems of an account's settings: browser sessions, bodies, and keys that are changed.

use std::borrow::Cow;

use super::{Code, Problem};

impl Problem {
    /// 400: the member `field` of the body breaks a rule; `detail` states the rule, never the value.
    pub fn invalid_field(
        field: impl Into<Cow<'static, str>>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            parameter: Some(field.into()),
            ..Self::new(Code::InvalidField, detail)
        }
    }

    /// 400: the body is not what the content type says.
    pub fn invalid_body(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidBody, detail)
    }

    /// 400: something of a key's shape stands in path, query, header or body.
    pub fn key_in_request() -> Self {
        let detail = "Send no API key here, and replace this key: it has been shown to others \
                      than its API.";
        Self::new(Code::KeyInRequest, detail)
    }

    /// 400: the identity provider's logout token was not believed.
    pub fn invalid_logout_token() -> Self {
        let detail = "Send one logout token of this client in the form field logout_token.";
        Self::new(Code::InvalidLogoutToken, detail)
    }

    /// 401: no browser session, or one that has ended.
    pub fn sign_in_required() -> Self {
        Self::new(Code::SignInRequired, "Sign in at /auth/sign-in.")
    }

    /// 403: another site's page sent the request, or nothing shows that it was our own.
    pub fn cross_origin() -> Self {
        let detail = "Send the request from the portal's own pages: with \
                      Sec-Fetch-Site: same-origin, or with its Origin.";
        Self::new(Code::CrossOrigin, detail)
    }

    /// 403: a viewer asked for a change.
    pub fn read_only() -> Self {
        let detail = "Viewers can look at this account; ask a manager to change it.";
        Self::new(Code::ReadOnly, detail)
    }

    /// 405, with the methods that the path has.
    pub fn only(allow: &'static str) -> Self {
        Self {
            allow,
            ..Self::new(
                Code::MethodNotAllowed,
                "Use one of the methods that Allow lists.",
            )
        }
    }

    /// 409: `code` says what stands in the way, `detail` what to do.
    pub fn conflict(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code, detail)
    }

    /// 413: the body may have `most` bytes.
    pub fn body_too_large(most: usize) -> Self {
        let detail = format!("The body may have {most} bytes.");
        Self::new(Code::BodyTooLarge, detail)
    }

    /// 415: the body must be of the type `expected`.
    pub fn unsupported_media_type(expected: &'static str) -> Self {
        let detail = format!("Send the body as {expected}.");
        Self::new(Code::UnsupportedMediaType, detail)
    }

    /// 429: this caller asks too often.
    pub fn too_many_requests(retry_after: u64) -> Self {
        let detail = "Wait as long as Retry-After says.";
        Self {
            retry_after: Some(retry_after),
            ..Self::new(Code::RateLimited, detail)
        }
    }
}
