//! A connection to one server.

use std::time::Duration;

use redis::Client;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

/// Commands that may wait for the socket; the client's default of 50 is less than a burst.
const QUEUE: usize = 1024;

/// A connection to one server, made when first used and made again after it broke.
pub(super) fn manager(client: Client, connect: Duration) -> ConnectionManager {
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(0)
        .set_response_timeout(None)
        .set_connection_timeout(Some(connect))
        .set_pipeline_buffer_size(QUEUE);
    ConnectionManager::new_lazy_with_config(client, config)
        .expect("only push senders and subscriptions can be misconfigured, and neither is used")
}
