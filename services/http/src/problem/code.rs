//! Every way a request can fail: status and stable code.

use http::{HeaderValue, StatusCode};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:ident $code:literal;)*) => {
        /// The `code` of a problem. Clients may rely on it; titles and details may change.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// Returns the HTTP status of the code.
            pub fn status(self) -> StatusCode {
                match self { $(Code::$name => StatusCode::$status,)* }
            }

            /// Returns the stable text, snake_case.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// Returns RFC 9457's `type`: a name, not an address.
            pub fn type_uri(self) -> &'static str {
                match self { $(Code::$name => concat!("urn:waterdata:problem:", $code),)* }
            }
        }
    };
}

codes! {
    /// A parameter is malformed, repeated, or none of the path's.
    InvalidParameter = BAD_REQUEST "invalid_parameter";
    /// The cursor or token is too old to go on from or to report changes from.
    CursorExpired = BAD_REQUEST "cursor_expired";
    /// The query is not percent-encoded UTF-8.
    InvalidQuery = BAD_REQUEST "invalid_query";
    /// A body came with a request that takes none.
    BodyNotAllowed = BAD_REQUEST "body_not_allowed";
    /// No `Host`, several, or one that contradicts the target.
    InvalidHost = BAD_REQUEST "invalid_host";
    /// The query holds an API key, which logs and histories would keep.
    KeyInQuery = BAD_REQUEST "key_in_query";
    /// A request to an account's settings holds an API key, anywhere.
    KeyInRequest = BAD_REQUEST "key_in_request";
    /// A member of the body is malformed, unknown or repeated.
    InvalidField = BAD_REQUEST "invalid_field";
    /// The body cannot be read.
    InvalidBody = BAD_REQUEST "invalid_body";
    /// A logout token of the identity provider failed a check.
    InvalidLogoutToken = BAD_REQUEST "invalid_logout_token";
    /// No browser session.
    SignInRequired = UNAUTHORIZED "sign_in_required";
    /// No `Authorization: Bearer`.
    MissingCredentials = UNAUTHORIZED "missing_credentials";
    /// Malformed, unknown or revoked.
    InvalidKey = UNAUTHORIZED "invalid_key";
    /// The key's end has passed.
    KeyExpired = UNAUTHORIZED "key_expired";
    /// Suspended by its owner or by us.
    KeySuspended = UNAUTHORIZED "key_suspended";
    /// The key's beginning has not come yet.
    KeyNotYetValid = UNAUTHORIZED "key_not_yet_valid";
    /// Two `Authorization` headers.
    InvalidRequest = UNAUTHORIZED "invalid_request";
    /// A service was called without the gate; no client of the gate sees it.
    InvalidIdentity = UNAUTHORIZED "invalid_identity";
    /// The account's plan has no API access.
    PlanInsufficient = FORBIDDEN "plan_insufficient";
    /// Another site's page asked for a change.
    CrossOrigin = FORBIDDEN "cross_origin";
    /// A viewer asked for a change.
    ReadOnly = FORBIDDEN "read_only";
    /// No such path, or no such resource.
    NotFound = NOT_FOUND "not_found";
    /// The dataset was never loaded.
    NoData = NOT_FOUND "no_data";
    /// A method that the path does not have.
    MethodNotAllowed = METHOD_NOT_ALLOWED "method_not_allowed";
    /// The account has its largest number of keys.
    TooManyKeys = CONFLICT "too_many_keys";
    /// The key's name is taken, or its last holder is still being deleted.
    KeyConflict = CONFLICT "key_conflict";
    /// Another request changed the key since it was read.
    ChangedMeanwhile = CONFLICT "changed_meanwhile";
    /// An older text of the key still works.
    OverlapRunning = CONFLICT "overlap_running";
    /// A rule of the platform that the portal runs on does not let the change pass.
    RefusedByPlatform = CONFLICT "refused_by_platform";
    /// The body is larger than the path allows.
    BodyTooLarge = PAYLOAD_TOO_LARGE "body_too_large";
    /// The body is of another type than the path allows.
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE "unsupported_media_type";
    /// The target is over 2 KiB.
    UriTooLong = URI_TOO_LONG "uri_too_long";
    /// An `Expect` other than `100-continue`.
    ExpectationFailed = EXPECTATION_FAILED "expectation_failed";
    /// More than 64 header fields, or a head over 16 KiB.
    HeadersTooLarge = REQUEST_HEADER_FIELDS_TOO_LARGE "headers_too_large";
    /// A limit of the plan is used up, or an address has too many failures.
    RateLimited = TOO_MANY_REQUESTS "rate_limited";
    /// A bug.
    Internal = INTERNAL_SERVER_ERROR "internal";
    /// A store is down.
    DependencyUnavailable = SERVICE_UNAVAILABLE "dependency_unavailable";
    /// A service is down.
    UpstreamUnavailable = SERVICE_UNAVAILABLE "upstream_unavailable";
}

impl Code {
    /// Returns `WWW-Authenticate`, on every 401 and on 403 (RFC 6750 §3).
    pub fn challenge(self) -> Option<HeaderValue> {
        let text = match self {
            // A scheme for which no browser opens a dialog (RFC 9110 §11.6.1 wants a scheme).
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
