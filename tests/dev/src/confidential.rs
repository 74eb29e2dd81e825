//! The search for texts of API keys, which nothing may hold: the output of every test, and after the
//! browser tests the logs of programs and pods, Redis, Chromium's profiles and, for the keys that were
//! made in a browser, etcd. (It holds those that the cluster generated, in their Secrets.)

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use water_harness::find_key_text;

use crate::cluster::Cluster;
use crate::wait;

/// Folders in which no text of any key may be: logs of programs and pods, Redis, and the remains of browsers.
const SEARCHED: [&str; 4] = ["logs", "var/log/pods", "redis", "browser"];

/// Text in etcd before the key id of an ApiKey that was declared by its hash.
const BY_HASH: &[u8] = br#""hash":{"keyId":""#;

/// Beginning of a key's text, and its greatest length.
const PREFIX: &[u8] = b"wdk_";
const LONGEST: usize = 66;

/// Characters of a key id.
const ID_LENGTH: usize = 12;

/// Searches all files that the cluster and the browser have written.
pub fn check(cluster: &Cluster) -> Result<()> {
    let folders = SEARCHED.map(|folder| cluster.file(folder));
    let etcd = cluster.file("etcd");
    // Redis and etcd write changes to files within a second or so.
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
        // Without files nothing was searched.
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

/// Returns the ids of all keys that were ever declared by their hash.
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

/// Returns the places of `text` in `content`.
fn find<'a>(content: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let windows = content.windows(text.len()).enumerate();
    windows.filter_map(move |(at, window)| (window == text).then_some(at))
}

/// Returns the files below `folder`, which has to be there; links are not followed.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    add_files(folder, &mut found).with_context(|| format!("cannot read {}", folder.display()))?;
    Ok(found)
}

fn add_files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let added = entry.file_type().and_then(|kind| {
            if kind.is_dir() {
                return add_files(&entry.path(), found);
            }
            if kind.is_file() {
                found.push(entry.path());
            }
            Ok(())
        });
        match added {
            // A pod's folder goes with the pod.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            added => added?,
        }
    }
    Ok(())
}

/// Reads a file. One that is gone by now, a rotated log's, held what its successor was searched for.
fn read(file: &Path) -> Result<Vec<u8>> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Longest time after the program's end until its output has ended, too: a program that it left behind may write on.
const LINGER: Duration = Duration::from_secs(60);

/// Runs `command` to its end and returns its status, or the error that its output holds an API key or does not end,
/// whatever its status.
pub fn run_searched(command: &mut Command) -> Result<ExitStatus> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start it")?;
    let stdout = child.stdout.take().context("standard output is piped")?;
    let stderr = child.stderr.take().context("standard error is piped")?;
    let (ended, outputs) = mpsc::channel();
    let again = ended.clone();
    thread::spawn(move || show(stderr, io::stderr(), &again));
    thread::spawn(move || show(stdout, io::stdout(), &ended));
    let status = child.wait().context("cannot wait for its end")?;
    let searched = [(); 2].map(|()| outputs.recv_timeout(LINGER));
    if let Some(key) = searched.iter().flatten().flatten().next() {
        bail!("the output holds the text of the API key {key}…");
    }
    ensure!(
        searched.iter().all(Result::is_ok),
        "it ended with {status}, and its output could not be searched to the end: a program that it left behind keeps it \
         open"
    );
    Ok(status)
}

/// Hands lines on until there are no more, and then reports the first key among them.
fn show(from: impl Read, mut to: impl Write, ended: &Sender<Option<String>>) {
    let (mut from, mut line, mut found) = (BufReader::new(from), Vec::new(), None);
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        found = found.or_else(|| find_key_text(&line));
        // Nobody may be reading any more; the search goes on.
        let _ = to.write_all(&line);
        line.clear();
    }
    let _ = to.flush();
    // An error means that nobody waits for it any longer.
    let _ = ended.send(found);
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
        /// Makes files in which all is well.
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

    fn run(script: &str) -> Result<ExitStatus> {
        run_searched(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn a_key_in_an_output_is_an_error_that_shows_its_public_part() {
        let (mut shown, (ended, outputs)) = (Vec::new(), mpsc::channel());
        let printed = format!("one\nkey=wdk_{}_{}\nlast", "a".repeat(12), "b".repeat(49));
        show(printed.as_bytes(), &mut shown, &ended);
        assert_eq!(shown, printed.as_bytes());
        let found = outputs.recv().unwrap();
        assert_eq!(found.as_deref(), Some("wdk_aaaaaaaaaaaa"));
    }

    #[test]
    fn the_status_is_the_programs() {
        assert!(run("echo wdk_short").unwrap().success());
        assert_eq!(run("exit 3").unwrap().code(), Some(3));
    }
}
