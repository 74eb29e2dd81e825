//! Duties of every service behind the gate towards `water_http`'s frame. The frame has its own tests; here a
//! service shows that it answers within it.

use water_harness::Answer;

use crate::{NEXT, Running, Signature, problem};

/// Returns the headers of an answer without its time.
fn headers(answer: &Answer) -> Vec<(String, String)> {
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| name != "date");
    headers
}

impl Running {
    /// Checks headers, coding, tag, HEAD, query, path and the gate's signature of `target`, whose body
    /// is long enough to be coded and may be kept like this.
    pub async fn answers_in_the_frame(&self, target: &str, kept: &str) {
        let asked = [("Accept-Encoding", "br"), ("X-Request-Id", "same-id-1")];
        let get = self.request("GET", target, &asked).await;
        assert_eq!(get.status, 200, "{get:?}");
        for (name, value) in [
            ("content-type", "application/json"),
            ("content-encoding", "br"),
            ("cache-control", kept),
            ("vary", "Authorization, Accept, Accept-Encoding"),
            ("x-content-type-options", "nosniff"),
            ("accept-ranges", "none"),
            ("x-request-id", "same-id-1"),
        ] {
            assert_eq!(get.header(name), Some(value), "{name}");
        }

        let head = self.request("HEAD", target, &asked).await;
        assert_eq!((head.status, headers(&head)), (200, headers(&get)));
        let known = [
            ("Accept-Encoding", "br"),
            ("If-None-Match", get.header("etag").unwrap()),
        ];
        let unchanged = self.request("GET", target, &known).await;
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
        assert_eq!(unchanged.header("link"), get.header("link"));

        // A form that the gate does not name is JSON.
        let other = self.request("GET", target, &[("X-Water-Format", "xml")]);
        assert_eq!(other.await.body, self.get(target).await.body);
        let path = target.split('?').next().unwrap();
        for (target, status, code) in [
            (format!("{path}?x=%ff"), 400, "invalid_query"),
            (format!("{path}?x=1"), 400, "invalid_parameter"),
            (format!("{path}/"), 404, "not_found"),
        ] {
            let answer = problem(&self.get(&target).await);
            assert_eq!((answer.0, answer.1), (status, code.into()), "{target}");
        }

        let unknown = self.request("HEAD", &format!("{path}?x=1"), &[]).await;
        assert_eq!((unknown.status, unknown.body.len()), (400, 0));

        // Only problems depend on the language.
        let french = [("Accept-Language", "fr"), asked[0], asked[1]];
        let same = self.request("GET", target, &french).await;
        assert_eq!((headers(&same), &same.body), (headers(&get), &get.body));
        let refused = self.request("GET", &format!("{path}/"), &french).await;
        assert_eq!(problem(&refused).0, 404);
        assert_eq!(refused.header("content-language"), Some("fr"));
        let title = &refused.json().unwrap()["title"];
        assert_eq!(title, "Cette ressource n’existe pas");

        let bearer = [("Authorization", "Bearer something")];
        let unsigned = self.raw("GET", target, &bearer).await;
        assert_eq!(problem(&unsigned).0, 401);
        // The next key, by a clock an hour ahead: an identity is good for half a minute.
        let next = Signature {
            key: NEXT,
            expires_in: 3_630_000,
            ..Signature::default()
        };
        let next = next.value("GET", target);
        assert_eq!(self.get_with(target, &next).await.status, 200);
        let skew = self.metric("water_identity_clock_skew_seconds").await;
        let seconds: f64 = skew.parse().unwrap();
        assert!((3_500.0..=3_600.0).contains(&seconds), "{skew} s");
    }
}
