//! Addresses of this machine at the cluster: the one that it has, and more for clients that must
//! not look alike.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{Cluster, text_of};

/// Further address of this machine, until it is dropped.
#[derive(Debug)]
pub struct OwnAddress {
    address: Ipv4Addr,
    link: String,
}

impl Cluster {
    /// Returns the address of this machine at which the cluster's pods reach it.
    pub async fn own_address(&self) -> Result<IpAddr> {
        Ok(self.water.connect().await?.local_address()?.ip())
    }

    /// Gives this machine one more address, on its link to the cluster, with which it goes at the latest.
    pub fn with_address(&self, address: Ipv4Addr) -> Result<OwnAddress> {
        let node = self.water.address().split(':').next().unwrap_or_default();
        let route = ip(&["-oneline", "route", "get", node])?;
        let mut words = route.split_whitespace().skip_while(|word| *word != "dev");
        let link = words
            .nth(1)
            .with_context(|| format!("no link in: {route}"))?;
        ip(&["address", "replace", &format!("{address}/32"), "dev", link])?;
        let link = link.to_owned();
        Ok(OwnAddress { address, link })
    }
}

impl Drop for OwnAddress {
    fn drop(&mut self) {
        // The cluster's end takes what this leaves.
        let _ = ip(&[
            "address",
            "delete",
            &format!("{}/32", self.address),
            "dev",
            &self.link,
        ]);
    }
}

fn ip(arguments: &[&str]) -> Result<String> {
    let output = Command::new("ip").args(arguments).output();
    text_of(&output.context("start ip")?)
}
