//! Runs the target `locator` under libFuzzer: `cargo fuzz run locator`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::locator(bytes));

#[cfg(not(fuzzing))]
fn main() {}
