//! Addresses of hosts, and the names that no host has.

use dns_lookup::{LookupErrorKind, lookup_host};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Resolver of the system, whose errors distinguish an unknown name from a name server that does not answer: the standard
/// library's have one kind for both.
#[derive(Debug, Default)]
pub(super) struct Names(DefaultResolver);

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let resolved = self.0.resolve(uri, config, timeout);
        resolved.map_err(|error| match error {
            Error::Io(_) if uri.host().is_some_and(is_unknown) => Error::HostNotFound,
            error => error,
        })
    }
}

/// Whether no host has this name. It was looked up before and in time: this answer does not take long either.
fn is_unknown(name: &str) -> bool {
    let kind = lookup_host(name).err().map(|error| error.kind());
    matches!(kind, Some(LookupErrorKind::NoName))
}
