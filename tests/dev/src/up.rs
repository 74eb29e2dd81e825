//! `cargo dev up`: from a bare machine to an answered request, each step repeatable.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::background::Background;
use crate::cluster::{Cluster, NODE};
use crate::clusters::Clusters;
use crate::credentials::Credentials;
use crate::namespace::{self, Lifetime};
use crate::process::{self, end_of_log};
use crate::progress::Progress;
use crate::wait::{self, Late};
use crate::{
    accounts, binaries, certificates, data, images, ingress, packages, portal, product, programs,
    supervisor, web,
};

/// Starts the development cluster, or brings it up to date.
pub fn run() -> Result<()> {
    let mut progress = Progress::new();
    let claimed = Clusters::of_user()?.claim_development()?;
    let answer = start(&claimed.cluster, &mut progress)?;
    eprintln!(
        "\nReady after {:.0} s. Where the time went:\n{}",
        progress.total().as_secs_f64(),
        progress.longest()
    );
    println!("The first request was answered 200:\n{answer}\n");
    let credentials = Credentials::read(&claimed.cluster.folder)?;
    println!("{}", portal::describe(&claimed.cluster, &credentials)?);
    println!("Type next:\n{}", NEXT.trim_end());
    Ok(())
}

const NEXT: &str = r#"
  eval "$(cargo dev env)"
  curl -H "Authorization: Bearer $WATER_API_KEY" "$WATER_URL/api/v1/stress?dept=34"
  curl -H "Authorization: Bearer $WATER_API_KEY" "$WATER_URL/api/v1/hydrorisk?limit=2"
  cargo dev kubectl -n water get apikeys,waterdataapis,pods
  cargo dev status
  cargo dev down
"#;

/// Installs and builds what is missing, starts everything, and returns the answer to the first request.
fn start(cluster: &Cluster, progress: &mut Progress) -> Result<String> {
    check_user()?;
    let timeline = progress.timeline().clone();
    // Together with the Go programs, which leave a core idle while they are downloaded and linked.
    let packages = Background::start(&timeline, "Debian packages", |step| {
        packages::install_missing(&[packages::CLUSTER], step)
    });
    let shared = timeline.clone();
    let build = Background::start(&timeline, "Pages and binaries", move |step| {
        shared.record("Pages of the portal", || web::build(step))?;
        shared.record("Binaries", || binaries::build(step))
    });
    progress.step(
        "Kubernetes and its companions, built from Go modules",
        programs::build_missing,
    )?;
    progress.step("Debian packages", |step| packages.finish(step))?;
    start_node(cluster, Lifetime::UntilDown, progress)?;
    progress.step("Rest of the pages and binaries", |step| build.finish(step))?;
    start_product(cluster, &[], progress)
}

/// Starts everything, the chart with these values more, where all that it needs is installed and built: cargo, which may
/// be compiling something else, is not waited for.
pub fn start_prepared(
    cluster: &Cluster,
    lifetime: Lifetime,
    values: &[String],
    progress: &mut Progress,
) -> Result<()> {
    check_user()?;
    start_node(cluster, lifetime, progress)?;
    start_product(cluster, values, progress)?;
    Ok(())
}

fn check_user() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "a cluster needs namespaces, control groups and a network link: run the command as root"
        );
    }
    Ok(())
}

/// Rolls the product out, the chart with these values more, and returns the answer to the first request.
fn start_product(cluster: &Cluster, values: &[String], progress: &mut Progress) -> Result<String> {
    // The portal's binary holds its pages, and so its version depends on them.
    let version = binaries::version()?;
    provide_images(cluster, &version, progress)?;
    let credentials = Credentials::read(&cluster.folder)?;
    progress.step("Roles of PostgreSQL, users of Redis", |_| {
        accounts::make_in_postgres(cluster, &credentials)?;
        accounts::make_in_redis(cluster, &credentials)
    })?;
    progress.step("Chart", |_| {
        product::apply_secrets(cluster, &credentials)?;
        product::install(cluster, &version, values)
    })?;
    progress.step("Rollout", |step| {
        product::await_ready(cluster, &version, step)
    })?;
    progress.step("Data", |_| data::load(cluster, &credentials))?;
    progress.step("Sample keys", |_| product::issue_sample_keys(cluster))?;
    progress.step("First request", |_| product::first_request(cluster))
}

/// Puts images of `version` into the cluster's registry.
pub fn provide_images(cluster: &Cluster, version: &str, progress: &mut Progress) -> Result<()> {
    progress.step("Images", |step| {
        images::build_missing(cluster, version, &[], step)
    })
}

/// Builds images that report `version` for the running development cluster.
pub fn images_of(version: Option<String>) -> Result<()> {
    let clusters = Clusters::of_user()?;
    clusters.running_development()?;
    let claimed = clusters.claim_development()?;
    let version = match version {
        Some(version) => version,
        None => binaries::after(&product::installed_version(&claimed.cluster)?),
    };
    let progress = &mut Progress::new();
    progress.step("Pages of the portal", web::build)?;
    progress.step("Binaries", binaries::build)?;
    provide_images(&claimed.cluster, &version, progress)?;
    println!("{version}");
    Ok(())
}

/// Starts the node with everything that a cluster has before the product.
pub fn start_node(cluster: &Cluster, lifetime: Lifetime, progress: &mut Progress) -> Result<()> {
    progress.step("Certificates and passwords", |_| {
        certificates::make(cluster)?;
        Credentials::find_or_make(&cluster.folder).map(drop)
    })?;
    progress.step("Namespaces", |_| {
        if namespace::init_process(cluster)?.is_none() {
            programs::provide(cluster)?;
        }
        namespace::start(cluster, lifetime)
    })?;
    progress.step("Control plane", |_| await_api(cluster))?;
    progress.step("Node", |_| {
        images::push_pause(cluster)?;
        await_node(cluster)
    })?;
    progress.step("Name server and ingress controller", |_| {
        ingress::start(cluster)
    })
}

fn await_api(cluster: &Cluster) -> Result<()> {
    await_part(cluster, "the API server is ready", "kube-apiserver", || {
        process::run(cluster.kubectl().args(["get", "--raw=/readyz"])).is_ok()
    })
}

fn await_node(cluster: &Cluster) -> Result<()> {
    let condition = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    await_part(cluster, "the node is Ready", "kubelet", || {
        let asked = ["get", "node", NODE, "--output", condition];
        process::run(cluster.kubectl().args(asked)).is_ok_and(|ready| ready == "True")
    })
}

/// Waits for `ready`; an error shows the end of the log of `program`, or of the program that keeps ending.
fn await_part(
    cluster: &Cluster,
    what: &str,
    program: &str,
    ready: impl Fn() -> bool,
) -> Result<()> {
    // Seconds on an idle machine; a busy one may need a minute.
    let waited = wait::until(Duration::from_secs(180), what, || {
        check(cluster)?;
        Ok(ready().then_some(()))
    });
    waited.map_err(|error| match error.downcast_ref::<Late>() {
        Some(_) => error.context(format!(
            "the end of {program}'s log:\n{}",
            end_of_log(&cluster.log(program))
        )),
        None => error,
    })
}

/// Fails as soon as it is clear that waiting is in vain.
fn check(cluster: &Cluster) -> Result<()> {
    namespace::init_process(cluster)?.with_context(|| {
        format!(
            "the cluster's process 1 ended:\n{}",
            end_of_log(&cluster.log("init"))
        )
    })?;
    supervisor::check(cluster)
}
