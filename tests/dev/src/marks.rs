//! Marks in `target`: of which inputs something was made the last time, so that it is made again only once
//! they have changed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::project::project;

/// A file with the hash of the inputs of something that was made.
pub struct Mark(PathBuf);

/// Returns whether anything was ever made in this checkout.
pub fn exist() -> bool {
    folder().exists()
}

impl Mark {
    /// Returns the mark of that name, which may not exist yet.
    pub fn new(name: &str) -> Self {
        Self(folder().join(name))
    }

    /// Returns whether the last thing was made of inputs with this hash.
    pub fn is(&self, hash: &str) -> bool {
        fs::read_to_string(&self.0).is_ok_and(|found| found == hash)
    }

    /// Removes the mark while the thing is made again: a command that is killed meanwhile leaves half of it.
    pub fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.0.display()))
            }
            _ => Ok(()),
        }
    }

    /// Notes that the thing was made of inputs with this hash.
    pub fn set(&self, hash: &str) -> Result<()> {
        fs::create_dir_all(folder())
            .and_then(|()| fs::write(&self.0, hash))
            .with_context(|| format!("cannot write {}", self.0.display()))
    }
}

/// Returns the SHA-256 of the files' paths and contents, in hexadecimal digits.
pub fn hash(files: &[impl AsRef<Path>]) -> Result<String> {
    let mut hash = Sha256::new();
    for file in files.iter().map(AsRef::as_ref) {
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update(fs::read(file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(hex::encode(hash.finalize()))
}

fn folder() -> PathBuf {
    project().join("target/marks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_is_removed_is_of_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mark = Mark(folder.path().join("mark"));
        fs::write(&mark.0, "hash").unwrap();
        assert!(mark.is("hash"));
        // The second time there is none.
        for _ in 0..2 {
            mark.remove().unwrap();
            assert!(!mark.is("hash"));
        }
    }
}
