//! The portal's cookies: read strictly, written with every protection that browsers have.
//!
//! The prefix `__Host-` makes a browser refuse them without `Secure` and `Path=/`, or from another
//! host (RFC 6265bis §4.1.3.2).

use std::time::Duration;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Returns the cookies of a request, as name and value. A line that is not UTF-8 is left out: the portal
/// writes ASCII only.
pub fn all(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(COOKIE).iter();
    let lines = lines.filter_map(|line| std::str::from_utf8(line.as_bytes()).ok());
    let pairs = lines.flat_map(|line| line.split(';'));
    pairs.filter_map(|pair| pair.trim_matches([' ', '\t']).split_once('='))
}

/// Returns the value of a cookie that was sent once; none where it was not sent, or twice: then another
/// party may have set one of them.
pub fn once<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = all(headers).filter(|(other, _)| *other == name);
    match (values.next(), values.next()) {
        (Some((_, value)), None) => Some(value),
        _ => None,
    }
}

/// Returns `Set-Cookie` with a value of letters, digits, `-` and `_`. Without `lifetime` the browser keeps
/// it as long as it runs.
pub fn set(name: &str, value: &str, lifetime: Option<Duration>) -> HeaderValue {
    let age = lifetime.map(|lifetime| format!("; Max-Age={}", lifetime.as_secs()));
    let age = age.unwrap_or_default();
    let text = format!("{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax{age}");
    HeaderValue::try_from(text).expect("names and values are ASCII of ours")
}

/// Returns `Set-Cookie` that removes a cookie.
pub fn clear(name: &str) -> HeaderValue {
    set(name, "", Some(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(COOKIE, line.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let headers = sent(&["a=1; __Host-water_session=x=y ;b", "c=3"]);
        assert_eq!(once(&headers, "__Host-water_session"), Some("x=y"));
        assert_eq!(once(&headers, "c"), Some("3"));
        assert_eq!(once(&headers, "d"), None);
    }

    #[test]
    fn a_cookie_that_is_sent_twice_is_not_believed() {
        for lines in [&["a=1; a=1"][..], &["a=1", "a=2"]] {
            assert_eq!(once(&sent(lines), "a"), None, "{lines:?}");
        }
    }

    #[test]
    fn a_cookie_is_set_and_taken_away_with_these_words() {
        assert_eq!(
            set("__Host-a", "b", Some(Duration::from_secs(600))),
            "__Host-a=b; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600"
        );
        assert_eq!(
            set("__Host-a", "b", None),
            "__Host-a=b; Path=/; Secure; HttpOnly; SameSite=Lax"
        );
        assert_eq!(
            clear("__Host-a"),
            "__Host-a=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0"
        );
    }
}
