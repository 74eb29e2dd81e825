//! Languages of answers, through the ingress: the gate's own problems and those of the services.

use anyhow::{Context, Result};
use water_e2e::Cluster;

use crate::requests::assert_problem;

#[tokio::test]
async fn problems_are_french_where_that_is_preferred_and_nothing_else_varies_by_it() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (key, fields) = (
        cluster.key().await?,
        [("Accept-Language", "fr-FR, en;q=0.5")],
    );
    let (parameter, resource) = (
        "Un paramètre n’est pas valable",
        "Cette ressource n’existe pas",
    );
    // The gate refuses the first one, a service each of the others.
    for (target, status, code, at_fault, title) in [
        (
            "/api/v1/stress?format=xml",
            400,
            "invalid_parameter",
            "format",
            parameter,
        ),
        ("/api/v1/stress?dept=20", 404, "not_found", "", resource),
        (
            "/api/v1/hydrorisk?limit=0",
            400,
            "invalid_parameter",
            "limit",
            parameter,
        ),
    ] {
        let answer = cluster.water.get_with(target, &key, &fields).await?;
        assert_problem(&answer, status, code, at_fault)?;
        assert_eq!(answer.json()?["title"], title, "{target}");
        assert_eq!(answer.header("content-language"), Some("fr"), "{target}");
        let vary = answer.header("vary").context("no Vary")?;
        assert!(vary.ends_with(", Accept-Language"), "{target}: {vary}");
    }
    let answer = cluster
        .water
        .get_with("/api/v1/stress", &key, &fields)
        .await?;
    let vary = Some("Authorization, Accept, Accept-Encoding");
    assert_eq!((answer.status, answer.header("vary")), (200, vary));
    assert_eq!(answer.header("content-language"), None);
    Ok(())
}
