//! Faults after which something has to happen within a time.

mod moves;
mod namespace;
mod restored;
mod sequences;
mod successors;
mod undone_writes;
