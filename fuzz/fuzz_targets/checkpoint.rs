//! Runs the target `checkpoint` under libFuzzer: `cargo fuzz run checkpoint`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::checkpoint(bytes));

#[cfg(not(fuzzing))]
fn main() {}
