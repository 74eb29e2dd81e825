//! A database with every dataset in it, and files that change each.

use std::fmt::Write as _;
use std::ops::Deref;

use water_kit::Database;

use crate::command::{Ingest, command, run};
use crate::state::State;

/// Loads that each change, add and, where files replace all, remove records.
pub const STRESS: &str = "load stress stress.csv --as-of 2026-02-01 --allow-missing";
pub const RISK: &str = "load risk risk.csv --as-of 2026-02-01 --allow-missing";
pub const VIGIEAU: &str = "load vigieau vigieau.json --as-of 2026-02-01 --max-changed 100";
pub const ANALYSES: &str = "load analyses analyses.csv --as-of 2026-02-01";
pub const AUDITS: &str = "load audits audits.csv --as-of 2026-02-01";

const COLUMNS: &str = "accountId,id,companyName,sectorCode,deptCode";

/// A new database, whose data was loaded once for all tests, and a folder of files.
pub struct Base(Ingest);

impl Deref for Base {
    type Target = Ingest;

    fn deref(&self) -> &Ingest {
        &self.0
    }
}

impl Base {
    pub async fn new() -> Self {
        let ingest = Ingest::on(filled().await);
        for history in ["analyses", "audits"] {
            ingest.file(&format!("{history}.csv"), history_file(history, 60..260, 2));
        }
        ingest.file(
            "stress.csv",
            "dept,stressIndex,level\n01,2,vigilance\n34,1,alerte\n75,2,\n",
        );
        ingest.file(
            "risk.csv",
            "dept,flood,drought,overall\n01,9,9,9\n34,41,42,43\n75,1,2,3\n",
        );
        let levels = [
            ("01", "crise"),
            ("2A", "alerte"),
            ("34", "vigilance"),
            ("75", "crise"),
        ];
        let levels = levels
            .map(|(code, level)| format!(r#"{{"code":"{code}","niveauGraviteMax":"{level}"}}"#));
        ingest.file("vigieau.json", format!("[{}]", levels.join(",")));
        Self(ingest)
    }

    /// Takes a fresh copy of the old data.
    pub async fn renew(&mut self) {
        self.0.replace(filled().await);
    }

    /// Stored data before and after the load of `words`. The old data stays.
    pub async fn old_and_new(&mut self, words: &str) -> (State, State) {
        let old = self.state().await;
        let loaded = self.run(words);
        assert_eq!(loaded.code, Some(0), "{}", loaded.stderr);
        let new = self.state().await;
        self.renew().await;
        (old, new)
    }

    /// Stored data, once the last loader's session has ended.
    pub async fn state(&self) -> State {
        State::read(self).await
    }
}

/// A database with the old data of every dataset.
async fn filled() -> Database {
    let fill = async |database: &Database| {
        let files = [
            ("stress", "dept,stressIndex,level\n01,1,\n2A,2,normal\n34,3,alerte\n".to_owned()),
            ("risk", "dept,flood,drought,overall\n01,1,1,1\n2A,2,2,2\n34,3,3,3\n".to_owned()),
            ("vigieau", r#"[{"code":"2A","niveauGraviteMax":null},{"code":"34","niveauGraviteMax":"crise"}]"#.to_owned()),
            ("analyses", history_file("analyses", 0..200, 1)),
            ("audits", history_file("audits", 0..200, 1)),
        ];
        for (dataset, file) in files {
            let mut words = format!("load {dataset} - --as-of 2026-01-01");
            if !dataset.starts_with('a') {
                words += " --allow-missing";
            }
            let mut command = command(&words);
            command.env("WATER_POSTGRES_URL", database.url_as("water_writer"));
            let loaded = run(command, file.as_bytes());
            assert_eq!(loaded.code, Some(0), "{}", loaded.stderr);
        }
    };
    Database::filled("loaded", fill).await
}

/// Rows of two accounts. Another version changes every second row, and moves every tenth to another place.
pub fn history_file(history: &str, rows: std::ops::Range<u32>, version: u32) -> String {
    let values = match history {
        "analyses" => "globalScore,rating",
        _ => "score,globalRating",
    };
    let mut file = format!("{COLUMNS},{values},createdAt\n");
    for number in rows {
        let account = ["acme", "other"][number as usize % 2];
        let score = if number / 2 % 2 == 0 { version } else { 1 };
        let hour = if number / 2 % 10 == 0 { version } else { 1 };
        let (day, minute) = (1 + number % 28, number / 28 % 60);
        writeln!(
            file,
            "{account},{number},Eaux,36.00Z,34,{score},A,2025-01-{day:02}T{hour:02}:{minute:02}:00Z"
        )
        .unwrap();
    }
    file
}
