//! Faults that take minutes, or hundreds of keys.

mod moves;
mod namespace;
mod sequences;
mod undone_writes;
