//! Pages of lists, of which only what is kept reaches the client: their objects may have more than a megabyte of
//! metadata each, of which kube would hold several copies of a whole page.
//!
//! They are asked for where the API server streams no list, as that of Kubernetes 1.33.

use std::io::{self, BufReader};
use std::panic::resume_unwind;

use futures::TryStreamExt;
use http_body_util::BodyExt;
use hyper::header::CONTENT_LENGTH;
use hyper::{Request, Response, StatusCode};
use kube::Client;
use kube::api::{ObjectMeta, TypeMeta};
use kube::client::Body;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio_util::compat::FuturesAsyncReadCompatExt;
use tokio_util::io::SyncIoBridge;
use tower::service_fn;

use crate::watches::trim::trim;

/// A client whose pages of lists are decoded as they come.
pub fn trimmed(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request| exchange(client.clone(), request));
    Client::new(service, namespace)
}

async fn exchange(client: Client, request: Request<Body>) -> kube::Result<Response<Body>> {
    let is_page = is_page(request.uri().query().unwrap_or_default());
    let answer = client.send(request).await?;
    if !is_page || answer.status() != StatusCode::OK {
        return Ok(answer);
    }
    let (mut head, body) = answer.into_parts();
    let body = body.into_data_stream().map_err(io::Error::other);
    let body = SyncIoBridge::new(body.into_async_read().compat());
    let page = spawn_blocking(|| {
        let page: Page = serde_json::from_reader(BufReader::new(body))?;
        serde_json::to_vec(&page)
    });
    let page = page
        .await
        .unwrap_or_else(|error| resume_unwind(error.into_panic()));
    head.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(
        head,
        Body::from(page.map_err(kube::Error::SerdeError)?),
    ))
}

/// Whether a request with this query asks for a page of a list.
fn is_page(query: &str) -> bool {
    let has = |name: &str| query.split('&').any(|pair| pair.starts_with(name));
    has("limit=") && !has("watch=")
}

#[derive(Deserialize, Serialize)]
struct Page {
    #[serde(flatten)]
    list: TypeMeta,
    #[serde(default)]
    metadata: Value,
    /// Objects in the list; `None`: the API server says `null` of the metadata of no objects.
    items: Option<Vec<Object>>,
}

/// An object without the metadata that nobody keeps.
#[derive(Serialize)]
struct Object(Value);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        let metadata = &mut object["metadata"];
        // What cannot be decoded is reported where the object is.
        if let Ok(mut meta) = ObjectMeta::deserialize(&*metadata) {
            trim(&mut meta);
            *metadata = serde_json::to_value(meta).map_err(serde::de::Error::custom)?;
        }
        Ok(Self(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_keeps_all_but_foreign_metadata() {
        let page = |metadata: Value| {
            let object = json!({ "metadata": metadata, "spec": { "suspend": true } });
            json!({
                "apiVersion": "v1", "kind": "List", "items": [object],
                "metadata": { "continue": "more", "resourceVersion": "7" },
            })
        };
        let notes = json!({ "example.com/notes": "n", "waterdata.dev/key-id": "id" });
        let asked = page(json!({ "name": "acme", "annotations": notes, "managedFields": [] }));
        let ours = json!({ "waterdata.dev/key-id": "id" });
        let kept: Page = serde_json::from_value(asked).unwrap();
        assert_eq!(
            serde_json::to_value(kept).unwrap(),
            page(json!({ "name": "acme", "annotations": ours }))
        );
        let odd = page(json!({ "name": 7 }));
        let mut empty = odd.clone();
        empty["items"] = Value::Null;
        for unchanged in [odd, empty] {
            let kept: Page = serde_json::from_value(unchanged.clone()).unwrap();
            assert_eq!(serde_json::to_value(kept).unwrap(), unchanged);
        }
    }

    #[test]
    fn a_page_is_told_from_a_watch_and_a_whole_list() {
        assert!(is_page("&labelSelector=a&limit=500&continue=b"));
        for other in ["", "&watch=true&limit=500", "&labelSelector=a"] {
            assert!(!is_page(other), "{other}");
        }
    }
}
