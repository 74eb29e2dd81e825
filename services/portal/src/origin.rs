//! The portal's own origin, and whether a browser's request comes from a page of it.
//!
//! Browsers say so by `Sec-Fetch-Site` (Fetch Metadata), older ones by `Origin`; pages cannot set either.
//! No address is made of a request's `Host`: a page that is asked for under another name is answered with its address
//! under the portal's own.

use std::str::FromStr;

use http::header::{HOST, LOCATION, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use water_http::{Problem, RequestHead};

use crate::account_request::Response;

const SCHEME: &str = "https://";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The portal's address in browsers: `https`, a host, a port if it is not 443; no path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalUrl(Box<str>);

/// Text that is no origin of the portal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the portal's URL is https:// and a host in lower case, without a path")]
pub struct InvalidPortalUrl;

impl PortalUrl {
    /// Returns the origin, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the whole address of a path of ours, which begins with `/`.
    pub fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// Answers a request that was sent under another name with 308, to the same path and query here. A sign-in that
    /// begins there could not end: its cookie would stay at that name. None under the portal's own name, and of an old
    /// client that sends none.
    pub fn redirect(&self, request: &RequestHead) -> Result<Option<Response>, Problem> {
        let host = request.headers.get(HOST);
        if host.is_none_or(|host| self.is_own_host(host.as_bytes())) {
            return Ok(None);
        }
        // Never of the target's own authority, which may be another one too.
        let mut address = self.join(request.uri.path());
        if let Some(query) = request.uri.query() {
            address.push('?');
            address.push_str(query);
        }
        let mut answer = Response::default();
        *answer.status_mut() = StatusCode::PERMANENT_REDIRECT;
        let address = HeaderValue::try_from(address).map_err(Problem::internal)?;
        answer.headers_mut().insert(LOCATION, address);
        Ok(Some(answer))
    }

    /// Whether a `Host` is the portal's, in any case; 443 is the port where none is named.
    fn is_own_host(&self, host: &[u8]) -> bool {
        let own = self.0.strip_prefix(SCHEME).unwrap_or_default();
        let host = host.strip_suffix(b":443").unwrap_or(host);
        host.eq_ignore_ascii_case(own.as_bytes())
    }

    /// Refuses a request that asks for a change, unless a page of ours sent it.
    pub fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        if matches!(*method, Method::GET | Method::HEAD) || self.is_own(headers) {
            return Ok(());
        }
        Err(Problem::cross_origin())
    }

    fn is_own(&self, headers: &HeaderMap) -> bool {
        match only(headers, SEC_FETCH_SITE) {
            Said::Once(site) => site == b"same-origin",
            Said::Nothing => {
                matches!(only(headers, ORIGIN), Said::Once(origin) if origin == self.0.as_bytes())
            }
            Said::Often => false,
        }
    }
}

/// Refuses a request that a browser makes for anything but a page that its reader opens: a frame, an image
/// or a script of another site cannot begin a sign-in.
pub fn check_navigation(headers: &HeaderMap) -> Result<(), Problem> {
    match only(headers, SEC_FETCH_DEST) {
        Said::Nothing | Said::Once(b"document") => Ok(()),
        _ => Err(Problem::cross_origin()),
    }
}

enum Said<'a> {
    Nothing,
    Once(&'a [u8]),
    Often,
}

fn only(headers: &HeaderMap, name: HeaderName) -> Said<'_> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Said::Nothing,
        (Some(value), None) => Said::Once(value.as_bytes()),
        _ => Said::Often,
    }
}

impl FromStr for PortalUrl {
    type Err = InvalidPortalUrl;

    fn from_str(text: &str) -> Result<Self, InvalidPortalUrl> {
        let origin = text.strip_suffix('/').unwrap_or(text);
        let uri: Uri = origin.parse().map_err(|_| InvalidPortalUrl)?;
        let host = origin.strip_prefix(SCHEME).ok_or(InvalidPortalUrl)?;
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:[]".contains(&byte)
        };
        let default_port = uri.port_u16() == Some(443);
        match uri.host().is_some_and(|host| !host.is_empty())
            && host.bytes().all(plain)
            && !default_port
        {
            true => Ok(Self(origin.into())),
            false => Err(InvalidPortalUrl),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::received;

    fn sent(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn changes(fields: &[(&'static str, &str)]) -> bool {
        let own: PortalUrl = "https://water.example.org".parse().unwrap();
        own.check(&Method::POST, &sent(fields)).is_ok()
    }

    #[test]
    fn only_our_own_pages_may_ask_for_changes() {
        assert!(changes(&[("sec-fetch-site", "same-origin")]));
        assert!(changes(&[("origin", "https://water.example.org")]));
        let refused: &[&[(&str, &str)]] = &[
            &[],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "none")],
            &[
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "https://water.example.org"),
            ],
            &[("origin", "null")],
            &[("origin", "http://water.example.org")],
            &[("origin", "https://water.example.org:8443")],
            &[("origin", "https://evil.water.example.org")],
            &[
                ("origin", "https://water.example.org"),
                ("origin", "https://water.example.org"),
            ],
            &[("referer", "https://water.example.org/")],
        ];
        for fields in refused {
            assert!(!changes(fields), "{fields:?}");
        }
    }

    #[test]
    fn whoever_only_looks_need_not_say_where_from() {
        let own: PortalUrl = "https://water.example.org".parse().unwrap();
        let headers = sent(&[("sec-fetch-site", "cross-site")]);
        for method in [Method::GET, Method::HEAD] {
            assert!(own.check(&method, &headers).is_ok());
        }
        for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
            assert!(own.check(&method, &headers).is_err());
        }
    }

