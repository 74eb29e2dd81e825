//! Many readers of many loads.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use water_kit::{Running, Signature, day, stress};

use crate::{STRESS, until, with_data};

const READERS: usize = 10;
const LOADS: i64 = 50;

/// Date and tag of each load that a reader received.
type Loads = BTreeMap<i64, (String, String)>;

/// Sends requests on one connection until the end.
async fn read(service: Arc<Running>, stop: watch::Receiver<bool>) -> Loads {
    let identity = Signature::default().value("GET", STRESS);
    let mut connection = service.connect().await;
    let (mut seen, mut last) = (Loads::new(), 0);
    while !*stop.borrow() {
        let fields = [("X-Water-Identity", identity.as_str())];
        let answer = connection.request("GET", STRESS, &fields).await.unwrap();
        let body = answer.json().unwrap();
        let number = number(&body);
        assert!(number >= last, "load {number} after load {last}");
        last = number;
        let tag = answer.header("etag").unwrap().to_owned();
        let date = body["updatedAt"].as_str().unwrap().to_owned();
        let one = (date, tag);
        let first = seen.entry(number).or_insert_with(|| one.clone());
        assert_eq!(*first, one, "load {number}");
    }
    seen
}

/// Returns the load's number, which every record has and which decides the number of records.
fn number(body: &Value) -> i64 {
    let records = body["data"].as_array().unwrap();
    let mut numbers = records.iter().map(|record| {
        let index = record["stressIndex"].as_f64().unwrap();
        (index * 10.0).round() as i64
    });
    let number = numbers.next().unwrap();
    let is_whole = numbers.all(|other| other == number) && records.len() == length(number);
    assert!(is_whole, "a mix of loads: {body}");
    number
}

fn length(number: i64) -> usize {
    1 + number as usize % 4
}

#[tokio::test]
async fn readers_of_fifty_loads_see_records_date_and_tag_in_step_and_never_step_back() {
    let (service, mut loader) = with_data().await;
    let rows = |number: i64| {
        let codes = ["01", "2A", "34", "971"].into_iter().take(length(number));
        codes
            .map(|code| stress(code, number as f64 / 10.0))
            .collect::<Vec<_>>()
    };
    loader.stress(3, &rows(0)).await;
    until(&service, STRESS, 3).await;
    let service = Arc::new(service);
    let stop = watch::Sender::new(false);
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        readers.spawn(read(Arc::clone(&service), stop.subscribe()));
    }
    for number in 1..=LOADS {
        loader.stress(3 + number, &rows(number)).await;
        until(&service, STRESS, 3 + number).await;
    }
    stop.send_replace(true);
    let mut all = Loads::new();
    for (number, one) in readers.join_all().await.into_iter().flatten() {
        assert_eq!(one.0, day(3 + number).to_string());
        let first = all.entry(number).or_insert_with(|| one.clone());
        assert_eq!(*first, one, "load {number}");
    }
    let mut tags: Vec<_> = all.values().map(|(_, tag)| tag).collect();
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), all.len(), "two loads had one tag");
    assert!(
        all.len() as i64 > LOADS / 2,
        "{} of {LOADS} loads were seen",
        all.len()
    );
}
