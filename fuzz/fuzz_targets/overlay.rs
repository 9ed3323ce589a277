//! Runs the target `overlay` under libFuzzer: `cargo fuzz run overlay`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::overlay(bytes));

#[cfg(not(fuzzing))]
fn main() {}
