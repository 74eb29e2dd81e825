//! The limiter's script beside what is on the shelf: what one request of an account, counted by the
//! minute and by the day, costs Redis.

mod wire;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;
use water_harness::Redis;
use water_keystore::Instance;

use crate::cpu;
use crate::load::Slice;
use crate::rounds::Turn;
use wire::{Wire, command};

/// Requests under way on the connection, as on a gate's.
const UNDER_WAY: u64 = 64;

/// Enough that none comes near a usual limit: at 120 a minute a Redis is busy with some 15 000.
const ACCOUNTS: u64 = 20_000;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits of the minute and the day that no account meets.
const UNMET: (u64, u64) = (1_000_000, 1_000_000_000);

const OURS: &str = include_str!("../../../../services/keystore/src/limiter.lua");
const GCRA: &str = include_str!("limiter/gcra.lua");

/// How requests are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Our script, once.
    Ours,
    /// A GCRA script, once a window.
    Gcra,
    /// INCR and EXPIRE, once a window.
    Fixed,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ours, Self::Gcra, Self::Fixed];

    /// How it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "limiter, ours",
            Self::Gcra => "limiter, GCRA script",
            Self::Fixed => "limiter, INCR and EXPIRE",
        }
    }

    fn script(self) -> Option<&'static str> {
        match self {
            Self::Ours => Some(OURS),
            Self::Gcra => Some(GCRA),
            Self::Fixed => None,
        }
    }

    /// How many replies a request has.
    fn replies(self) -> usize {
        match self {
            Self::Ours => 1,
            Self::Gcra => 2,
            Self::Fixed => 4,
        }
    }

    /// Whether the replies to one request accept it, given the limit of its minute.
    fn accepts(self, replies: &[u8], minute: u64) -> bool {
        let mut lines = std::str::from_utf8(replies).unwrap_or_default().lines();
        match self {
            // The second line is the text of the only reply.
            Self::Ours => lines.nth(1).is_some_and(|text| text.starts_with("1 ")),
            // The second line is the first number of the first of two lists.
            Self::Gcra => lines.nth(1) == Some(":1"),
            Self::Fixed => {
                let count = lines.next().and_then(|line| line.strip_prefix(':'));
                let count = count.and_then(|count| count.parse::<u64>().ok());
                count.is_some_and(|count| count <= minute)
            }
        }
    }
}

/// A Redis in which one method counts.
pub struct Counting {
    /// Which.
    pub method: Method,
    redis: Redis,
    wire: Wire,
    instance: Instance,
    script: String,
    next: u64,
}

impl Counting {
    /// Starts the Redis and sees that the method accepts one request of a limit of one, not two.
    pub async fn start(method: Method) -> Result<Self> {
        let redis = Redis::start().await?;
        let script = match method.script() {
            Some(source) => {
                let reply = redis.command(&["SCRIPT", "LOAD", source]).await?;
                let digest = reply.lines().nth(1);
                digest.context("Redis names a loaded script")?.to_owned()
            }
            None => String::new(),
        };
        let mut counting = Self {
            method,
            wire: Wire::open(redis.address()).await?,
            redis,
            instance: Instance::new("water", "bench")?,
            script,
            next: 0,
        };
        for expected in [true, false] {
            let mut request = Vec::new();
            counting.write("limited", (1, 1), &mut request)?;
            let replies = counting.wire.exchange(&request, method.replies()).await?;
            let text = String::from_utf8_lossy(&replies);
            ensure!(
                method.accepts(&replies, 1) == expected,
                "{}: {text}",
                method.name()
            );
        }
        Ok(counting)
    }

    /// The process id of its Redis.
    pub fn process(&self) -> u32 {
        self.redis.process().id()
    }

    /// Redis' CPU time for a request, in microseconds.
    pub async fn turn(&mut self, slice: Slice) -> Result<Turn> {
        self.count_for(slice.warm_up).await?;
        let before = cpu::time(self.process())?;
        let requests = self.count_for(slice.counted).await?;
        let spent = cpu::time(self.process())? - before;
        Ok(Turn {
            cost: spent.as_secs_f64() * 1e6 / requests as f64,
            counted: 0.0,
        })
    }

    async fn count_for(&mut self, length: Duration) -> Result<u64> {
        let (end, first) = (Instant::now() + length, self.next);
        let mut requests = Vec::new();
        while Instant::now() < end {
            requests.clear();
            for number in self.next..self.next + UNDER_WAY {
                let account = format!("account-{}", number % ACCOUNTS);
                self.write(&account, UNMET, &mut requests)?;
            }
            self.next += UNDER_WAY;
            let count = UNDER_WAY as usize * self.method.replies();
            let replies = self.wire.exchange(&requests, count).await?;
            ensure!(
                self.method.accepts(&replies, UNMET.0),
                "a request was refused"
            );
        }
        Ok(self.next - first)
    }

    /// The commands of one request.
    fn write(
        &self,
        account: &str,
        (minute, day): (u64, u64),
        commands: &mut Vec<u8>,
    ) -> Result<()> {
        let account = account.parse()?;
        let keys = [self.instance.minute(&account), self.instance.day(&account)];
        let [minute_key, day_key] = keys.each_ref().map(String::as_str);
        let windows = [(minute_key, minute, MINUTE), (day_key, day, DAY)];
        match self.method {
            Method::Ours => {
                let (minute, day) = (minute.to_string(), day.to_string());
                let words = [
                    "EVALSHA",
                    &self.script,
                    "2",
                    minute_key,
                    day_key,
                    &minute,
                    &day,
                ];
                command(&words, commands);
            }
            Method::Gcra => {
                for (key, limit, period) in windows {
                    let (limit, period) = (limit.to_string(), period.as_micros().to_string());
                    command(
                        &["EVALSHA", &self.script, "1", key, &limit, &period],
                        commands,
                    );
                }
            }
            Method::Fixed => {
                for (key, _, period) in windows {
                    command(&["INCR", key], commands);
                    command(
                        &["EXPIRE", key, &period.as_secs().to_string(), "NX"],
                        commands,
                    );
                }
            }
        }
        Ok(())
    }
}
