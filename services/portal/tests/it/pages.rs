//! Pages over the wire; how they are coded and kept is a matter of the unit tests.

use crate::site::*;

#[tokio::test]
async fn every_page_is_served_to_everybody_and_not_sent_again_unchanged() {
    let site = Site::start().await;
    let mut browser = site.browser();
    for target in [
        "/",
        "/docs",
        "/sources",
        "/a/acme/map?by=flood&dept=34",
        "/a/acme/settings/api",
    ] {
        let answer = browser.get(target).await;
        assert_eq!(
            (answer.status, &answer.body[..]),
            (200, &b"<!doctype html>"[..]),
            "{target}"
        );
        let tag = answer.header("etag").unwrap();
        let again = browser
            .ask("GET", target, &[("If-None-Match", tag)], "")
            .await;
        assert_eq!(again.status, 304, "{target}");
    }
}
