//! Faults that take minutes, wait for a Lease to run out, or meet a whole population or hundreds of keys.

mod moves;
mod namespace;
mod restored;
mod sequences;
mod successors;
mod undone_writes;
