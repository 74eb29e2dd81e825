//! When each key was last used, as the gates tell it and the operator shows it.

use redis::cmd;
use water_domain::{KeyId, Timestamp};

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::Instance;

/// Keys in one command: Redis serves nobody else for the millisecond that it takes.
const KEYS_PER_COMMAND: usize = 1000;

/// A gate's hand on the sorted set of last uses.
#[derive(Clone, Debug)]
pub struct LastUses {
    connection: Connection,
    instance: Instance,
}

impl LastUses {
    /// Over a connection for [`crate::connection::Purpose::Directory`].
    pub fn new(connection: Connection, instance: Instance) -> Self {
        Self {
            connection,
            instance,
        }
    }

    /// Writes uses, each unless a later one of the same key stands there already. After an error
    /// some may have been written; writing them again changes nothing.
    pub async fn write(&self, uses: &[(KeyId, Timestamp)]) -> Result<(), StoreError> {
        for part in uses.chunks(KEYS_PER_COMMAND) {
            let mut command = cmd("ZADD");
            command.arg(self.instance.used()).arg("GT");
            for (key, at) in part {
                command.arg(at.as_millis()).arg(key.as_str());
            }
            let () = self.connection.run("write last uses", &command).await?;
        }
        Ok(())
    }
}
