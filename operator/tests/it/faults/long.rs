//! Faults that take minutes, wait for a Lease to run out, or meet a whole population.

mod sequences;
mod successors;
