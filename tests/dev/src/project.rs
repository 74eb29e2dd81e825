//! The checkout that this program was built in.

use std::path::{Path, PathBuf};

/// Returns the folder that holds this workspace.
pub fn project() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    workspace.canonicalize().unwrap_or(workspace)
}
