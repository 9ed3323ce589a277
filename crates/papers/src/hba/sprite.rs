//! The Sprite trace, where this machine has it: the one real trace at hand, without times or operations.

use base::Rng;

use super::Trace;
use crate::Failure;

/// What would bring it.
pub(crate) const SPRITE_ABSENT: &str = "the Sprite trace is not on this machine: put sprite.trace.gz of the \
    LIRS traces (ben-manes/caffeine) somewhere and name it in CROFT_SPRITE_TRACE";

/// This many copies of the trace at once, each under a prefix of its own; `None` if it is not here.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "reads an input of the experiment"
)]
pub(crate) fn sprite(copies: u64, rng: &mut Rng) -> Result<Option<Trace>, Failure> {
    let Some(path) = std::env::var_os("CROFT_SPRITE_TRACE") else { return Ok(None) };
    let fail = |reason: String| Failure::Input { what: "the Sprite trace".into(), reason };
    let output = std::process::Command::new("gzip")
        .arg("-dc")
        .arg(&path)
        .output()
        .map_err(|error| fail(format!("gzip does not start: {error}")))?;
    if !output.status.success() {
        return Err(fail(format!("gzip ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Result<Vec<u64>, _> =
        text.split_ascii_whitespace().filter(|word| *word != "*").map(str::parse).collect();
    let numbers = numbers.map_err(|error| fail(error.to_string()))?;
    Ok(Some(interleave(&numbers, copies, rng)))
}

/// Copies that start at different places, and take turns by chance.
fn interleave(numbers: &[u64], copies: u64, rng: &mut Rng) -> Trace {
    let mut at: Vec<usize> = (0..copies).map(|_| rng.index(numbers.len().max(1))).collect();
    let mut raw = Vec::with_capacity(numbers.len() * copies as usize);
    for _ in 0..numbers.len() * copies as usize {
        let copy = rng.index(at.len());
        raw.push(numbers[at[copy] % numbers.len()] * copies + copy as u64);
        at[copy] += 1;
    }
    let requests = (0..raw.len() as u32).collect();
    Trace::new(&raw, requests, 0.0, rng)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_do_not_share_files() {
        let trace = interleave(&[1, 2, 1, 3], 5, &mut Rng::new(1));
        assert_eq!(trace.len(), 20);
        assert!((4..=15).contains(&trace.prints.len()), "each copy has its own");
    }
}
