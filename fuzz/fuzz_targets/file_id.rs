//! Runs the target `file_id` under libFuzzer: `cargo fuzz run file_id`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::file_id(bytes));

#[cfg(not(fuzzing))]
fn main() {}
