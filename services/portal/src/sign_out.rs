//! Signing out: by the reader (RP-Initiated Logout 1.0), and by the identity provider (Back-Channel
//! Logout 1.0).

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use tracing::{info, warn};
use water_domain::Timestamp;
use water_http::{Problem, Query, RequestHead};

use crate::account_request::Response;
use crate::json::json;
use crate::origin::PortalUrl;
use crate::provider::{Provider, encoded};
use crate::random;
use crate::session::Session;
use crate::sessions::Sessions;

/// The longest hint that is put into an address.
const MAX_HINT: usize = 2 * 1024;
/// The type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// Parts of a sign-out.
#[derive(Debug)]
pub struct SignOut {
    /// Provider at which people sign out.
    pub provider: Arc<Provider>,
    /// The portal's own origin.
    pub url: PortalUrl,
    /// Store in which the session ends.
    pub sessions: Sessions,
}

impl SignOut {
    /// Answers `POST /auth/sign-out`: ends the session and returns the next address. Without a session
    /// there is nothing to end, which is no failure.
    pub async fn by_reader(
        &self,
        request: &RequestHead,
        now: Timestamp,
    ) -> Result<Response, Problem> {
        let ended = self.sessions.end(&request.headers, now).await?;
        let next = match &ended {
            Some(session) => self.next(session)?,
            None => "/".to_owned(),
        };
        let mut answer = json(StatusCode::OK, &serde_json::json!({ "next": next }));
        answer.headers_mut().append(SET_COOKIE, Sessions::clear());
        Ok(answer)
    }

    /// Returns the provider's end of session; home where it has none, or was never reached. Asks nothing: signing out
    /// waits for nobody.
    fn next(&self, session: &Session) -> Result<String, Problem> {
        let Some(metadata) = self.provider.known_metadata() else {
            warn!("signed out here, not at the identity provider, which was not reached yet");
            return Ok("/".to_owned());
        };
        let Some(endpoint) = metadata.end_session_endpoint else {
            return Ok("/".to_owned());
        };
        let who = if session.id_token.len() <= MAX_HINT {
            ("id_token_hint", session.id_token.as_str())
        } else {
            ("client_id", self.provider.client().id.as_str())
        };
        let home = self.url.join("/");
        let state = random::text()?;
        let back = ("post_logout_redirect_uri", home.as_str());
        let parameters = encoded(&[who, back, ("state", &state)]);
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        Ok(format!("{endpoint}{joint}{parameters}"))
    }

    /// Answers `POST /auth/back-channel`: ends the sessions that a logout token names. Reads no cookie.
    pub async fn by_provider(
        &self,
        request: &RequestHead,
        body: &Bytes,
        now: Timestamp,
    ) -> Result<Response, Problem> {
        is_form(&request.headers)?;
        let text = std::str::from_utf8(body).map_err(|_| Problem::invalid_logout_token())?;
        let form = Query::parse(Some(text)).map_err(|_| Problem::invalid_logout_token())?;
        let token = form.get("logout_token").ok().flatten();
        let token = token.ok_or_else(Problem::invalid_logout_token)?;
        let token = self
            .provider
            .logout_token(token, now)
            .await
            .map_err(|error| {
                if error.is_away() {
                    Problem::dependency_unavailable().caused_by(error)
                } else {
                    Problem::invalid_logout_token().caused_by(error)
                }
            })?;
        match self.sessions.end_by(&token, now).await? {
            Some(sessions) => {
                info!(
                    request.id = request.id.as_str(),
                    sessions, "signed out by the identity provider"
                );
                Ok(Response::default())
            }
            None => Err(Problem::invalid_logout_token().caused_by("it was used before")),
        }
    }
}

fn is_form(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    if kind.trim().eq_ignore_ascii_case(FORM) {
        Ok(())
    } else {
        Err(Problem::unsupported_media_type(FORM))
    }
}
