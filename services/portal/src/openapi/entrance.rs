//! What the paths do that belong to no account, in words: who is signed in, signing in and out.

use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::described::{Described, Parameter};

/// A page that says in one sentence what happened.
const PAGE: Option<(&str, &str)> = Some(("text/html", "Page"));

/// The problems that every operation has.
const ALWAYS: [(&str, &str); 2] = [
    ("400", "`key_in_request`, `invalid_query`"),
    ("503", "`dependency_unavailable`, with `Retry-After`"),
];

/// All of them.
pub fn all() -> Vec<Described> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let of = |method, path, id, summary| Described {
        public: true,
        always: &ALWAYS,
        ..Described::new(method, path, id, summary)
    };
    vec![
        Described {
            answers: &[(
                "200",
                "Who is signed in, or that nobody is",
                Some(("application/json", "Reader")),
            )],
            problems: &[("429", "`rate_limited`, with `Retry-After`")],
            ..of(
                HttpMethod::Get,
                "/account/v1/session",
                "getSession",
                "Who is signed in, with which accounts; no use of the session",
            )
        },
        Described {
            answers: &[
                ("200", "This document", None),
                ("304", "Nothing has changed since that `ETag`", None),
            ],
            always: &ALWAYS[..1],
            ..of(
                HttpMethod::Get,
                "/account/v1/openapi.json",
                "getDescription",
                "What this API is like",
            )
        },
        Described {
            parameters: vec![Parameter::query(
                "to",
                "The path of the page to come back to; `/` without it, and for every other address.",
                text(),
            )],
            answers: &[
                ("303", "To the identity provider", None),
                ("429", "More than 20 a minute from this address", PAGE),
                ("503", "The identity provider is away", PAGE),
            ],
            always: &ALWAYS[..1],
            problems: &[(
                "403",
                "`cross_origin`: it is no navigation of a whole window",
            )],
            ..of(
                HttpMethod::Get,
                "/auth/sign-in",
                "signIn",
                "Begin a sign-in: a link for people, not for `fetch`",
            )
        },
        Described {
            parameters: vec![
                Parameter::query("state", "Of a sign-in that this browser began.", text()),
                Parameter::query("code", "The provider's code, to be exchanged.", text()),
                Parameter::query("error", "Why the provider signs nobody in.", text()),
                Parameter::query("iss", "The provider's name (RFC 9207).", text()),
            ],
            answers: &[
                ("303", "Signed in, with a new session's cookie", None),
                (
                    "400",
                    "This browser began no such sign-in, or the provider refused",
                    PAGE,
                ),
                ("403", "The claims let nobody in", PAGE),
                ("429", "More than 20 a minute from this address", PAGE),
                (
                    "502",
                    "The provider refuses the portal, or what it said is not believed",
                    PAGE,
                ),
                ("503", "The provider or the store of sessions is away", PAGE),
            ],
            always: &[],
            ..of(
                HttpMethod::Get,
                "/auth/callback",
                "signedIn",
                "Back from the identity provider",
            )
        },
        Described {
            answers: &[(
                "200",
                "The session has ended, if there was one; where to go next",
                Some(("application/json", "SignedOut")),
            )],
            problems: &[("403", "`cross_origin`")],
            ..of(
                HttpMethod::Post,
                "/auth/sign-out",
                "signOut",
                "End the session",
            )
        },
        Described {
            takes: Some(("application/x-www-form-urlencoded", "BackChannelLogout")),
            answers: &[("200", "The sessions that it names have ended", None)],
            always: &ALWAYS[1..],
            problems: &[
                ("400", "`invalid_logout_token`, `key_in_request`"),
                ("413", "`body_too_large`"),
                ("415", "`unsupported_media_type`"),
            ],
            ..of(
                HttpMethod::Post,
                "/auth/back-channel",
                "signOutByProvider",
                "End sessions: for the identity provider (OpenID Connect Back-Channel Logout 1.0)",
            )
        },
    ]
}
