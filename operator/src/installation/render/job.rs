//! The migration Job. A Job's pods cannot be changed, so its name carries a hash of what it does:
//! another version or another database is another Job.

use serde_json::json;

use super::super::fingerprint::short_hash;
use super::super::manifest::{ChildKind, Manifest};
use super::{Part, Source, pods};

pub fn migration(source: Source<'_>) -> Manifest {
    let migrations = &source.spec.components.migrations;
    let spec = json!({
        "backoffLimit": migrations.backoff_limit,
        "activeDeadlineSeconds": migrations.active_deadline_seconds,
        "template": pods::template(source, Part::Migrations),
    });
    let name = format!(
        "{}-migrate-{}",
        source.name,
        short_hash(&[&spec.to_string()])
    );
    let spec = json!({ "spec": spec });
    source.named(ChildKind::Job, name, Part::Migrations, spec)
}
