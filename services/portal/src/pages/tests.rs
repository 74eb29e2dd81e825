//! Paths of pages, and the serving of files.

use std::net::IpAddr;

use http::Request;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH};
use water_http::{RequestIds, TrustedProxies};

use super::*;

fn pages() -> Pages {
    let files = [
        ("index.html", "<!doctype html>".to_owned()),
        ("assets/main-0a1b2c3d.js", "let water = 1;".repeat(200)),
        ("favicon.svg", "<svg/>".to_owned()),
        ("reload.js", "location.reload()".to_owned()),
    ];
    Pages::new(files.map(|(path, text)| (path.to_owned(), text.into_bytes()))).unwrap()
}

fn get(path: &str, fields: &[(http::HeaderName, &str)]) -> Option<Response> {
    let mut request = Request::get(path);
    for (name, value) in fields {
        request = request.header(name, *value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let peer = IpAddr::from([127, 0, 0, 1]);
    let received = RequestHead::new(head, peer, &TrustedProxies::default(), &RequestIds::new(1));
    pages().answer(&received)
}

#[test]
fn every_page_is_the_same_document_and_is_asked_for_again() {
    for path in [
        "/",
        "/docs",
        "/sources",
        "/a/acme/map?by=flood",
        "/a/acme/settings/api",
    ] {
        let answer = get(path, &[]).unwrap();
        assert_eq!(
            answer.headers()[CONTENT_TYPE],
            "text/html; charset=utf-8",
            "{path}"
        );
        assert_eq!(answer.headers()[CACHE_CONTROL], "no-cache", "{path}");
    }
}

#[test]
fn nothing_else_is_found() {
    for path in [
        "/index.html",
        "/docs/",
        "/a/acme",
        "/a/acme/map/",
        "/a/-acme/map",
        "/a//map",
        "/assets/main-other.js",
        "/assets/../index.html",
        "/assets",
    ] {
        assert!(get(path, &[]).is_none(), "{path}");
    }
}

#[test]
fn an_asset_is_kept_for_a_year_and_coded_as_the_browser_likes() {
    let path = "/assets/main-0a1b2c3d.js";
    let plain = get(path, &[]).unwrap();
    assert_eq!(
        plain.headers()[CACHE_CONTROL],
        "public, max-age=31536000, immutable"
    );
    assert_eq!(
        plain.headers()[CONTENT_TYPE],
        "text/javascript; charset=utf-8"
    );
    assert_eq!(plain.body().len(), 2800);
    for (accepted, coding) in [("br, gzip", "br"), ("gzip", "gzip")] {
        let coded = get(path, &[(ACCEPT_ENCODING, accepted)]).unwrap();
        assert_eq!(coded.headers()[CONTENT_ENCODING], coding);
        assert!(coded.body().len() < 200);
        assert_ne!(coded.headers()[ETAG], plain.headers()[ETAG]);
        assert_eq!(coded.headers()[VARY], "Accept-Encoding");
    }
}

#[test]
fn a_page_that_asks_for_a_script_of_another_version_gets_one_that_loads_it_again() {
    let dest = HeaderName::from_static("sec-fetch-dest");
    let gone = |path, dest_is| get(path, &[(dest.clone(), dest_is)]);
    let answer = gone("/assets/main-99999999.js", "script").unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(
        answer.headers()[CONTENT_TYPE],
        "text/javascript; charset=utf-8"
    );
    assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
    assert_eq!(answer.body(), "location.reload()");
    for (path, dest) in [
        ("/assets/main-99999999.js", "document"),
        ("/assets/main-99999999.js", "empty"),
        ("/assets/main-99999999.css", "style"),
        ("/assets/main-99999999.css", "script"),
        ("/other.js", "script"),
    ] {
        assert!(gone(path, dest).is_none(), "{path} {dest}");
    }
    assert!(get("/assets/main-99999999.js", &[]).is_none());
    let kept = gone("/assets/main-0a1b2c3d.js", "script").unwrap();
    assert_eq!(kept.body().len(), 2800);
}

#[test]
fn what_the_browser_has_is_not_sent_again() {
    let tag = get("/", &[]).unwrap().headers()[ETAG].clone();
    let again = get("/docs", &[(IF_NONE_MATCH, tag.to_str().unwrap())]).unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(again.body().is_empty());
}

#[test]
fn a_binary_without_a_first_page_has_no_pages() {
    assert_eq!(Pages::new([]).unwrap_err(), NoPages);
    assert!(NoPages.to_string().contains("cargo dev web"));
}

#[test]
fn after_a_sign_in_the_reader_stays_here() {
    for good in [
        "/",
        "/docs",
        "/a/acme/settings/api",
        "/a/acme/map?by=flood&dept=34",
    ] {
        assert_eq!(own(Some(good)), good);
    }
    for bad in [
        "",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/auth/sign-out",
        "/auth/sign-in",
        "/a/acme/map?by=\r\nSet-Cookie: a=b",
        "/docs?next=https://evil.example",
        "/docs#evil",
        "/unknown",
        " /docs",
    ] {
        assert_eq!(own(Some(bad)), "/", "{bad:?}");
    }
    assert_eq!(own(None), "/");
}