    /// Returns the address that a GET of this target is sent on to.
    fn sent_on(own: &str, host: Option<&str>, target: &str) -> Option<String> {
        let own: PortalUrl = own.parse().unwrap();
        let fields: Vec<_> = host.map(|host| ("host", host)).into_iter().collect();
        let answer = own.redirect(&received("GET", target, &fields)).unwrap()?;
        assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT);
        assert!(answer.body().is_empty());
        Some(answer.headers()[LOCATION].to_str().unwrap().to_owned())
    }

    #[test]
    fn under_another_name_the_same_target_is_found_at_the_portals_own() {
        let own = "https://water.example";
        for host in [
            "water.example.",
            "water.example:8443",
            "water.example:80",
            "www.water.example",
            "water",
            "10.0.0.1",
            "evil.example",
        ] {
            let address = sent_on(own, Some(host), "/a/acme/map?by=flood&dept=34");
            let expected = "https://water.example/a/acme/map?by=flood&dept=34";
            assert_eq!(address.as_deref(), Some(expected), "{host}");
        }
        let with_port = "https://water.example:8443";
        for host in ["water.example", "water.example:443", "water.example.:8443"] {
            let address = sent_on(with_port, Some(host), "/");
            assert_eq!(
                address.as_deref(),
                Some("https://water.example:8443/"),
                "{host}"
            );
        }
    }

    #[test]
    fn under_its_own_name_in_any_case_or_under_none_a_target_stays() {
        let own = "https://water.example";
        for host in ["water.example", "Water.EXAMPLE", "water.example:443"] {
            assert_eq!(sent_on(own, Some(host), "/docs"), None, "{host}");
        }
        assert_eq!(sent_on(own, None, "/docs"), None);
        let address = "https://[::1]:8443";
        assert_eq!(sent_on(address, Some("[::1]:8443"), "/docs"), None);
    }

    #[test]
    fn no_target_leads_to_another_host() {
        let own = "https://water.example";
        for (target, address) in [
            (
                "//evil.example/docs",
                "https://water.example//evil.example/docs",
            ),
            ("/@evil.example", "https://water.example/@evil.example"),
            (
                "/?to=//evil.example",
                "https://water.example/?to=//evil.example",
            ),
            (
                "http://evil.example/docs?a=b",
                "https://water.example/docs?a=b",
            ),
            ("http://evil.example", "https://water.example/"),
        ] {
            let found = sent_on(own, Some("evil.example"), target);
            assert_eq!(found.as_deref(), Some(address), "{target}");
        }
    }

    #[test]
    fn only_a_page_that_the_reader_goes_to_begins_a_sign_in() {
        assert!(check_navigation(&sent(&[("sec-fetch-dest", "document")])).is_ok());
        assert!(check_navigation(&sent(&[])).is_ok());
        for dest in ["iframe", "image", "empty", "script"] {
            assert!(
                check_navigation(&sent(&[("sec-fetch-dest", dest)])).is_err(),
                "{dest}"
            );
        }
    }

    #[test]
    fn the_url_is_an_origin_by_https() {
        for good in [
            "https://water.example.org",
            "https://localhost:8443",
            "https://[::1]:8443",
        ] {
            assert_eq!(good.parse::<PortalUrl>().unwrap().as_str(), good);
        }
        let slash: PortalUrl = "https://water.example.org/".parse().unwrap();
        assert_eq!(
            slash.join("/auth/callback"),
            "https://water.example.org/auth/callback"
        );
        for bad in [
            "",
            "http://water.example.org",
            "https://",
            "https://water.example.org/portal",
            "https://water.example.org?a",
            "https://user@water.example.org",
            "https://Water.example.org",
            "https://water.example.org:443",
        ] {
            assert_eq!(bad.parse::<PortalUrl>(), Err(InvalidPortalUrl), "{bad}");
        }
    }
}
