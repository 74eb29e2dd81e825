//! What is compared, each in a process of its own: its memory and its threads are nobody else's.

use anyhow::Result;
use clap::ValueEnum;

use super::{accept, directory, exchange, log};

/// One way to do one part's work, ours or a library's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Contestant {
    /// The gate's exchange with a service.
    ExchangeOurs,
    /// hyper-util's client with its pool.
    ExchangeClient,
    /// hyper's connection with the smallest pool that does.
    ExchangeConnection,
    /// Our accept loop with all of its deadlines.
    AcceptOurs,
    /// A plain accept loop before hyper's connection with its one deadline.
    AcceptHyper,
    /// Our accept loop before warp's routes.
    AcceptOursRoutes,
    /// warp's own server.
    AcceptWarp,
    /// Our line and our sink.
    LogOurs,
    /// tracing-subscriber's JSON and tracing-appender's sink.
    LogLibrary,
    /// Our sink alone.
    SinkOurs,
    /// tracing-appender's sink alone.
    SinkLibrary,
    /// A gate's copy of the key directory.
    DirectoryOurs,
    /// hashbrown's map of records.
    DirectoryRecords,
    /// hashbrown's map of packed records.
    DirectoryPacked,
}

impl Contestant {
    /// All of them; those of one part stand together.
    pub const ALL: [Self; 14] = [
        Self::ExchangeOurs,
        Self::ExchangeClient,
        Self::ExchangeConnection,
        Self::AcceptOurs,
        Self::AcceptHyper,
        Self::AcceptOursRoutes,
        Self::AcceptWarp,
        Self::LogOurs,
        Self::LogLibrary,
        Self::SinkOurs,
        Self::SinkLibrary,
        Self::DirectoryOurs,
        Self::DirectoryRecords,
        Self::DirectoryPacked,
    ];

    /// How it is called in this program's arguments.
    pub fn argument(self) -> String {
        let value = self.to_possible_value();
        let value = value.expect("no contestant is left out of the arguments");
        value.get_name().to_owned()
    }

    /// How it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExchangeOurs => "exchange, ours",
            Self::ExchangeClient => "exchange, hyper-util's client",
            Self::ExchangeConnection => "exchange, hyper's connection and a small pool",
            Self::AcceptOurs => "accept loop, ours",
            Self::AcceptHyper => "accept loop, plain before hyper",
            Self::AcceptOursRoutes => "accept loop, ours before warp's routes",
            Self::AcceptWarp => "accept loop, warp's server",
            Self::LogOurs => "log line, ours",
            Self::LogLibrary => "log line, tracing-subscriber and tracing-appender",
            Self::SinkOurs => "log sink, ours",
            Self::SinkLibrary => "log sink, tracing-appender",
            Self::DirectoryOurs => "directory, ours",
            Self::DirectoryRecords => "directory, hashbrown of records",
            Self::DirectoryPacked => "directory, hashbrown of packed records",
        }
    }

    /// Of its cost: of an exchange, a request, a line or a lookup.
    pub fn unit(self) -> &'static str {
        match self {
            Self::ExchangeOurs | Self::ExchangeClient | Self::ExchangeConnection => "µs",
            server if server.is_server() => "µs",
            _ => "ns",
        }
    }

    /// What it counts beside its cost, as a row's name and unit.
    pub fn counts(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::LogOurs => ("log line, ours: on the request's thread", "ns"),
            Self::LogLibrary => (
                "log line, tracing-subscriber and tracing-appender: on the request's thread",
                "ns",
            ),
            Self::SinkOurs => ("log sink, ours: on the request's thread", "ns"),
            Self::SinkLibrary => ("log sink, tracing-appender: on the request's thread", "ns"),
            Self::DirectoryOurs => ("directory, ours: memory of a key", "B"),
            Self::DirectoryRecords => ("directory, hashbrown of records: memory of a key", "B"),
            Self::DirectoryPacked => (
                "directory, hashbrown of packed records: memory of a key",
                "B",
            ),
            _ => return None,
        })
    }

    /// Whether it is measured by the load that is sent to it, and does not measure itself.
    pub fn is_server(self) -> bool {
        matches!(
            self,
            Self::AcceptOurs | Self::AcceptHyper | Self::AcceptOursRoutes | Self::AcceptWarp
        )
    }

    /// Does the work until standard input ends. `with`: where what it needs is.
    pub async fn compete(self, with: &[String]) -> Result<()> {
        match self {
            Self::ExchangeOurs => exchange::ours(with).await,
            Self::ExchangeClient => exchange::client(with).await,
            Self::ExchangeConnection => exchange::connection(with).await,
            Self::AcceptOurs => accept::ours().await,
            Self::AcceptHyper => accept::hyper().await,
            Self::AcceptOursRoutes => accept::ours_routes().await,
            Self::AcceptWarp => accept::warp().await,
            Self::LogOurs => log::ours().await,
            Self::LogLibrary => log::library().await,
            Self::SinkOurs => log::sink_ours().await,
            Self::SinkLibrary => log::sink_library().await,
            Self::DirectoryOurs => directory::ours(with).await,
            Self::DirectoryRecords => directory::records(with).await,
            Self::DirectoryPacked => directory::packed(with).await,
        }
    }
}
