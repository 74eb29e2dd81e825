//! Cost of a large key directory for a gate that starts: time until it is ready, and memory.

use anyhow::Result;
use tokio::time::Instant;

use super::site::Site;
use crate::cpu::resident_memory;
use crate::programs::Server;
use crate::report::Row;
use crate::rounds::Figure;

/// Gates of both directories that were started last, and the rows of all starts.
pub struct Startup {
    pub few: Server,
    pub many: Server,
    pub rows: Vec<Row>,
}

impl Startup {
    /// Starts a gate of each directory `rounds` times.
    pub async fn measure(site: &Site, rounds: usize) -> Result<Self> {
        let added = site.many.keys.texts.len() - site.few.keys.texts.len();
        let (mut seconds, mut bytes_a_key) = (Vec::new(), Vec::new());
        let mut gates = None;
        for round in 1..=rounds {
            eprintln!("start {round} of {rounds}");
            // The gates of the round before end first.
            drop(gates.take());
            let few = site.gate_of(&site.few).await?;
            let before = Instant::now();
            let many = site.gate_of(&site.many).await?;
            seconds.push(before.elapsed().as_secs_f64());
            let grown = resident_memory(many.id())? as f64 - resident_memory(few.id())? as f64;
            bytes_a_key.push(grown / added as f64);
            gates = Some((few, many));
        }
        let (few, many) = gates.expect("there is at least one round");
        let ready = "gate with 1 000 000 keys, from its start to ready";
        let memory = "gate with 1 000 000 keys, memory a key";
        let rows = vec![
            Row::new(ready, "s", Figure::new(seconds)).at_most(2.0),
            Row::new(memory, "B", Figure::new(bytes_a_key)).at_most(128.0),
        ];
        Ok(Self { few, many, rows })
    }
}
