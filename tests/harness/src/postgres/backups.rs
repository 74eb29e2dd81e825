//! Backups of a server, and the recovery to a point in time.

use std::{fs::File, path::PathBuf};

use anyhow::{Context, Result, bail};

use super::{Installation, Postgres, START};
use crate::{scratch, wait_until};

/// A copy of a server's data while it ran.
pub struct BaseBackup {
    data: PathBuf,
}

impl Postgres {
    /// Takes a base backup.
    pub fn base_backup(&self) -> Result<BaseBackup> {
        let data = scratch::directory("postgres")?.join("data");
        Installation::find()?.copy(&data, self.port(), &[])?;
        Ok(BaseBackup { data })
    }

    /// Names the present moment, to recover to it.
    pub fn name_moment(&self, name: &str) -> Result<()> {
        let point = format!("SELECT pg_create_restore_point('{name}')");
        self.sql("postgres", &point)?;
        // The log is written up to here.
        self.sql("postgres", "SELECT pg_switch_wal()")?;
        Ok(())
    }

    /// Starts a server on the backup, recovered to a named moment with this server's log, and waits until
    /// it is a primary.
    pub async fn recover(&self, backup: BaseBackup, moment: &str) -> Result<Self> {
        File::create(backup.data.join("recovery.signal")).context("ask for a recovery")?;
        let log = self.data.join("pg_wal");
        let restore = format!("restore_command=cp {}/%f %p", log.display());
        let target = format!("recovery_target_name={moment}");
        let settings = [
            restore.as_str(),
            target.as_str(),
            "recovery_target_action=promote",
        ];
        let installation = Installation::find()?;
        let server = Self::run(installation, backup.data, &[], &settings, None).await?;
        server.is_primary().await?;
        Ok(server)
    }

    async fn is_primary(&self) -> Result<()> {
        wait_until("the server to be a primary", START, async || {
            match self.sql("postgres", "SELECT pg_is_in_recovery()")?.as_str() {
                "f" => Ok(()),
                _ => bail!("it recovers"),
            }
        })
        .await
    }
}
