//! The one installation of packages at a time, and the mark of one that was killed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// An installation that is under way. Its file is locked meanwhile, and has content until the end: one that has content
/// and that nobody holds is of an installation that was killed.
pub struct Installation {
    file: File,
    /// Whether the last one was killed.
    pub follows_killed: bool,
}

impl Installation {
    /// Returns whether one is under way or was killed.
    pub fn is_marked(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|file| file.len() > 0)
    }

    /// Begins one, once no other is under way.
    pub fn begin(path: &Path) -> Result<Self> {
        Self::mark(path)
            .with_context(|| format!("cannot mark an installation in {}", path.display()))
    }

    fn mark(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        let mut file = File::options().create(true).append(true).open(path)?;
        file.lock()?;
        let follows_killed = file.metadata()?.len() > 0;
        file.write_all(b"begun\n")?;
        Ok(Self {
            file,
            follows_killed,
        })
    }

    /// Ends it, whatever came of it.
    pub fn end(self) -> Result<()> {
        let ended = self.file.set_len(0);
        ended.context("cannot remove the mark of an installation")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_that_was_killed_is_known_until_another_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cache/installing");
        let begin = || Installation::begin(&file).unwrap();
        assert!(!Installation::is_marked(&file));

        let first = begin();
        assert!(!first.follows_killed && Installation::is_marked(&file));
        // As by a kill: the lock goes, the mark stays.
        drop(first);
        drop(begin());
        let third = begin();
        assert!(third.follows_killed);
        third.end().unwrap();
        assert!(!Installation::is_marked(&file) && !begin().follows_killed);
    }
}
