//! Loopback ports that stay ours: for servers that need a fixed port and must find it free again after a
//! restart.

use std::{
    env,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use anyhow::{Context, Result, bail};

/// Ports below the range from which Linux takes the ports of outgoing connections (32768 and up): none of
/// those can take a port while its server is down.
const RANGE: std::ops::Range<u16> = 21_000..29_000;

/// A port that no other process of the harness uses while this value lives. Nothing listens on it yet, at 127.0.0.1
/// or elsewhere on the machine.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Reserves a free port.
    pub fn reserve() -> Result<Self> {
        let directory = env::temp_dir().join("water-harness.ports");
        fs::create_dir_all(&directory)
            .with_context(|| format!("create {}", directory.display()))?;
        // Processes begin at different places, so that they seldom try each other's ports.
        let span = RANGE.end - RANGE.start;
        let first = u16::try_from(std::process::id() * 61 % u32::from(span))?;
        for step in 0..span {
            let number = RANGE.start + (first + step) % span;
            let path = directory.join(number.to_string());
            let lock = File::create(&path).with_context(|| format!("create {}", path.display()))?;
            // At every address of the machine: some servers listen at another one, too.
            let free = lock.try_lock().is_ok()
                && TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).is_ok();
            if free {
                return Ok(Self {
                    number,
                    _lock: lock,
                });
            }
        }
        bail!(
            "no free port on 127.0.0.1 from {} to {}",
            RANGE.start,
            RANGE.end
        )
    }

    /// Returns the port's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns `127.0.0.1:<number>`.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.number))
    }
}
