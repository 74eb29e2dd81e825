//! Origin of the data, as shown to an account.

use water_database::sources::sources;
use water_database::writer::History::{Analyses, Audits};
use water_database::writer::Load;
use water_domain::{Level, SourceRecord, departement};

use crate::fixture::{Fixture, account, day, levels_of, load, risk, row, stress};

impl Fixture {
    async fn sources(&self, id: &str) -> Vec<SourceRecord> {
        sources(&self.reader, &account(id)).await.unwrap()
    }

    async fn source(&self, id: &str, dataset: &str) -> SourceRecord {
        let sources = self.sources(id).await;
        let source = sources.iter().find(|source| source.dataset == dataset);
        source.unwrap().clone()
    }
}

fn measured() -> Load {
    Load {
        synthetic: false,
        ..load()
    }
}

#[tokio::test]
async fn datasets_that_were_never_loaded_have_no_source() {
    assert_eq!(Fixture::new().await.sources("acme").await, []);
}

#[tokio::test]
async fn a_licence_that_is_given_later_is_shown_and_noted_once() {
    let mut fixture = Fixture::new().await;
    let index = [stress("34", 1.0, None)];
    fixture.stress(&index, 1).await;
    let licensed = Load {
        licence: Some("Licence Ouverte 2.0".to_owned()),
        source_url: Some("https://example.org/index".to_owned()),
        ..load()
    };
    for _ in 0..2 {
        let again = fixture
            .writer
            .replace_stress(&index, day(1), &licensed)
            .await;
        assert!(!again.unwrap().changed());
    }
    let source = fixture.source("acme", "stress").await;
    assert_eq!(source.licence, licensed.licence);
    assert_eq!(source.source_url, licensed.source_url);
    assert_eq!(fixture.sql("SELECT count(*) FROM water.loads"), "2");
}

#[tokio::test]
async fn each_new_thing_that_is_said_of_stored_rows_is_noted_once() {
    type Say = fn(&mut Load);
    let mut fixture = Fixture::new().await;
    let (risks, rows) = ([risk("34", 1.0)], [row("acme", 1, day(1))]);
    let mut said = load();
    let steps: [(&str, Say); 6] = [
        ("the first", |_| {}),
        ("bytes", |said| said.sha256 = [8; 32]),
        ("source", |said| said.source = "an agency".to_owned()),
        ("licence", |said| said.licence = Some("open".to_owned())),
        ("link", |said| said.source_url = Some("https://a.fr".into())),
        ("measured", |said| said.synthetic = false),
    ];
    for (step, say) in steps {
        say(&mut said);
        for is_new in [true, false] {
            let loaded = fixture.writer.replace_risk(&risks, day(1), &said).await;
            let loaded = loaded.unwrap();
            assert_eq!(loaded.is_noted, is_new, "{step}: {loaded:?}");
            let loaded = fixture.load_as(Analyses, &rows, day(1), &said).await;
            let loaded = loaded.unwrap();
            assert_eq!(loaded.is_noted, is_new, "{step}: {loaded:?}");
        }
        for dataset in ["risk", "analyses"] {
            let told = fixture.source("acme", dataset).await;
            assert_eq!(told.licence, said.licence, "{step}: {dataset}");
            assert_eq!(told.source_url, said.source_url, "{step}: {dataset}");
            assert_eq!(told.synthetic, said.synthetic, "{step}: {dataset}");
        }
    }
}

#[tokio::test]
async fn each_dataset_has_its_last_loads_date_and_its_records() {
    let mut fixture = Fixture::new().await;
    let index = [
        stress("34", 1.0, Some(Level::Alerte)),
        stress("75", 1.0, None),
    ];
    fixture.stress(&index, 1).await;
    fixture.stress(&index, 2).await;
    let (risks, measured) = ([risk("34", 1.0)], measured());
    let loaded = fixture.writer.replace_risk(&risks, day(3), &measured);
    loaded.await.unwrap();
    let sources = fixture.sources("acme").await;
    let told = sources.iter().map(|source| {
        let as_of = source.as_of.unwrap();
        (&*source.dataset, as_of, source.records, source.synthetic)
    });
    let expected = [("stress", day(2), 2, true), ("risk", day(3), 1, false)];
    assert!(told.eq(expected), "{sources:?}");
    assert_eq!(sources[0].derived_levels, ["75"]);
    assert!(sources[1].derived_levels.is_empty());
}

