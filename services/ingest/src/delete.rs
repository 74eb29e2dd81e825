//! `delete`: single rows of an account's history, by their ids.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Read};

use indicatif::ProgressBar;
use serde_json::json;
use sha2::{Digest, Sha256};
use water_database::writer::{History, Load, Writer};
use water_domain::Timestamp;

use crate::arguments::{DeleteArguments, HistoryName};
use crate::cell::{NullWords, id_up_to, normalised};
use crate::dataset::history::MAX_ID;
use crate::encoding;
use crate::failure::{self, Failure};
use crate::load::in_time;
use crate::report;
use crate::source::{self, Encoding, Source};
use crate::summary;
use crate::table::{Cell, Form};

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
    pub fn read(arguments: &DeleteArguments, file: Option<Source>) -> Result<Self, Failure> {
        let (text, source) = match file {
            None => (arguments.ids.join("\n"), "the command line".to_owned()),
            Some(file) => {
                let label = file.label.clone();
                (read(file, arguments.encoding)?, label)
            }
        };
        // As they are stored.
        let ids = text.lines().filter(|line| !line.is_empty()).map(normalised);
        let ids: BTreeSet<_> = ids.collect();
        if ids.is_empty() {
            return Err(Failure::Usage(
                "there is no id to delete: write at least one",
            ));
        }
        Ok(Self {
            ids: ids.into_iter().map(Cow::into_owned).collect(),
            sha256: Sha256::digest(text.as_bytes()).into(),
            source: format!("deletion: {source}"),
        })
    }
}

/// A whole list, read as a load reads its file: plain or gzip, with or without a byte order mark.
fn read(file: Source, encoding: Encoding) -> Result<String, Failure> {
    let name = file.name.clone();
    let refuse = |why: String| Failure::BadIds {
        file: name.clone(),
        why,
    };
    let failed = |error: io::Error| {
        if source::is_damage(&error) {
            refuse(source::damage(&error))
        } else {
            Failure::reading(name.as_ref())(error)
        }
    };
    let may_be_cut_off = file.length.is_none();
    let (text, digesting) = file.text(encoding, ProgressBar::hidden()).map_err(failed)?;
    let mut bytes = Vec::new();
    text.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refuse("the list is longer than 64 MiB".to_owned()));
    }
    if let Some(why) = encoding::foreign(&bytes) {
        return Err(refuse(why.to_owned()));
    }
    // The begin of an id may be another id.
    match digesting.line_without_end() {
        Some((line, _)) if may_be_cut_off => {
            return Err(refuse(format!("line {line}: {}", source::CUT_OFF)));
        }
        Some((line, text)) => {
            let why = format!("line {line}: {}: {text}", source::MAY_BE_CUT_OFF);
            report::note(report::Form::Text, Some(&name), &why);
        }
        None => {}
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| refuse(encoding::not_utf8(error.as_bytes(), error.utf8_error())))?;
    for (line, text) in (1..).zip(text.lines()) {
        check(text, line).map_err(|why| refuse(format!("line {line}: {why}")))?;
    }
    Ok(text)
}

/// Checks a line of the list: an id that no load accepts is not there, and the row that is meant would stay.
fn check(text: &str, line: u64) -> Result<(), String> {
    if text.contains('\r') {
        return Err("a carriage return is not followed by a line feed".to_owned());
    }
    if text.is_empty() {
        return Ok(());
    }
    if NullWords::Refused.refuse(text) {
        return Err(format!("{text} is no value"));
    }
    let form = Form::Csv;
    id_up_to(MAX_ID)(Cell { text, line, form }).map(drop)
}

/// Deletes and prints one JSON summary. Ids that are not there are counted, and named to people.
pub async fn run(
    writer: &mut Writer,
    ids: Ids,
    arguments: &DeleteArguments,
    now: Timestamp,
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
        allow_lifting: false,
        force: false,
        max_changed: 100,
        dry_run: arguments.dry_run,
    };
    let account = &arguments.account;
    let as_of = arguments.as_of.map(|as_of| in_time(as_of, now));
    let as_of = as_of.transpose()?.unwrap_or(now);
    let deleted = writer
        .delete(history, account, &ids.ids, as_of, &load)
        .await;
    let deleted = deleted.map_err(|error| failure::of_load(error, history.as_str()))?;
    if !deleted.unknown.is_empty() {
        let unknown = deleted.unknown.len();
        let note = format!("ids that the account does not have: {unknown}");
        report::note(report::Form::Text, None, &note);
    }
    summary::print(&json!({
        "dataset": history.as_str(),
        "account": account,
        "asOf": as_of,
        "ids": ids.ids.len(),
        "removed": deleted.removed,
        "unknown": deleted.unknown,
        "dryRun": arguments.dry_run,
    }))
}
