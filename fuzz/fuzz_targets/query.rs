//! Runs the target `query` under libFuzzer: `cargo fuzz run query`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::query(bytes));

#[cfg(not(fuzzing))]
fn main() {}
