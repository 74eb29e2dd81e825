//! Tests of the benchmarks.

mod measurements;
