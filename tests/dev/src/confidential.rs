//! After the browser tests: no text of a key is in a log, in Redis or in what Chromium has kept,
//! and etcd holds none of the keys that were made in a browser. (It holds those that the cluster
//! generated, in their Secrets.)

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use water_harness::find_key_text;

use crate::cluster::Cluster;
use crate::wait;

/// Where no text of any key may be: logs of programs and pods, Redis, and what browsers have left.
const SEARCHED: [&str; 4] = ["logs", "var/log/pods", "redis", "browser"];

/// In etcd, before the key id of an ApiKey that was declared by its hash.
const BY_HASH: &[u8] = br#""hash":{"keyId":""#;

/// What a key's text begins with, and how long it is at most.
const PREFIX: &[u8] = b"wdk_";
const LONGEST: usize = 66;

/// Characters of a key id.
const ID_LENGTH: usize = 12;

/// Looks at all that the cluster and the browser have written to files.
pub fn check(cluster: &Cluster) -> Result<()> {
    let folders = SEARCHED.map(|folder| cluster.file(folder));
    let etcd = cluster.file("etcd");
    // Redis and etcd write what they are told within a second or so.
    let ids = wait::until(
        Duration::from_secs(60),
        "etcd's files tell of a key that was made in a browser",
        || Ok(Some(key_ids(&etcd)?).filter(|ids| !ids.is_empty())),
    )?;
    check_files(&folders, &etcd, &ids)
}

fn check_files(folders: &[PathBuf], etcd: &Path, ids: &BTreeSet<Vec<u8>>) -> Result<()> {
    for folder in folders {
        let files = files(folder)?;
        // Where nothing was written nothing was looked at.
        ensure!(!files.is_empty(), "{} holds no file", folder.display());
        for file in files {
            if let Some(key) = find_key_text(read(&file)?) {
                bail!("{} holds the text of the key {key}…", file.display());
            }
        }
    }
    for file in files(etcd)? {
        let content = read(&file)?;
        for at in find(&content, PREFIX) {
            let end = content.len().min(at + LONGEST);
            let key = find_key_text(&content[at..end]);
            if let Some(key) = key.filter(|key| ids.contains(&key.as_bytes()[PREFIX.len()..])) {
                bail!("{} holds the text of the key {key}…", file.display());
            }
        }
    }
    Ok(())
}

/// The ids of all keys that were ever declared by their hash.
fn key_ids(etcd: &Path) -> Result<BTreeSet<Vec<u8>>> {
    let mut ids = BTreeSet::new();
    for file in files(etcd)? {
        let content = read(&file)?;
        let found = find(&content, BY_HASH).filter_map(|at| {
            let begin = at + BY_HASH.len();
            content.get(begin..begin + ID_LENGTH)
        });
        ids.extend(found.map(<[u8]>::to_vec));
    }
    Ok(ids)
}

/// Where `text` stands in `content`.
fn find<'a>(content: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let windows = content.windows(text.len()).enumerate();
    windows.filter_map(move |(at, window)| (window == text).then_some(at))
}

/// All files below `folder`; links are not followed.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.extend(files(&entry.path())?);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// A file that is gone by now, a rotated log's, held what its successor was searched for.
fn read(file: &Path) -> Result<Vec<u8>> {
    match fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.with_context(|| format!("cannot read {}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const ID: &str = "a1B2c3D4e5F6";

    fn text() -> String {
        format!("wdk_{ID}_{}", "x".repeat(49))
    }

    struct World(TempDir);

    impl World {
        /// Files in which all is well.
        fn new() -> Self {
            let world = Self(tempfile::tempdir().unwrap());
            for folder in SEARCHED {
                world.write(folder, &format!("seen: wdk_{ID}"));
            }
            world.write(
                "etcd",
                &format!(
                    "\u{0}{{\"material\":{{\"hash\":{{\"keyId\":\"{ID}\",\"sha256\":\"0\"}}}}}}"
                ),
            );
            world
        }

        fn write(&self, folder: &str, content: &str) {
            let folder = self.0.path().join(folder).join("deep");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("file"), content).unwrap();
        }

        fn check(&self) -> Result<()> {
            let etcd = self.0.path().join("etcd");
            let folders = SEARCHED.map(|folder| self.0.path().join(folder));
            check_files(&folders, &etcd, &key_ids(&etcd)?)
        }
    }

    #[test]
    fn the_public_part_of_a_key_may_stand_anywhere() {
        World::new().check().unwrap();
    }

    #[test]
    fn a_planted_text_is_found_in_every_folder() {
        for folder in SEARCHED {
            let world = World::new();
            world.write(folder, &text());
            let error = world.check().unwrap_err().to_string();
            assert!(error.ends_with(&format!("the key wdk_{ID}…")), "{error}");
        }
    }

    #[test]
    fn a_browsers_key_is_found_in_etcd_beside_the_id_that_it_was_declared_with() {
        let world = World::new();
        world.write("etcd", &format!("\"hash\":{{\"keyId\":\"{ID}\" {}", text()));
        assert!(world.check().is_err());
    }

    #[test]
    fn a_generated_keys_text_may_be_in_etcd() {
        let world = World::new();
        let generated = text().replace(ID, "000000000000");
        world.write(
            "etcd",
            &format!("\"hash\":{{\"keyId\":\"{ID}\" {generated}"),
        );
        world.check().unwrap();
    }

    #[test]
    fn a_folder_without_files_is_an_error() {
        let world = World::new();
        fs::remove_dir_all(world.0.path().join("browser/deep")).unwrap();
        assert!(world.check().is_err());
    }
}
