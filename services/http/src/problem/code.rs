//! Every way a request can fail: status, stable code, title.

use http::{HeaderValue, StatusCode};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:ident $code:literal $title:literal;)*) => {
        /// The `code` of a problem. Clients may rely on it; titles and details may change.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The HTTP status that it comes with.
            pub fn status(self) -> StatusCode {
                match self { $(Code::$name => StatusCode::$status,)* }
            }

            /// Its stable text, snake_case.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// RFC 9457's `type`: a name, not an address.
            pub fn type_uri(self) -> &'static str {
                match self { $(Code::$name => concat!("urn:waterdata:problem:", $code),)* }
            }

            /// RFC 9457's `title`: the same for every occurrence.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

codes! {
    /// A parameter's value is malformed or repeated.
    InvalidParameter = BAD_REQUEST "invalid_parameter" "A parameter is malformed";
    /// A walk cannot go on, or changes cannot be told, from so long ago.
    CursorExpired = BAD_REQUEST "cursor_expired" "The cursor or token has expired";
    /// The query is no percent-encoded UTF-8.
    InvalidQuery = BAD_REQUEST "invalid_query" "The query cannot be decoded";
    /// A body came with a request that takes none.
    BodyNotAllowed = BAD_REQUEST "body_not_allowed" "The request must not have a body";
    /// No `Host`, several, or one that contradicts the target.
    InvalidHost = BAD_REQUEST "invalid_host" "The Host header is missing or ambiguous";
    /// An API key stands in the query, where logs and histories would keep it.
    KeyInQuery = BAD_REQUEST "key_in_query" "The API key must not be in the query";
    /// An API key stands anywhere in a request to an account's settings.
    KeyInRequest = BAD_REQUEST "key_in_request" "The API key must not be in the request";
    /// A member of the body is malformed, unknown or repeated.
    InvalidField = BAD_REQUEST "invalid_field" "A member of the body is malformed";
    /// The body cannot be read.
    InvalidBody = BAD_REQUEST "invalid_body" "The body cannot be read";
    /// A logout token of the identity provider failed a check.
    InvalidLogoutToken = BAD_REQUEST "invalid_logout_token" "The logout token is not valid";
    /// No browser session.
    SignInRequired = UNAUTHORIZED "sign_in_required" "Signing in is required";
    /// No `Authorization: Bearer`.
    MissingCredentials = UNAUTHORIZED "missing_credentials" "An API key is required";
    /// Malformed, unknown or revoked.
    InvalidKey = UNAUTHORIZED "invalid_key" "The API key is not valid";
    /// Past its end.
    KeyExpired = UNAUTHORIZED "key_expired" "The API key has expired";
    /// Suspended by its owner or by us.
    KeySuspended = UNAUTHORIZED "key_suspended" "The API key is suspended";
    /// Before its beginning.
    KeyNotYetValid = UNAUTHORIZED "key_not_yet_valid" "The API key is not valid yet";
    /// Two `Authorization` headers.
    InvalidRequest = UNAUTHORIZED "invalid_request" "The Authorization header is repeated";
    /// A service was called past the gate; no client of the gate sees it.
    InvalidIdentity = UNAUTHORIZED "invalid_identity" "The identity header is missing or not valid";
    /// The account's plan has no API access.
    PlanInsufficient = FORBIDDEN "plan_insufficient" "API access requires the Enterprise plan";
    /// Another site's page asked for a change.
    CrossOrigin = FORBIDDEN "cross_origin" "The request comes from another origin";
    /// A viewer asked for a change.
    ReadOnly = FORBIDDEN "read_only" "The account may be looked at only";
    /// No such path, or no such thing.
    NotFound = NOT_FOUND "not_found" "There is no such resource";
    /// The dataset was never loaded.
    NoData = NOT_FOUND "no_data" "No data has been loaded yet";
    /// Any method that the path does not have.
    MethodNotAllowed = METHOD_NOT_ALLOWED "method_not_allowed" "The method is not allowed";
    /// The account has as many keys as it may have.
    TooManyKeys = CONFLICT "too_many_keys" "The account has too many keys";
    /// The key's name is taken, or its last holder is still being deleted.
    KeyConflict = CONFLICT "key_conflict" "The key conflicts with another one";
    /// Somebody else changed the key since it was read.
    ChangedMeanwhile = CONFLICT "changed_meanwhile" "The key was changed meanwhile";
    /// An older text of the key still works.
    OverlapRunning = CONFLICT "overlap_running" "An overlap is still running";
    /// The body is larger than the path takes.
    BodyTooLarge = PAYLOAD_TOO_LARGE "body_too_large" "The body is too large";
    /// The body is of another type than the path takes.
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE "unsupported_media_type" "The body's type is not supported";
    /// Target over 2 KiB.
    UriTooLong = URI_TOO_LONG "uri_too_long" "The request target is too long";
    /// An `Expect` other than `100-continue`.
    ExpectationFailed = EXPECTATION_FAILED "expectation_failed" "The expectation is not supported";
    /// More than 64 header fields, or a head over 16 KiB.
    HeadersTooLarge = REQUEST_HEADER_FIELDS_TOO_LARGE "headers_too_large" "The request head is too large";
    /// A limit of the plan is used up, or an address fails too often.
    RateLimited = TOO_MANY_REQUESTS "rate_limited" "Too many requests";
    /// A bug.
    Internal = INTERNAL_SERVER_ERROR "internal" "Internal error";
    /// A store is away.
    DependencyUnavailable = SERVICE_UNAVAILABLE "dependency_unavailable" "A dependency is unavailable";
    /// A service is away.
    UpstreamUnavailable = SERVICE_UNAVAILABLE "upstream_unavailable" "The service is unavailable";
}

impl Code {
    /// `WWW-Authenticate`, on every 401 and on 403 (RFC 6750 §3).
    pub fn challenge(self) -> Option<HeaderValue> {
        let text = match self {
            // A scheme that no browser answers with a dialog (RFC 9110 §11.6.1 wants one).
            Self::SignInRequired => r#"Cookie realm="water-data""#,
            Self::MissingCredentials | Self::InvalidIdentity => r#"Bearer realm="water-data""#,
            Self::InvalidRequest => r#"Bearer realm="water-data", error="invalid_request""#,
            Self::InvalidKey | Self::KeyExpired | Self::KeySuspended | Self::KeyNotYetValid => {
                r#"Bearer realm="water-data", error="invalid_token""#
            }
            Self::PlanInsufficient => r#"Bearer realm="water-data", error="insufficient_scope""#,
            _ => return None,
        };
        Some(HeaderValue::from_static(text))
    }
}