#[tokio::test]
async fn a_history_counts_the_accounts_own_rows_only() {
    let mut fixture = Fixture::new().await;
    let rows = [
        row("acme", 1, day(1)),
        row("acme", 2, day(1)),
        row("other", 1, day(1)),
    ];
    fixture.load(Analyses, &rows).await;
    fixture.load(Audits, &rows[2..]).await;
    let counts: [(&str, &[u64]); 3] = [("acme", &[2]), ("other", &[1, 1]), ("nobody", &[])];
    for (id, counts) in counts {
        let sources = fixture.sources(id).await;
        let records = sources.iter().map(|source| source.records);
        assert_eq!(records.collect::<Vec<_>>(), counts, "{id}");
    }
}

#[tokio::test]
async fn a_label_is_told_beside_a_licence_or_a_link_only() {
    let mut fixture = Fixture::new().await;
    let (label, licence) = ("a test", "Licence Ouverte 2.0");
    for (stored, told) in [
        (None, (None, None)),
        (Some(licence), (Some(label), Some(licence))),
    ] {
        let load = Load {
            licence: stored.map(str::to_owned),
            ..load()
        };
        let rows = [row("acme", 1, day(1))];
        let loaded = fixture.load_as(Analyses, &rows, day(1), &load).await;
        loaded.unwrap();
        // A reader of the table sees no file name either.
        let label = fixture.sql("SELECT source FROM water.analyses_accounts");
        assert_eq!(label, told.0.unwrap_or_default());
        let source = fixture.source("acme", "analyses").await;
        let seen = (source.source.as_deref(), source.licence.as_deref());
        assert_eq!((seen, source.source_url), (told, None));
    }
}

#[tokio::test]
async fn a_history_is_dated_by_its_newest_file_and_synthetic_when_a_part_of_it_is() {
    let mut fixture = Fixture::new().await;
    let of = |origin: &str, load: Load| Load {
        source: origin.to_owned(),
        source_url: Some(origin.to_owned()),
        licence: Some(origin.to_owned()),
        ..load
    };
    for (id, as_of, load) in [(1, 5, of("new", load())), (2, 4, of("old", measured()))] {
        let rows = [row("acme", id, day(1))];
        let loaded = fixture.load_as(Analyses, &rows, day(as_of), &load).await;
        loaded.unwrap();
    }
    let told = fixture.source("acme", "analyses").await;
    assert_eq!(
        (told.as_of, told.synthetic, told.records),
        (Some(day(5)), true, 2)
    );
    let origin = [told.source, told.source_url, told.licence];
    assert_eq!(origin, ["new"; 3].map(|origin| Some(origin.to_owned())));
}

