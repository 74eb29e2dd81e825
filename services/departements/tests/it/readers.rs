//! Many readers of many loads.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::fixture::{Running, Signature, day, load, stress, with_data};
use crate::reloads::until;

const READERS: usize = 10;
const LOADS: i64 = 50;
const LIST: &str = "/api/v1/stress";

/// What a reader saw of each load: its date and the list's tag.
type Seen = BTreeMap<i64, (String, String)>;

/// Asks on one connection until told to stop.
async fn read(service: Arc<Running>, stop: watch::Receiver<bool>) -> Seen {
    let identity = Signature::default().value("GET", LIST);
    let mut connection = service.connect().await;
    let (mut seen, mut last) = (Seen::new(), 0);
    while !*stop.borrow() {
        let fields = [("X-Water-Identity", identity.as_str())];
        let answer = connection.request("GET", LIST, &fields).await.unwrap();
        let body = answer.json().unwrap();
        let number = number(&body);
        assert!(number >= last, "load {number} after load {last}");
        last = number;
        let tag = answer.header("etag").unwrap().to_owned();
        let date = body["updatedAt"].as_str().unwrap().to_owned();
        let first = seen
            .entry(number)
            .or_insert_with(|| (date.clone(), tag.clone()));
        assert_eq!(*first, (date, tag), "load {number}");
    }
    seen
}

/// Of the load, which every record tells.
fn number(body: &Value) -> i64 {
    let records = body["data"].as_array().unwrap();
    let mut numbers = records.iter().map(|record| {
        let index = record["stressIndex"].as_f64().unwrap();
        (index * 10.0).round() as i64
    });
    let number = numbers.next().unwrap();
    assert!(
        numbers.all(|other| other == number),
        "a mix of loads: {body}"
    );
    number
}

#[tokio::test]
async fn readers_of_fifty_loads_see_records_date_and_tag_in_step_and_never_step_back() {
    let (service, mut writer) = with_data().await;
    let rows =
        |number: i64| ["01", "2A", "34", "971"].map(|code| stress(code, number as f64 / 10.0));
    writer
        .replace_stress(&rows(0), day(3), &load())
        .await
        .unwrap();
    until(&service, LIST, 3).await;
    let service = Arc::new(service);
    let stop = watch::Sender::new(false);
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        readers.spawn(read(Arc::clone(&service), stop.subscribe()));
    }
    for number in 1..=LOADS {
        writer
            .replace_stress(&rows(number), day(3 + number), &load())
            .await
            .unwrap();
        until(&service, LIST, 3 + number).await;
    }
    stop.send_replace(true);
    let mut all = Seen::new();
    for (number, (date, tag)) in readers.join_all().await.into_iter().flatten() {
        assert_eq!(date, day(3 + number).to_string());
        let first = all
            .entry(number)
            .or_insert_with(|| (date.clone(), tag.clone()));
        assert_eq!(*first, (date, tag), "load {number}");
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
