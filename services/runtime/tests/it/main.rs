//! The accept loop and the frame of a process, with real sockets and signals.

mod connections;
mod deadlines;
mod descriptors;
mod draining;
mod process;
mod server;
mod workers;
