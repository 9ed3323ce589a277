//! Runs the target `member` under libFuzzer: `cargo fuzz run member`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz::member(bytes);
});

#[cfg(not(fuzzing))]
fn main() {}
