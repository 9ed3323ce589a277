//! Runs the target `order` under libFuzzer: `cargo fuzz run order`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::order(bytes));

#[cfg(not(fuzzing))]
fn main() {}