#[tokio::test]
async fn an_account_is_told_of_the_files_that_had_its_own_rows_and_of_no_others() {
    let mut fixture = Fixture::new().await;
    let licensed = |licence: &str, synthetic| Load {
        licence: Some(licence.to_owned()),
        synthetic,
        ..load()
    };
    let (ours, theirs) = (licensed("ours", false), licensed("theirs", true));
    let rows = [row("acme", 1, day(1)), row("globex", 1, day(1))];
    for (rows, as_of, load) in [(&rows[1..], 1, &theirs), (&rows[..1], 2, &ours)] {
        let loaded = fixture.load_as(Analyses, rows, day(as_of), load).await;
        loaded.unwrap();
    }
    let told = async |fixture: &Fixture, id| {
        let source = fixture.source(id, "analyses").await;
        (source.as_of, source.licence, source.synthetic)
    };
    let of_ours = (Some(day(2)), ours.licence.clone(), false);
    let of_theirs = (Some(day(1)), theirs.licence.clone(), true);
    assert_eq!(told(&fixture, "acme").await, of_ours);
    assert_eq!(told(&fixture, "globex").await, of_theirs);
    // An unchanged row is confirmed by its file.
    let confirmed = fixture.load_as(Analyses, &rows[..1], day(3), &ours).await;
    assert!(!confirmed.unwrap().changed());
    assert_eq!(fixture.source("acme", "analyses").await.as_of, Some(day(3)));
    assert_eq!(told(&fixture, "globex").await, of_theirs);
    // A file that is older than all its rows confirms none.
    let older = fixture.load_as(Analyses, &rows[..1], day(1), &ours).await;
    assert_eq!(older.unwrap().older, 1);
    assert_eq!(fixture.source("acme", "analyses").await.as_of, Some(day(3)));
    // A purge forgets them.
    let globex = account("globex");
    let purged = fixture.writer.purge(&globex, "a test", false).await;
    assert_eq!(purged.unwrap().analyses, 1);
    assert_eq!(fixture.sources("globex").await, []);
    assert!(fixture.writer.lift_purge(&globex).await.unwrap());
    let loaded = fixture.load_as(Analyses, &rows[1..], day(4), &ours).await;
    assert_eq!(loaded.unwrap().inserted, 1);
    assert!(!fixture.source("globex", "analyses").await.synthetic);
}

#[tokio::test]
async fn rows_are_measured_again_once_a_measured_file_has_all_of_them() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", 1, day(1)), row("acme", 2, day(1))];
    fixture.load(Audits, &rows).await;
    for (as_of, given, synthetic) in [(8, &rows[..1], true), (9, &rows, false)] {
        let load = measured();
        let loaded = fixture.load_as(Audits, given, day(as_of), &load).await;
        loaded.unwrap();
        assert_eq!(fixture.source("acme", "audits").await.synthetic, synthetic);
    }
}

#[tokio::test]
async fn an_account_whose_last_row_is_deleted_has_the_next_files_source_however_old_that_is() {
    let mut fixture = Fixture::new().await;
    let licensed = |licence: &str| Load {
        licence: Some(licence.to_owned()),
        ..load()
    };
    let [gone, there] = ["gone", "there"].map(|id| [row("acme", id, day(1))]);
    let newer = licensed("gone");
    let loaded = fixture.load_as(Analyses, &gone, day(5), &newer).await;
    loaded.unwrap();
    assert_eq!(fixture.delete(&["gone"]).await, 1);
    assert_eq!(fixture.sources("acme").await, []);
    let older = licensed("there");
    let loaded = fixture.load_as(Analyses, &there, day(4), &older).await;
    loaded.unwrap();
    let told = fixture.source("acme", "analyses").await;
    assert_eq!((told.as_of, told.licence), (Some(day(4)), older.licence));
}

#[tokio::test]
async fn a_file_of_which_an_account_has_no_row_any_more_is_not_its_source() {
    let mut fixture = Fixture::new().await;
    let files = [3, 4, 5].map(|as_of| (as_of, [row("acme", as_of, day(1))]));
    for (as_of, rows) in &files {
        let loaded = fixture.load_as(Analyses, rows, day(*as_of), &load()).await;
        loaded.unwrap();
    }
    assert_eq!(fixture.delete(&["5"]).await, 1);
    assert_eq!(fixture.sources("acme").await, []);
    // The file of day 3 is older than a row that stays.
    for (place, date) in [(0, None), (1, Some(day(4)))] {
        let (as_of, rows) = &files[place];
        let again = fixture.load_as(Analyses, rows, day(*as_of), &load()).await;
        assert!(!again.unwrap().changed());
        let sources = fixture.sources("acme").await;
        assert_eq!(sources.first().and_then(|source| source.as_of), date);
    }
    assert_eq!(fixture.delete(&["3"]).await, 1);
    assert_eq!(fixture.source("acme", "analyses").await.as_of, Some(day(4)));
}

