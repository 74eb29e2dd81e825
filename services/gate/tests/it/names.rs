//! A service's name: resolved in the background, so no name server delays a request.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, ensure};
use water_harness::wait_until;
use water_kit::gate::{Behaviour, Overdue, Recorder, with};
use water_kit::{Gate, Key, SOON};

use crate::deadline::{all_served, decided, in_time, timed};
use crate::name_server::{NameServer, Names};
use crate::whole::{gave_up_connecting, is, problem};

const TARGET: &str = "/api/v1/hydrorisk";
/// Address of the service at first.
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Starts a service that closes the connection after each answer, so that each request needs a new one.
async fn closing_at(address: SocketAddr) -> Recorder {
    let service = Recorder::start_at(address).await;
    let fields = "content-type: application/json\r\nconnection: close\r\n";
    service.behave(Behaviour::AnswerAndClose(with("200 OK", fields, "{}")));
    service
}

/// Starts a gate that knows the history service by name.
async fn named(names: &NameServer, service: &Recorder) -> Gate {
    let address = format!("history.test:{}", service.address.port());
    let gate = names.builder().set("WATER_HISTORY_ADDRESS", address);
    gate.start().await
}

/// Checks that a request is served. One that waited for the name server would be 503 at the gate's deadline.
async fn served(gate: &Gate, key: &Key) -> Result<(), Overdue> {
    all_served(&[timed(gate.get(TARGET, key)).await])
}

async fn comes_to_be_served(gate: &Gate, key: &Key) {
    let served = async || -> Result<()> {
        let answer = gate.get(TARGET, key).await;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    };
    wait_until("an answer", SOON, served).await.unwrap();
}

#[tokio::test]
async fn a_name_server_that_fails_or_hangs_costs_no_request() {
    // The resolver asks for both kinds of address at once. It asks again soon after a failure, but not while it waits.
    for (trouble, questions) in [(Names::Unknown, 4), (Names::Silence, 2)] {
        in_time(async || names_are_in_trouble(trouble, questions).await).await;
    }
}

/// Sends requests until the name server has been asked so often in vain.
async fn names_are_in_trouble(trouble: Names, questions: u32) -> Result<(), Overdue> {
    let names = NameServer::start(Names::Are(HERE)).await;
    let service = closing_at((HERE, 0).into()).await;
    let gate = named(&names, &service).await;
    let key = gate.publish(Key::new().on_plan("Unlimited")).await;
    comes_to_be_served(&gate, &key).await;
    names.behave(trouble);
    let before = names.asked();
    let asked_in_vain = async || -> Result<Option<Overdue>> {
        let overdue = served(&gate, &key).await.err();
        let asked = names.asked() - before;
        ensure!(overdue.is_some() || asked >= questions, "{asked} questions");
        Ok(overdue)
    };
    let overdue = wait_until("more questions", SOON, asked_in_vain).await;
    overdue.unwrap().map_or(Ok(()), Err)?;
    served(&gate, &key).await
}

#[tokio::test]
async fn a_service_that_has_moved_is_found_by_its_name() {
    in_time(moves_a_service).await;
}

async fn moves_a_service() -> Result<(), Overdue> {
    let names = NameServer::start(Names::Are(HERE)).await;
    let before = closing_at((HERE, 0).into()).await;
    let gate = named(&names, &before).await;
    let key = gate.publish(Key::new().on_plan("Unlimited")).await;
    comes_to_be_served(&gate, &key).await;
    let there = Ipv4Addr::new(127, 0, 0, 2);
    let after = closing_at((there, before.address.port()).into()).await;
    names.behave(Names::Are(there));
    let moved = async || -> Result<Option<Overdue>> {
        let overdue = served(&gate, &key).await.err();
        let has_moved = !after.seen().is_empty();
        ensure!(overdue.is_some() || has_moved, "it is asked where it was");
        Ok(overdue)
    };
    let overdue = wait_until("a request at the new address", SOON, moved).await;
    overdue.unwrap().map_or(Ok(()), Err)
}

#[tokio::test]
async fn a_gate_is_ready_once_its_services_names_are_resolved() {
    in_time(resolves_late).await;
}

async fn resolves_late() -> Result<(), Overdue> {
    let names = NameServer::start(Names::Unknown).await;
    let service = closing_at((HERE, 0).into()).await;
    let asked = async {
        // Several rounds, a second apart.
        let asked = async || -> Result<()> {
            ensure!(names.asked() >= 12, "{} questions", names.asked());
            Ok(())
        };
        wait_until("questions", SOON, asked).await.unwrap();
        names.behave(Names::Are(HERE));
    };
    let (gate, ()) = tokio::join!(named(&names, &service), asked);
    let key = gate.publish(Key::new().on_plan("Unlimited")).await;
    served(&gate, &key).await
}

#[tokio::test]
async fn a_name_that_was_never_resolved_is_503_until_it_is() {
    in_time(resolves_after_a_request).await;
}

async fn resolves_after_a_request() -> Result<(), Overdue> {
    let names = NameServer::start(Names::Unknown).await;
    let service = closing_at((HERE, 0).into()).await;
    let gate = named(&names, &service).await;
    let key = gate.publish(Key::new().on_plan("Unlimited")).await;
    let answer = timed(gate.get(TARGET, &key)).await;
    decided(&answer)?;
    assert_eq!(problem(&answer.0), is(503, "upstream_unavailable"));
    gave_up_connecting(&gate).await;
    names.behave(Names::Are(HERE));
    comes_to_be_served(&gate, &key).await;
    Ok(())
}
