//! Signing in: the authorisation code flow with PKCE, state and nonce (OpenID Connect Core 1.0 §3.1, RFC
//! 7636, RFC 9207).
//!
//! The state between the way to the provider and the way back is sealed in the browser: a visitor
//! without a session costs no store anything.

mod pending;

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use sha2::{Digest, Sha256};
use tracing::{info, warn};
use water_domain::{PlanName, Timestamp};
use water_http::{Code, Problem, Query, RequestHead};
use water_keystore::SessionStart;
use water_runtime::telemetry::chain;

use crate::account_request::Response;
use crate::claims::{ClaimName, Pattern};
use crate::metrics::Metrics;
use crate::notice::Notice;
use crate::origin::PortalUrl;
use crate::pages;
use crate::plans::Plans;
use crate::provider::{IdToken, Provider, ProviderError, encoded};
use crate::random;
use crate::seal::SealKey;
use crate::session::Session;
use crate::sessions::{Sessions, Use};
use crate::standing::Standing;

use pending::{LIFETIME, Pending};

/// Path to which the provider sends people back.
const CALLBACK: &str = "/auth/callback";
/// Page to which a second return leads.
const HOME: &str = "/";
/// Reason of a second return.
const STATE_USED: &str = "state_used";

/// Parts of a sign-in.
#[derive(Debug)]
pub struct SignIn {
    /// The identity provider.
    pub provider: Arc<Provider>,
    /// Health of the provider, which learns whether it takes the portal's client.
    pub standing: Standing,
    /// The portal's own origin.
    pub url: PortalUrl,
    /// Key that seals the state in the browser.
    pub seal: SealKey,
    /// Store of the session.
    pub sessions: Sessions,
    /// The claim with the accounts.
    pub claim: ClaimName,
    /// Pattern of the claim's values.
    pub pattern: Pattern,
    /// The plan of values that name none.
    pub default_plan: Option<PlanName>,
    /// Plans, for warnings of those that do not exist.
    pub plans: Plans,
    /// Counters of the sign-ins' outcomes.
    pub metrics: Metrics,
}

/// Reason for which nobody was signed in: the page's message, and a stable word for the log.
struct Failure {
    notice: Notice,
    reason: &'static str,
    error: String,
}

impl SignIn {
    /// Answers `GET /auth/sign-in?to=/own/path`: redirects to the identity provider.
    pub async fn begin(
        &self,
        request: &RequestHead,
        query: &Query<'_>,
        now: Timestamp,
    ) -> Response {
        let outcome = self.depart(request, query, now).await;
        outcome.unwrap_or_else(|failure| failure.answer(request))
    }

