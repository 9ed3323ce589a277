//! Runs the target `ear` under libFuzzer: `cargo fuzz run ear`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz::ear(bytes);
});

#[cfg(not(fuzzing))]
fn main() {}
