//! The API as a client reaches it: one address, new connections or kept ones.

use std::{fmt, net::Ipv4Addr};

use anyhow::{Context, Result};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use water_harness::{Answer, HttpClient};

/// Address under which the API answers.
#[derive(Clone, Debug)]
pub struct Water {
    host: String,
    address: String,
}

impl Water {
    /// Reads a plain `http://host[:port]`.
    pub fn at(url: &str) -> Result<Self> {
        let host = url
            .strip_prefix("http://")
            .with_context(|| format!("{url} is not plain HTTP"))?;
        let host = host.trim_end_matches('/');
        let address = if host.contains(':') {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        Ok(Self {
            host: host.to_owned(),
            address,
        })
    }

    /// Returns the address under another host name.
    pub fn host(&self, host: &str) -> Self {
        Self {
            host: host.to_owned(),
            address: self.address.clone(),
        }
    }

    /// Returns host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Opens a connection from this address of the machine.
    pub async fn connect_from(&self, own: Ipv4Addr) -> Result<HttpClient> {
        let address = self.address.parse();
        let address = address.with_context(|| format!("{} is a name", self.address))?;
        Ok(HttpClient::connect_from(own, address)
            .await?
            .host(&self.host))
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<HttpClient> {
        Ok(HttpClient::connect(&self.address).await?.host(&self.host))
    }

    /// Sends `GET target` with this key, on a new connection.
    pub async fn get(&self, target: &str, key: &str) -> Result<Answer> {
        self.connect().await?.get(target, key).await
    }

    /// Sends `GET target` with this key and more headers, on a new connection.
    pub async fn get_with(
        &self,
        target: &str,
        key: &str,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        self.request("GET", target, key, headers).await
    }

    /// Sends any method with this key and more headers, on a new connection.
    pub async fn request(
        &self,
        method: &str,
        target: &str,
        key: &str,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        let bearer = format!("Bearer {key}");
        let headers = [&[("Authorization", bearer.as_str())], headers].concat();
        self.connect()
            .await?
            .request(method, target, &headers)
            .await
    }

    /// Sends `GET target` without credentials, on a new connection.
    pub async fn get_without_key(&self, target: &str) -> Result<Answer> {
        self.connect().await?.request("GET", target, &[]).await
    }
}

/// Returns the names of a JSON object's fields, in the order of the text.
pub fn ordered_fields(object: &str) -> Result<Vec<String>> {
    struct Fields(Vec<String>);

    impl<'de> Deserialize<'de> for Fields {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(InOrder)
        }
    }

    struct InOrder;

    impl<'de> Visitor<'de> for InOrder {
        type Value = Fields;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a JSON object")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
            let mut names = Vec::new();
            while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
                names.push(name);
            }
            Ok(Fields(names))
        }
    }

    let fields: Fields =
        serde_json::from_str(object).with_context(|| format!("not an object: {object}"))?;
    Ok(fields.0)
}
