//! Runs the target `wire` under libFuzzer: `cargo fuzz run wire`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::wire(bytes));

#[cfg(not(fuzzing))]
fn main() {}
