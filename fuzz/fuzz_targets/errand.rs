//! Runs the target `errand` under libFuzzer: `cargo fuzz run errand`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::errand(bytes));

#[cfg(not(fuzzing))]
fn main() {}
