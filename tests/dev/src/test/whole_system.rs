//! The tests of the whole system: in a browser, then through the ingress, on a cluster that may leave nothing
//! behind.

use anyhow::{Result, bail, ensure};

use super::{Run, both};
use crate::background::Background;
use crate::browser::BrowserTests;
use crate::cluster::{Cluster, HOST_ADDRESS};
use crate::clusters::{Claimed, Clusters};
use crate::credentials::Credentials;
use crate::leftovers::Lists;
use crate::namespace::Lifetime;
use crate::process::IDLE;
use crate::progress::Progress;
use crate::suites::{Queue, Terms, Tier};
use crate::{accounts, binaries, clients, data, down, environment, images, product, up};

/// Number above that of the tests: they know themselves how many may run at a time, and which need the
/// cluster for themselves, once the others have ended.
const THREADS: usize = 64;

/// Starts a cluster with the product, runs tests in the browser and those of `suites` on it, and stops it.
pub fn run(
    run: &mut Run,
    tier: Tier,
    suites: &Queue,
    in_browser: Option<&BrowserTests>,
) -> Result<()> {
    let mut progress = Progress::on(&run.timeline);
    let name = "Generators of API clients";
    let generators = Background::start(&run.timeline, name, clients::install);
    on_a_cluster(&mut progress, |cluster, progress| {
        up::start_prepared(cluster, Lifetime::WithThisProcess, &values(tier), progress)?;
        // A rollout needs a second version: the same sources, built to report another one.
        let version = binaries::after(&product::installed_version(cluster)?);
        let second = "Images of a second version";
        let images = if tier < Tier::Long {
            let cluster = cluster.clone();
            Some(Background::start(&run.timeline, second, move |step| {
                images::build_missing(&cluster, &version, &IDLE, step)
            }))
        } else {
            // Long tests in the browser roll to it.
            up::provide_images(cluster, &version, progress)?;
            None
        };
        let timeline = run.timeline.clone();
        let results = &mut run.results;
        let in_browser = timeline.record("Browser tests", || {
            in_browser.map_or(Ok(()), |tests| tests.run(cluster, results))
        });
        let images = images.map_or(Ok(()), |images| {
            progress.step(second, |step| images.finish(step))
        });
        if images.is_err() {
            return both(images, in_browser);
        }
        let node_js = progress.step(name, |step| generators.finish(step))?;
        let mut variables = environment::variables(cluster)?;
        variables.push(("PATH", node_js.path().to_string_lossy().into_owned()));
        let terms = Terms {
            threads: THREADS,
            variables,
            ..run.terms()?
        };
        let tested = run.read(suites.work(&terms), &terms);
        both(in_browser, tested)
    })
}

/// Returns values of the chart with which the product logs the most, since its logs are searched for keys, and a
/// test is the collector of its spans. Rollouts go on a second after a pod is ready; for long tests, after the time that
/// the chart has.
fn values(tier: Tier) -> Vec<String> {
    let mut values = vec![
        "operator.logLevel=debug".to_owned(),
        "api.telemetry.logFilter=debug".to_owned(),
        format!("api.telemetry.otlpEndpoint=http://{HOST_ADDRESS}:4318"),
    ];
    if tier < Tier::Long {
        values.push("api.rollout.minReadySeconds=1".to_owned());
    }
    values
}

/// Fails unless the stores of a cluster that was started again hold data, which opens with the passwords that
/// were kept.
fn has_kept_data(cluster: &Cluster) -> Result<()> {
    let credentials = Credentials::read(&cluster.folder)?;
    accounts::make_in_postgres(cluster, &credentials)?;
    accounts::make_in_redis(cluster, &credentials)?;
    ensure!(data::is_loaded(&credentials)?, "PostgreSQL lost its data");
    ensure!(
        accounts::redis_has_keys(&credentials)?,
        "Redis lost its data"
    );
    Ok(())
}

/// Does `work` on a new cluster, starts it again with the data that `down --keep-data` leaves, and
/// stops it, whatever came of the work; nothing of it may stay.
fn on_a_cluster(
    progress: &mut Progress,
    work: impl FnOnce(&Cluster, &mut Progress) -> Result<()>,
) -> Result<()> {
    let claimed: Claimed = Clusters::of_user()?.claim_test()?;
    let cluster = &claimed.cluster;
    let before = Lists::now(cluster)?;
    let worked = work(cluster, progress)
        .and_then(|()| progress.step("Kept data", |_| down::stop(cluster, true)))
        .and_then(|()| up::start_node(cluster, Lifetime::WithThisProcess, progress))
        .and_then(|()| has_kept_data(cluster));
    let stopped = progress.step("Stop the cluster", |_| down::stop(cluster, false));
    both(worked, stopped)?;
    let differences = Lists::differences(&before, &Lists::now(cluster)?);
    if !differences.is_empty() {
        bail!(
            "the machine differs from what it was before the cluster:\n{}",
            differences.join("\n")
        );
    }
    Ok(())
}
