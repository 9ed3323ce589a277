//! Runs the target `disk` under libFuzzer: `cargo fuzz run disk`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz::disk(bytes);
});

#[cfg(not(fuzzing))]
fn main() {}
