//! What a path asks for. Paths are compared byte for byte: nothing is normalised.

/// What stands before an account's own paths.
const ACCOUNTS: &str = "/account/v1/accounts/";
/// Where the description of the API is.
const DESCRIPTION: &str = "/account/v1/openapi.json";

/// What a path asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Route<'a> {
    /// `/auth/sign-in`: to the identity provider.
    SignIn,
    /// `/auth/callback`: back from it.
    Callback,
    /// `/auth/sign-out`: the session ends.
    SignOut,
    /// `/auth/back-channel`: the identity provider ends sessions.
    BackChannel,
    /// `/account/v1/session`: who is signed in.
    Session,
    /// `/account/v1/openapi.json`: what this API is like.
    Description,
    /// `/account/v1/accounts/{account}/…`.
    Account {
        /// As it stands in the path.
        account: &'a str,
        /// The segments behind it, at least one.
        rest: Vec<&'a str>,
    },
    /// Everything else: a page, an asset, or nothing.
    Page(&'a str),
}

impl<'a> Route<'a> {
    /// The route of a path.
    pub fn of(path: &'a str) -> Self {
        match path {
            "/auth/sign-in" => Self::SignIn,
            "/auth/callback" => Self::Callback,
            "/auth/sign-out" => Self::SignOut,
            "/auth/back-channel" => Self::BackChannel,
            "/account/v1/session" => Self::Session,
            DESCRIPTION => Self::Description,
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

    /// The methods that it has; an account's paths judge by themselves.
    pub fn methods(&self) -> Option<&'static str> {
        match self {
            Self::SignIn | Self::Callback => Some("GET"),
            Self::SignOut | Self::BackChannel => Some("POST"),
            Self::Session | Self::Description | Self::Page(_) => Some("GET, HEAD"),
            Self::Account { .. } => None,
        }
    }

    /// Its name in the access log. Names what is known: a client's text is not repeated.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SignIn => "/auth/sign-in",
            Self::Callback => "/auth/callback",
            Self::SignOut => "/auth/sign-out",
            Self::BackChannel => "/auth/back-channel",
            Self::Session => "/account/v1/session",
            Self::Description => DESCRIPTION,
            Self::Account { rest, .. } => account_route(rest),
            Self::Page(_) => "page",
        }
    }
}

fn account_route(rest: &[&str]) -> &'static str {
    match rest {
        ["keys"] => "/account/v1/accounts/{account}/keys",
        ["keys", _] => "/account/v1/accounts/{account}/keys/{name}",
        ["keys", _, "rotation"] => "/account/v1/accounts/{account}/keys/{name}/rotation",
        ["keys", _, "previous"] => "/account/v1/accounts/{account}/keys/{name}/previous",
        ["quota"] => "/account/v1/accounts/{account}/quota",
        ["usage"] => "/account/v1/accounts/{account}/usage",
        ["stress"] => "/account/v1/accounts/{account}/stress",
        ["risque"] => "/account/v1/accounts/{account}/risque",
        ["hydrorisk"] => "/account/v1/accounts/{account}/hydrorisk",
        ["conformite"] => "/account/v1/accounts/{account}/conformite",
        ["sources"] => "/account/v1/accounts/{account}/sources",
        _ => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accounts_path_is_cut_into_its_segments() {
        let route = Route::of("/account/v1/accounts/acme/keys/acme-0a1b/rotation");
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
            assert_eq!(Route::of(path), Route::Page(path), "{path}");
        }
    }
}