#[tokio::test]
async fn rows_of_an_unknown_file_count_as_generated_where_a_generated_file_was_loaded() {
    let rows = [row("acme", 1, day(1)), row("acme", 2, day(1))];
    for (first, synthetic) in [(load(), true), (measured(), false)] {
        let mut fixture = Fixture::new().await;
        let loaded = fixture.load_as(Audits, &rows, day(1), &first).await;
        loaded.unwrap();
        fixture.sql("UPDATE water.audits_accounts SET loaded_at = NULL, synthetic = NULL");
        let part = fixture
            .load_as(Audits, &rows[..1], day(2), &measured())
            .await;
        part.unwrap();
        assert_eq!(fixture.source("acme", "audits").await.synthetic, synthetic);
    }
}

#[tokio::test]
async fn an_account_without_a_source_gets_one_from_the_same_file_again() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", 1, day(1))];
    fixture.load(Analyses, &rows).await;
    let noted = fixture.source("acme", "analyses").await;
    assert!(!fixture.load(Analyses, &rows).await.changed());
    assert_eq!(fixture.source("acme", "analyses").await, noted);
    fixture.sql("UPDATE water.analyses_accounts SET loaded_at = NULL");
    assert_eq!(fixture.sources("acme").await, []);
    assert!(!fixture.load(Analyses, &rows).await.changed());
    assert_eq!(fixture.source("acme", "analyses").await.as_of, noted.as_of);
}

#[tokio::test]
async fn levels_that_the_registers_last_answer_does_not_give_are_named_whatever_its_date() {
    let mut fixture = Fixture::new().await;
    let index = ["34", "75", "93"].map(|code| stress(code, 1.0, None));
    fixture.stress(&index, 1).await;
    let given = ["34", "75"].map(|code| (code, Level::Alerte));
    fixture.register(&given, 2).await;
    // The register never gave a level of 93.
    let unknown = ["75", "93"].map(|code| (departement::parse(code).unwrap(), None));
    for as_of in [2, 3] {
        for rest in [&unknown[..], &[]] {
            let (levels, load) = ([&levels_of(&given[..1]), rest].concat(), load());
            let loaded = fixture.writer.update_levels(&levels, 0, day(as_of), &load);
            loaded.await.unwrap();
            let source = fixture.source("acme", "vigieau").await;
            assert_eq!(source.kept_levels, ["75"], "{as_of}: {rest:?}");
        }
    }
    fixture.register(&given, 3).await;
    let source = fixture.source("acme", "vigieau").await;
    assert_eq!(source.kept_levels, [""; 0]);
}

#[tokio::test]
async fn levels_that_a_loader_of_the_version_before_did_not_give_have_an_earlier_date() {
    let mut fixture = Fixture::new().await;
    let given = ["34", "75"].map(|code| (code, Level::Alerte));
    fixture.register(&given, 2).await;
    fixture.register(&given[..1], 3).await;
    fixture.sql("UPDATE water.loads SET kept_levels = NULL");
    let source = fixture.source("acme", "vigieau").await;
    assert_eq!(source.kept_levels, ["75"]);
}

#[tokio::test]
async fn the_view_shows_the_reader_nothing_else() {
    let fixture = Fixture::new().await;
    let as_reader = |sql: &str| {
        let sql = format!("SET ROLE water_reader; {sql}");
        fixture.postgres.sql(fixture.own.name(), &sql)
    };
    assert!(as_reader("SELECT FROM water.sources").is_ok());
    let columns = "SELECT string_agg(attname, ',' ORDER BY attname) FROM pg_attribute \
                   WHERE attrelid = 'water.sources'::regclass AND attnum > 0";
    let shown =
        "as_of,dataset,derived_levels,licence,loaded_at,records,source,source_url,synthetic";
    assert_eq!(fixture.sql(columns), shown);
}
