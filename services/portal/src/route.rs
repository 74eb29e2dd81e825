//! Routes of paths. Paths are compared byte for byte: nothing is normalised.

/// Beginning of an account's own paths.
const ACCOUNTS: &str = "/account/v1/accounts/";
/// Paths below an account's own.
pub const ACCOUNT_PATHS: [&str; 11] = [
    "/account/v1/accounts/{account}/keys",
    "/account/v1/accounts/{account}/keys/{name}",
    "/account/v1/accounts/{account}/keys/{name}/rotation",
    "/account/v1/accounts/{account}/keys/{name}/previous",
    "/account/v1/accounts/{account}/quota",
    "/account/v1/accounts/{account}/usage",
    "/account/v1/accounts/{account}/stress",
    "/account/v1/accounts/{account}/risque",
    "/account/v1/accounts/{account}/hydrorisk",
    "/account/v1/accounts/{account}/conformite",
    "/account/v1/accounts/{account}/sources",
];
/// Number of segments before those of a route of an account.
const BEFORE: usize = 5;

/// Route of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route<'a> {
    /// `/auth/sign-in`: redirects to the identity provider.
    SignIn,
    /// `/auth/callback`: takes the reader back from it.
    Callback,
    /// `/auth/sign-out`: ends the session.
    SignOut,
    /// `/auth/back-channel`: the identity provider ends sessions.
    BackChannel,
    /// `/account/v1/session`: the signed-in person.
    Session,
    /// `/account/v1/accounts/{account}/…`.
    Account {
        /// Segment of the path.
        account: &'a str,
        /// The segments behind it, at least one.
        rest: Vec<&'a str>,
    },
    /// A page, an asset, or nothing: the other paths.
    Page(&'a str),
}

impl<'a> Route<'a> {
    /// Returns the route of a path.
    pub fn from_path(path: &'a str) -> Self {
        match path {
            "/auth/sign-in" => Self::SignIn,
            "/auth/callback" => Self::Callback,
            "/auth/sign-out" => Self::SignOut,
            "/auth/back-channel" => Self::BackChannel,
            "/account/v1/session" => Self::Session,
            _ => Self::account(path).unwrap_or(Self::Page(path)),
        }
    }

    fn account(path: &'a str) -> Option<Self> {
        let (account, rest) = path.strip_prefix(ACCOUNTS)?.split_once('/')?;
        Some(Self::Account {
            account,
            rest: rest.split('/').collect(),
        })
    }

    /// Returns the methods that it has; an account's paths judge by themselves.
    pub fn methods(&self) -> Option<&'static str> {
        match self {
            Self::SignIn | Self::Callback => Some("GET"),
            Self::SignOut | Self::BackChannel => Some("POST"),
            Self::Session | Self::Page(_) => Some("GET, HEAD"),
            Self::Account { .. } => None,
        }
    }

    /// Returns its name in the access log, which has no text of a client.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SignIn => "/auth/sign-in",
            Self::Callback => "/auth/callback",
            Self::SignOut => "/auth/sign-out",
            Self::BackChannel => "/auth/back-channel",
            Self::Session => "/account/v1/session",
            Self::Account { rest, .. } => account_route(rest),
            Self::Page(_) => "page",
        }
    }
}

fn account_route(rest: &[&str]) -> &'static str {
    let is_named = |path: &&str| {
        let segments = path.split('/').skip(BEFORE);
        let same = |(segment, given): (&str, &&str)| segment == *given || segment == "{name}";
        segments.clone().count() == rest.len() && segments.zip(rest).all(same)
    };
    ACCOUNT_PATHS.into_iter().find(is_named).unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accounts_path_is_cut_into_its_segments() {
        let route = Route::from_path("/account/v1/accounts/acme/keys/acme-0a1b/rotation");
        let rest = vec!["keys", "acme-0a1b", "rotation"];
        assert_eq!(
            route,
            Route::Account {
                account: "acme",
                rest
            }
        );
        assert_eq!(
            route.name(),
            "/account/v1/accounts/{account}/keys/{name}/rotation"
        );
        assert_eq!(
            Route::from_path("/account/v1/accounts/acme/keys/k/x").name(),
            "-"
        );
    }

    #[test]
    fn other_spellings_are_other_paths() {
        for path in [
            "/auth/sign-in/",
            "//auth/sign-in",
            "/auth/Sign-in",
            "/auth/./sign-in",
            "/auth/sign%2Din",
            "/account/v1/session/",
            "/account/v1/accounts/acme",
        ] {
            assert_eq!(Route::from_path(path), Route::Page(path), "{path}");
        }
    }
}
