//! All stored data, in one short text.

use std::fmt;

use water_harness::wait_until;
use water_kit::{Database, SOON};

/// The number of rows and a digest of each table, without the times and numbers that differ from
/// load to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State(String);

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl State {
    /// Stored data, once the last loader's session has ended. Fails if totals or anchors are wrong.
    pub async fn read(database: &Database) -> Self {
        let read = async || {
            let said = database.sql(STORED);
            let (sessions, stored) = said.split_once('\n').unwrap_or((&said, ""));
            anyhow::ensure!(sessions == "0", "{sessions} sessions of loaders");
            Ok(Self(stored.to_owned()))
        };
        let state = wait_until("the loader's session to end", SOON, read);
        let state = state.await.unwrap();
        let right = state.0.matches("\nwrong|0").count();
        assert_eq!(right, 2, "totals or anchors are wrong:\n{state}");
        state
    }

    /// Text for a failure's message.
    pub fn beside(&self, old: &Self, new: &Self) -> String {
        format!("old:\n{old}\nnew:\n{new}\nstored:\n{self}")
    }
}

/// Number of the loaders' sessions; each table; and for each history the number of totals and anchors that differ from
/// a count of its rows.
const STORED: &str = r#"
SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_writer' AND datname = current_database();
SELECT format(
    $$SELECT %L, count(*), md5(string_agg(line, ' ' ORDER BY line)) FROM (
        SELECT (to_jsonb(t) - 'loaded_at' - 'deleted_at' %s)::text AS line FROM water.%I AS t) AS lines$$,
    table_name, CASE table_name WHEN 'loads' THEN $$- 'id'$$ WHEN 'versions' THEN $$- 'id' - 'at'$$ ELSE '' END, table_name)
FROM information_schema.tables
WHERE table_schema = 'water' AND table_type = 'BASE TABLE' ORDER BY table_name \gexec
SELECT format($$
    WITH numbered AS (
        SELECT account_id, row_number() OVER (PARTITION BY account_id ORDER BY created_at, id) - 1 AS ordinal,
               created_at, id FROM water.%1$s
    ), anchors AS (
        SELECT * FROM numbered WHERE ordinal %% 64 = 0
    ), stored AS (
        SELECT account_id, ordinal, created_at, id FROM water.%1$s_anchors
    ), wrong AS (
        (TABLE anchors EXCEPT TABLE stored) UNION ALL (TABLE stored EXCEPT TABLE anchors)
    ), miscounted AS (
        SELECT account_id, count(*) FROM water.%1$s GROUP BY 1
        EXCEPT SELECT account_id, total FROM water.%1$s_accounts
    )
    SELECT 'wrong', (SELECT count(*) FROM wrong) + (SELECT count(*) FROM miscounted)$$, history)
FROM (VALUES ('analyses'), ('audits')) AS histories (history) \gexec
"#;
