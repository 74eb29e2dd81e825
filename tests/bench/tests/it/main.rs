//! Tests of the benchmarks.

mod long;
