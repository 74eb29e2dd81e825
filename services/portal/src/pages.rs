//! The pages: taken from the binary once, coded once, served from memory.
//!
//! Every path of a page gets `index.html`, whose script draws it. Assets have a hash of their
//! content in their name, so that a browser may keep them. While a rollout answers from two versions, a
//! page may ask for a script that only the other one has: it gets one that loads the page again.

use std::collections::HashMap;

use http::header::{CONTENT_TYPE, VARY};
use http::{HeaderName, HeaderValue, StatusCode};
use rust_embed::RustEmbed;
use water_domain::AccountId;
use water_http::representation::Conditions;
use water_http::{Representation, RequestHead};

use crate::account_request::Response;

/// Files that `cargo dev web` builds.
#[derive(RustEmbed)]
#[folder = "web/dist"]
#[allow_missing = true]
struct Built;

const INDEX: &str = "index.html";
/// The script that loads the page again.
const RELOAD: &str = "reload.js";
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// Folder of the files that the build names by a hash.
const HASHED: &str = "assets/";
const YEAR: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
const NEVER_KEPT: HeaderValue = HeaderValue::from_static("no-store");

/// The pages as they are served, by path without its first slash.
#[derive(Debug)]
pub struct Pages {
    files: HashMap<String, Page>,
    /// Script that replaces one of another version.
    reload: Option<Page>,
}

#[derive(Debug)]
struct Page {
    kind: HeaderValue,
    body: Representation,
}

/// A binary that was built without pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this binary was built without the portal's pages: run `cargo dev web` and build it again")]
pub struct NoPages;

impl Pages {
    /// Reads the pages of this binary.
    pub fn embedded() -> Result<Self, NoPages> {
        Self::new(Built::iter().filter_map(|path| {
            let file = Built::get(&path)?;
            Some((path.into_owned(), file.data.into_owned()))
        }))
    }

    /// Makes pages of these files, by path; `index.html` is one of them.
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Self, NoPages> {
        let mut pages = HashMap::new();
        let mut reload = None;
        for (path, content) in files {
            if path == RELOAD {
                reload = Some(Page::new(&path, content.clone(), NEVER_KEPT));
            }
            let cache = if path.starts_with(HASHED) {
                YEAR
            } else {
                ASK_AGAIN
            };
            let page = Page::new(&path, content, cache);
            pages.insert(path, page);
        }
        if pages.contains_key(INDEX) {
            Ok(Self {
                files: pages,
                reload,
            })
        } else {
            Err(NoPages)
        }
    }

    /// Answers with the page at a path; none where there is no page.
    pub fn answer(&self, request: &RequestHead) -> Option<Response> {
        let path = request.uri.path();
        let file = if is_page(path) {
            INDEX
        } else {
            path.strip_prefix('/').filter(|file| *file != INDEX)?
        };
        let page = self.files.get(file);
        let page = page.or_else(|| self.reload.as_ref().filter(|_| is_gone(file, request)))?;
        Some(page.answer(&Conditions::from_headers(&request.headers)))
    }
}

impl Page {
    fn new(path: &str, content: Vec<u8>, cache: HeaderValue) -> Self {
        Self {
            kind: HeaderValue::from_static(kind(path)),
            body: Representation::prepared(content, cache),
        }
    }

    fn answer(&self, conditions: &Conditions) -> Response {
        let mut answer = self.body.answer(conditions);
        let seen = answer.status() == StatusCode::NOT_MODIFIED;
        let headers = answer.headers_mut();
        // The same for every reader.
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        if !seen {
            headers.insert(CONTENT_TYPE, self.kind.clone());
        }
        answer
    }
}

/// Whether a page's script element or import asks for what may be a script of another version. Everybody
/// else hears that it does not exist.
fn is_gone(file: &str, request: &RequestHead) -> bool {
    let is_script = file.starts_with(HASHED) && file.ends_with(".js");
    is_script && request.headers.get(SEC_FETCH_DEST) == Some(&HeaderValue::from_static("script"))
}

/// Returns the media type of a file's extension; an unknown one is bytes, which no browser runs.
fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("txt") => "text/plain; charset=utf-8",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

/// Whether a path is one of a page.
pub fn is_page(path: &str) -> bool {
    if matches!(path, "/" | "/docs" | "/sources") {
        return true;
    }
    let of_account = path
        .strip_prefix("/a/")
        .and_then(|rest| rest.split_once('/'));
    of_account.is_some_and(|(account, page)| {
        matches!(page, "map" | "history" | "settings/api") && account.parse::<AccountId>().is_ok()
    })
}

/// Returns the target after a sign-in: the path of a page with its query, else `/`. Never another origin.
pub fn own(to: Option<&str>) -> &str {
    let fits = |to: &&str| {
        let (path, query) = to.split_once('?').unwrap_or((to, ""));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~=&%,".contains(&byte);
        is_page(path) && query.len() <= 200 && query.bytes().all(plain)
    };
    to.filter(fits).unwrap_or("/")
}

#[cfg(test)]
mod tests;
