//! Address of a service.

use std::str::FromStr;

use http::uri::Authority;

/// `host:port`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceAddress(Authority);

/// Text that is not a host and a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a service's address is a host and a port")]
pub struct InvalidServiceAddress;

impl ServiceAddress {
    /// Returns `host:port`, as in a request's `Host`.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for ServiceAddress {
    type Err = InvalidServiceAddress;

    fn from_str(text: &str) -> Result<Self, InvalidServiceAddress> {
        let authority: Authority = text.parse().map_err(|_| InvalidServiceAddress)?;
        let complete = authority.port().is_some() && !authority.host().is_empty();
        if complete && !text.contains('@') {
            Ok(Self(authority))
        } else {
            Err(InvalidServiceAddress)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for good in ["water-data-history:80", "127.0.0.1:8080", "[::1]:8080"] {
            assert_eq!(good.parse::<ServiceAddress>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "history",
            ":80",
            "a:b",
            "user@history:80",
            "http://history:80",
        ] {
            assert_eq!(
                bad.parse::<ServiceAddress>(),
                Err(InvalidServiceAddress),
                "{bad}"
            );
        }
    }
}
