//! `delete`: single rows of an account's history, by their ids.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};
use water_database::writer::{History, Load, Writer};

use crate::arguments::{DeleteArguments, HistoryName};
use crate::failure::{self, Failure};
use crate::report::{self, Form};
use crate::summary;

/// The ids that are asked for, and where they stand.
pub struct Ids {
    ids: Vec<String>,
    source: String,
    sha256: [u8; 32],
}

/// A list of ids longer than this is no list of single rows, and is not kept in memory.
const MAX_BYTES: u64 = 64 << 20;

impl Ids {
    /// The ids of the command line, or of its file: one a line.
    pub fn of(arguments: &DeleteArguments) -> Result<Self, Failure> {
        let (text, source) = match &arguments.file {
            None => (arguments.ids.join("\n"), "the command line".to_owned()),
            Some(path) => {
                let text = read(path).map_err(Failure::reading(path))?;
                (text, path.display().to_string())
            }
        };
        let ids: BTreeSet<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        if ids.is_empty() {
            return Err(Failure::Usage(
                "there is no id to delete: write at least one",
            ));
        }
        Ok(Self {
            ids: ids.into_iter().map(str::to_owned).collect(),
            sha256: Sha256::digest(text.as_bytes()).into(),
            source: format!("deletion: {source}"),
        })
    }
}

fn read(path: &Path) -> io::Result<String> {
    let bytes: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut text = String::new();
    let length = bytes.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match length as u64 > MAX_BYTES {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the list is longer than 64 MiB",
        )),
        false => Ok(text),
    }
}

/// Deletes and prints one JSON summary. Ids that are not there are counted, and named to people.
pub async fn run(
    writer: &mut Writer,
    ids: Ids,
    arguments: &DeleteArguments,
) -> Result<(), Failure> {
    let history = match arguments.history {
        HistoryName::Analyses => History::Analyses,
        HistoryName::Audits => History::Audits,
    };
    let load = Load {
        sha256: ids.sha256,
        source: ids.source,
        source_url: None,
        licence: None,
        synthetic: false,
        loaded_by: arguments.deleted_by.clone(),
        allow_missing: false,
        force: false,
        max_changed: 100,
        dry_run: arguments.dry_run,
    };
    let account = &arguments.account;
    let deleted = writer.delete(history, account, &ids.ids, &load).await;
    let deleted = deleted.map_err(|error| failure::of_load(error, history.as_str()))?;
    if !deleted.unknown.is_empty() {
        let unknown = deleted.unknown.len();
        let note = format!("ids that the account does not have: {unknown}");
        report::note(Form::Text, None, &note);
    }
    summary::print(&json!({
        "dataset": history.as_str(),
        "account": account,
        "ids": ids.ids.len(),
        "removed": deleted.removed,
        "unknown": deleted.unknown,
        "dryRun": arguments.dry_run,
    }))
}
