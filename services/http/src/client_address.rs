//! The client's address: the socket's peer, or the one that a trusted proxy reports.

use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Proxies whose `X-Forwarded-For` is trusted. Empty: none.
#[derive(Clone, Default, Debug)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Trusts the given networks.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Returns the networks.
    pub fn networks(&self) -> &[IpNet] {
        &self.0
    }

    fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the client's address: from the socket's peer leftwards through `X-Forwarded-For`, while the writer of an
    /// entry is trusted. An entry that is no address ends the search at the last known address.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        for entry in forwarded_for(headers) {
            if !self.contains(client) {
                break;
            }
            let Some(address) = entry else { break };
            client = address;
        }
        client
    }
}

/// Returns the entries of all `X-Forwarded-For` fields, the nearest first; `None` for an entry that is no address.
fn forwarded_for(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    headers
        .get_all(X_FORWARDED_FOR)
        .iter()
        .rev()
        .flat_map(|field| field.as_bytes().rsplit(|byte| *byte == b','))
        .map(|entry| {
            let text = std::str::from_utf8(entry).ok()?.trim();
            Some(text.parse::<IpAddr>().ok()?.to_canonical())
        })
}

/// Returns the address by which a client is counted: one customer has a whole /64 of IPv6.
pub fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, fields: &[&str]) -> String {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append("x-forwarded-for", field.parse().unwrap());
        }
        let client = proxies.client(peer.parse().unwrap(), &headers);
        client.to_string()
    }

    #[test]
    fn a_peer_that_is_not_trusted_is_the_client_whatever_it_claims() {
        assert_eq!(client("192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
    }

    #[test]
    fn entries_are_read_from_the_right_until_one_is_not_trusted() {
        let fields = ["203.0.113.9, 198.51.100.7", "10.0.0.2"];
        assert_eq!(client("10.0.0.1", &fields), "198.51.100.7");
        let fields = ["203.0.113.9", "198.51.100.7"];
        assert_eq!(client("10.0.0.1", &fields), "198.51.100.7");
        assert_eq!(client("::ffff:10.0.0.1", &["2001:db8::1"]), "2001:db8::1");
        let mapped = "::ffff:198.51.100.7, ::ffff:10.0.0.2";
        assert_eq!(client("10.0.0.1", &[mapped]), "198.51.100.7");
    }

    #[test]
    fn a_client_is_counted_by_its_address_or_the_64_bits_of_its_network() {
        for (address, counted) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.2", "192.0.2.2"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:3:3:4:5:6", "2001:db8:1:3::"),
        ] {
            assert_eq!(network(address.parse().unwrap()).to_string(), counted);
        }
    }

    #[test]
    fn an_entry_that_is_no_address_ends_the_walk() {
        assert_eq!(client("10.0.0.1", &["192.0.2.1, unknown"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
    }
}
