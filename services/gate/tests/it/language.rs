//! Problems in the client's language, the gate's own and those of a service.

use water_harness::Answer;
use water_kit::Gate;
use water_kit::gate::{Behaviour, with};

const TARGET: &str = "/api/v1/hydrorisk";
const FRENCH: (&str, &str) = ("Accept-Language", "fr-FR,fr;q=0.9,en;q=0.8");

/// Returns the fields that tell of the language.
fn language(answer: &Answer) -> (Option<&str>, Option<&str>) {
    (answer.header("content-language"), answer.header("vary"))
}

const IN_FRENCH: (Option<&str>, Option<&str>) = (
    Some("fr"),
    Some("Authorization, Accept, Accept-Encoding, Accept-Language"),
);

#[tokio::test]
async fn the_gate_refuses_in_french_where_french_is_preferred() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    for (target, key, status, detail) in [
        (
            TARGET,
            "Bearer x",
            401,
            "Vérifiez que la clé a été envoyée en entier ; si c’est le cas, elle est inconnue ou révoquée.",
        ),
        (
            "/api/v1/other",
            &bearer,
            404,
            "Demandez un des chemins de /api/v1/openapi.json.",
        ),
        (
            "/api/v1/hydrorisk?format=xml",
            &bearer,
            400,
            "format doit être une de ces valeurs : csv, ndjson, json.",
        ),
    ] {
        let fields = [("Authorization", key), FRENCH];
        let answer = gate.request("GET", target, &fields).await;
        let body = answer.json().unwrap();
        assert_eq!((answer.status, &body["detail"]), (status, &detail.into()));
        assert_eq!(language(&answer), IN_FRENCH, "{target}");
    }
}

#[tokio::test]
async fn a_services_problem_keeps_its_language_and_a_success_has_none() {
    let gate = Gate::start().await;
    let bearer = gate.key().await.bearer();
    let fields = [("Authorization", bearer.as_str()), FRENCH];
    let said = "content-type: application/problem+json\r\ncontent-language: fr\r\n";
    let body = r#"{"code":"invalid_parameter","title":"Un paramètre n’est pas valable"}"#;
    let problem = with("400 Bad Request", said, body);
    gate.service.behave(Behaviour::Answer(problem));
    let answer = gate.request("GET", TARGET, &fields).await;
    assert_eq!((answer.status, answer.text().unwrap()), (400, body));
    assert_eq!(language(&answer), IN_FRENCH);
    assert_eq!(gate.service.only().values("accept-language"), [FRENCH.1]);

    let data = with("200 OK", "content-type: application/json\r\n", "{}");
    gate.service.behave(Behaviour::Answer(data));
    let answer = gate.request("GET", TARGET, &fields).await;
    assert_eq!(answer.status, 200);
    let vary = Some("Authorization, Accept, Accept-Encoding");
    assert_eq!(language(&answer), (None, vary));
}
