//! One server, a database for each test, copied from a template made once.

use std::sync::atomic::{AtomicU32, Ordering};

use water_harness::Postgres;

type Result = anyhow::Result<()>;

#[tokio::test]
async fn each_test_gets_a_database_of_its_own() -> Result {
    let postgres = Postgres::shared().await?;
    let (one, other) = (postgres.create_database()?, postgres.create_database()?);
    postgres.sql(one.name(), "CREATE TABLE mine (id int)")?;
    assert_eq!(
        postgres.sql(other.name(), "SELECT to_regclass('mine') IS NULL")?,
        "t"
    );
    Ok(())
}

#[tokio::test]
async fn a_template_is_prepared_once_and_copied_for_each_test() -> Result {
    static PREPARED: AtomicU32 = AtomicU32::new(0);
    let postgres = Postgres::shared().await?;
    let copy = async || {
        postgres
            .database_from_template("filled", async |url| {
                PREPARED.fetch_add(1, Ordering::Relaxed);
                let name = url.rsplit('/').next().unwrap_or_default();
                postgres.sql(name, "CREATE TABLE filled AS SELECT 34 AS dept")?;
                Ok(())
            })
            .await
    };
    let (one, other) = (copy().await?, copy().await?);
    assert_eq!(postgres.sql(one.name(), "SELECT dept FROM filled")?, "34");
    assert_eq!(postgres.sql(other.name(), "SELECT dept FROM filled")?, "34");
    assert_eq!(PREPARED.load(Ordering::Relaxed), 1);
    Ok(())
}

#[tokio::test]
async fn wrong_sql_says_what_was_run_and_what_the_server_answered() -> Result {
    let error = Postgres::shared()
        .await?
        .sql("postgres", "SELECT nothing")
        .unwrap_err();
    assert!(
        error.to_string().starts_with("SELECT nothing: ERROR:"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn a_script_has_psqls_own_commands_and_variables() -> Result {
    let postgres = Postgres::shared().await?;
    let script = "SELECT format('SELECT %L', :'word') \\gexec";
    assert_eq!(
        postgres.psql("postgres", script, &[("word", "l'eau")])?,
        "l'eau"
    );
    Ok(())
}

#[tokio::test]
async fn a_stopped_server_comes_back_with_its_data() -> Result {
    let postgres = Postgres::start().await?;
    let database = postgres.create_database()?;
    postgres.sql(database.name(), "CREATE TABLE kept (id int)")?;
    postgres
        .process()
        .stop(std::time::Duration::from_secs(60))
        .await?;
    assert!(postgres.sql(database.name(), "SELECT 1").is_err());
    postgres.process().start_again()?;
    postgres.ready().await?;
    assert_eq!(
        postgres.sql(database.name(), "SELECT count(*) FROM kept")?,
        "0"
    );
    Ok(())
}
