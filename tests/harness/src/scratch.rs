//! Directories that do not outlive the test process. A shared server lives in a
//! static, which Rust never drops, and a killed process drops nothing either:
//! so each process holds a lock on its directory, and the next process that
//! makes one removes those whose lock nobody holds.

use std::{
    env,
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::{Context, Result};

const PREFIX: &str = "water-harness-";
const LOCK: &str = "lock";

struct Root {
    path: PathBuf,
    _lock: File,
}

static ROOT: Mutex<Option<Root>> = Mutex::new(None);
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Makes a directory `<name>-<number>` in this process' own part of the system's temporary directory.
/// Everyone may pass through it, nobody else may list it: PostgreSQL runs as another user.
pub fn directory(name: &str) -> Result<PathBuf> {
    let mut root = ROOT.lock().unwrap_or_else(PoisonError::into_inner);
    let root = match &mut *root {
        Some(root) => root,
        empty => empty.insert(make_root()?),
    };
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = root.path.join(format!("{name}-{number}"));
    make(&path)?;
    Ok(path)
}

fn make_root() -> Result<Root> {
    remove_abandoned(&env::temp_dir());
    let path = tempfile::Builder::new().prefix(PREFIX).tempdir()?.keep();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o711))?;
    // Locked before it has its name: nobody ever sees the name without the lock.
    let unlocked = path.join("unlocked");
    let lock = File::create(&unlocked).context("create the scratch directory's lock")?;
    lock.lock().context("lock the scratch directory")?;
    fs::rename(&unlocked, path.join(LOCK)).context("name the scratch directory's lock")?;
    Ok(Root { path, _lock: lock })
}

fn make(path: &Path) -> Result<()> {
    fs::create_dir(path).with_context(|| format!("create {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o711))?;
    Ok(())
}

/// Removes abandoned directories. Another process may be removing the same one: what cannot be removed is
/// left to the next one.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Some(lock) = ours
            .then(|| File::open(entry.path().join(LOCK)).ok())
            .flatten()
        else {
            continue;
        };
        if lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
