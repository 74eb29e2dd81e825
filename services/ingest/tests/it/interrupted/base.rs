//! A database with every dataset in it, and files that change each.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use water_harness::{Database, Postgres};

use crate::fixture::{command, migrate, run};
use crate::state::State;

/// Loads that each change, add and, where files replace all, remove records.
pub const STRESS: &str = "load stress stress.csv --as-of 2026-02-01 --allow-missing";
pub const RISK: &str = "load risk risk.csv --as-of 2026-02-01 --allow-missing";
pub const VIGIEAU: &str = "load vigieau vigieau.json --as-of 2026-02-01 --max-changed 100";
pub const ANALYSES: &str = "load analyses analyses.csv --as-of 2026-02-01";
pub const AUDITS: &str = "load audits audits.csv --as-of 2026-02-01";

const COLUMNS: &str = "accountId,id,companyName,sectorCode,deptCode";

/// A database of the test's own, which was filled once for all tests, and a folder of files.
pub struct Base {
    postgres: &'static Postgres,
    pub database: Database,
    folder: TempDir,
}

impl Base {
    pub async fn new() -> Self {
        let postgres = Postgres::shared().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        for history in ["analyses", "audits"] {
            write(
                &folder,
                &format!("{history}.csv"),
                &history_file(history, 60..260, 2),
            );
        }
        write(
            &folder,
            "stress.csv",
            "dept,stressIndex,level\n01,2,vigilance\n34,1,alerte\n75,2,\n",
        );
        write(
            &folder,
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
        write(&folder, "vigieau.json", &format!("[{}]", levels.join(",")));
        Self {
            postgres,
            database: filled(postgres).await,
            folder,
        }
    }

    /// Takes a fresh copy of the old data.
    pub async fn renew(&mut self) {
        self.database = filled(self.postgres).await;
    }

    /// The loader, reaching the database at `way`; it can read the files.
    pub fn command(&self, words: &str, way: SocketAddr) -> Command {
        loader(words, &self.database, way, self.folder.path())
    }

    /// Writes another file.
    pub fn file(&self, name: &str, content: &str) {
        write(&self.folder, name, content);
    }

    /// What is stored before and after the load of `words`. The old data stays.
    pub async fn old_and_new(&mut self, words: &str) -> (State, State) {
        let old = self.state().await;
        let loaded = run(self.command(words, self.database.address()), b"");
        assert_eq!(loaded.code, Some(0), "{}", loaded.stderr);
        let new = self.state().await;
        self.renew().await;
        (old, new)
    }

    /// What is stored, once the last loader's session has ended.
    pub async fn state(&self) -> State {
        State::of(self.postgres, &self.database).await
    }
}

fn write(folder: &TempDir, name: &str, content: &str) {
    fs::write(folder.path().join(name), content).unwrap();
}

fn loader(words: &str, database: &Database, way: SocketAddr, folder: &Path) -> Command {
    let mut command = command(words);
    command.current_dir(folder).env(
        "WATER_POSTGRES_URL",
        database.url_through(way, "water_writer"),
    );
    command
}

/// A database with the old data of every dataset.
async fn filled(postgres: &Postgres) -> Database {
    let fill = async |url: &str| {
        migrate(postgres, url).await?;
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
            command.env(
                "WATER_POSTGRES_URL",
                url.replace("postgres@", "water_writer@"),
            );
            let loaded = run(command, file.as_bytes());
            anyhow::ensure!(loaded.code == Some(0), "{}", loaded.stderr);
        }
        Ok(())
    };
    postgres
        .database_from_template("loaded", fill)
        .await
        .unwrap()
}

/// Rows of two accounts. With another version every second row says something else, and every tenth
/// stands at another place.
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