    async fn depart(
        &self,
        request: &RequestHead,
        query: &Query<'_>,
        now: Timestamp,
    ) -> Result<Response, Failure> {
        let to = pages::own(asked(query)?);
        let metadata = self.provider.metadata().await?;
        let pending = Pending::new(to, now)?;
        let challenge = Sha256::digest(&pending.verifier);
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge);
        let client = self.provider.client();
        let parameters = encoded(&[
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", &self.url.join(CALLBACK)),
            ("scope", client.scopes.as_str()),
            ("state", &pending.state),
            ("nonce", &pending.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        let endpoint = &metadata.authorization_endpoint;
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        let mut answer = see(&format!("{endpoint}{joint}{parameters}"))?;
        let cookies = answer.headers_mut();
        for old in pending::surplus(&request.headers, &self.seal) {
            cookies.append(SET_COOKIE, old);
        }
        cookies.append(SET_COOKIE, pending.cookie(&self.seal, random::bytes()?));
        Ok(answer)
    }

    /// Returns the sign-in under way that a return from the provider belongs to, if this browser began it.
    pub fn pending(
        &self,
        request: &RequestHead,
        query: &Query<'_>,
        now: Timestamp,
    ) -> Option<Pending> {
        let state = query.get("state").ok().flatten().unwrap_or_default();
        Pending::read(&request.headers, state, &self.seal, now)
    }

    /// Answers a return that belongs to no sign-in of this browser. Anybody can send it, as often as they like: it is
    /// counted, and not logged.
    pub async fn refuse(&self, request: &RequestHead, now: Timestamp) -> Response {
        self.metrics.sign_in("state");
        match self.home(request, now).await {
            Ok(Some(home)) => home,
            Ok(None) => Notice::NotBegun.into_response(&request.headers, &request.id),
            Err(failure) => failure.answer(request),
        }
    }

    /// Returns the way home, if the reader is signed in: they have loaded the way back again, or clicked twice. Fails
    /// while Redis is away.
    async fn home(
        &self,
        request: &RequestHead,
        now: Timestamp,
    ) -> Result<Option<Response>, Failure> {
        // A page of another site can send them here: that is no use of a session.
        match self.sessions.find(&request.headers, now, Use::Poll).await? {
            Some(_) => Ok(Some(see(HOME)?)),
            None => Ok(None),
        }
    }

    /// Answers `GET /auth/callback`, back from the identity provider. The sign-in is used up, whatever
    /// comes of it.
    pub async fn finish(
        &self,
        request: &RequestHead,
        query: &Query<'_>,
        pending: &Pending,
        now: Timestamp,
    ) -> Response {
        let outcome = self.arrive(request, query, pending, now).await;
        let reason = outcome.as_ref().err().map(|failure| failure.reason);
        self.metrics.sign_in(reason.unwrap_or("signed_in"));
        let mut answer = match outcome {
            Ok(answer) => answer,
            Err(failure) if failure.reason == STATE_USED => self.again(request, failure, now).await,
            Err(failure) => failure.answer(request),
        };
        answer.headers_mut().append(SET_COOKIE, pending.clear());
        answer
    }

    /// Answers a second return of a sign-in of this browser.
    async fn again(&self, request: &RequestHead, used: Failure, now: Timestamp) -> Response {
        match self.home(request, now).await {
            Ok(Some(home)) => home,
            Ok(None) => used.answer(request),
            Err(failure) => failure.answer(request),
        }
    }

    async fn arrive(
        &self,
        request: &RequestHead,
        query: &Query<'_>,
        pending: &Pending,
        now: Timestamp,
    ) -> Result<Response, Failure> {
        if !self
            .sessions
            .once("state", &pending.state, LIFETIME)
            .await?
        {
            return Err(Failure::new(Notice::NotBegun, STATE_USED));
        }
        let metadata = self.provider.metadata().await?;
        let issuer = query.get("iss")?;
        let ours = |issuer| issuer == self.provider.client().issuer.as_str();
        if !issuer.map_or(!metadata.names_issuer, ours) {
            return Err(Failure::new(Notice::NotBelieved, "issuer"));
        }
        if query.get("error")?.is_some() {
            return Err(Failure::new(Notice::Refused, "refused_by_provider"));
        }
        let Some(code) = query.get("code")?.filter(|code| !code.is_empty()) else {
            return Err(Failure::new(Notice::NotBegun, "code"));
        };
        let redirect = self.url.join(CALLBACK);
        let exchanged =
            self.provider
                .exchange(code, &pending.verifier, &redirect, &pending.nonce, now);
        let exchanged = exchanged.await;
        self.standing.note_exchange(&exchanged);
        let session = self.session(exchanged?, now)?;
        // A browser has one session: whatever its cookie opened until now is over.
        self.sessions.end(&request.headers, now).await?;
        let began = SessionStart {
            asked: pending.at,
            signed_in: now,
        };
        let Some(cookie) = self.sessions.begin(&session, began).await? else {
            return Err(Failure::new(Notice::NotBegun, "ended_meanwhile"));
        };
        info!(
            request.id = request.id.as_str(),
            accounts = session.grants().len(),
            "signed in"
        );
        let mut answer = see(&pending.to)?;
        answer.headers_mut().append(SET_COOKIE, cookie);
        Ok(answer)
    }

    fn session(&self, token: IdToken, now: Timestamp) -> Result<Session, Failure> {
        let default_plan = self.default_plan.as_ref();
        let accounts = self
            .pattern
            .accounts(&token.claims, &self.claim, default_plan);
        let accounts = accounts.map_err(|error| Failure {
            notice: Notice::Claims,
            reason: error.as_str(),
            error: error.to_string(),
        })?;
        for reason in &accounts.left_out {
            warn!(%reason, "a value of the accounts claim gives no account");
        }
        for grant in &accounts.grants {
            if !self.plans.has(&grant.plan) {
                let (account, plan) = (grant.account.as_str(), grant.plan.as_str());
                warn!(
                    account.id = account,
                    plan, "the WaterDataApi has no such plan: no access"
                );
            }
        }
        Ok(Session {
            subject: token.subject,
            name: token.name,
            sid: token.sid,
            grants: accounts.grants,
            id_token: token.text.into_inner(),
            ends: self.sessions.end_of(now),
        })
    }
}

/// Returns the page that a sign-in names. One that a provider or another site begins has `iss`: what else is in it must
/// be ignored (OpenID Connect Core 1.0 §4).
fn asked<'a>(query: &'a Query<'_>) -> Result<Option<&'a str>, Failure> {
    let is_of_others = query.pairs().any(|(name, _)| name == "iss");
    let known = if is_of_others {
        Ok(())
    } else {
        query.only(&["to"])
    };
    let to = known.and_then(|()| query.get("to"));
    to.map_err(|problem| Failure::new(Notice::Parameters, problem.code().as_str()))
}

/// Answers 303: the browser does not repeat the POST at the next page.
fn see(address: &str) -> Result<Response, Problem> {
    let mut answer = Response::default();
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let address = HeaderValue::try_from(address).map_err(Problem::internal)?;
    answer.headers_mut().insert(LOCATION, address);
    Ok(answer)
}

impl Failure {
    fn new(notice: Notice, reason: &'static str) -> Self {
        let error = String::new();
        Self {
            notice,
            reason,
            error,
        }
    }

    fn answer(self, request: &RequestHead) -> Response {
        let (id, reason, error) = (request.id.as_str(), self.reason, self.error);
        warn!(request.id = id, reason, error, "a sign-in failed");
        self.notice.into_response(&request.headers, &request.id)
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        let notice = match &error {
            error if error.is_away() => Notice::ProviderAway,
            ProviderError::Refused("invalid_grant") => Notice::NotBegun,
            error if error.refusal_of_client().is_some() => Notice::ClientRefused,
            _ => Notice::NotBelieved,
        };
        Self {
            notice,
            reason: error.as_str(),
            error: chain(&error).to_string(),
        }
    }
}

/// Failure of the query, the store or the random source.
impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let notice = match problem.code() {
            Code::DependencyUnavailable => Notice::StoreAway,
            Code::Internal => Notice::Internal,
            _ => Notice::NotBegun,
        };
        Self {
            notice,
            reason: problem.code().as_str(),
            error: problem.cause().map(chain_of).unwrap_or_default(),
        }
    }
}

fn chain_of(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    chain(error).to_string()
}
