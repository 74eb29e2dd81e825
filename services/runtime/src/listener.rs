//! Listening sockets.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};
use tracing::info;

/// Connections the kernel holds until they are accepted; it caps this at `net.core.somaxconn`.
const BACKLOG: u32 = 4096;

/// Opens a port; 0 takes a free one (`local_addr` returns it).
pub fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    open(address, false).map_err(|source| ListenError { address, source })
}

/// Opens a port that other listeners of this process share: the kernel spreads new connections
/// over them.
pub fn listen_shared(address: SocketAddr) -> Result<TcpListener, ListenError> {
    open(address, true).map_err(|source| ListenError { address, source })
}

/// Logs the address at which a port (`http`, `admin`) is open: the only way to know when 0 was asked for.
pub fn announce(port: &'static str, address: SocketAddr) {
    info!(port, %address, "listening");
}

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct ListenError {
    /// The address that was asked for.
    pub address: SocketAddr,
    /// Error of the system.
    #[source]
    pub source: io::Error,
}

fn open(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted process takes its port back at once, whatever is left in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(shared)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
