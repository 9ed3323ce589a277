//! What machines ask one another out of turn, and what one keeps of its cell: canonical or refused.

/// Reads the bytes as each of them; what is accepted must be written as the same bytes.
pub fn errand(bytes: &[u8]) {
    host::hostile::read(bytes);
}

#[cfg(test)]
mod tests {
    use base::Rng;
    use host::hostile::{read, samples};

    use super::*;
    use crate::noise::small_change;

    #[test]
    fn the_samples_are_accepted() {
        assert!(samples().iter().all(|sample| read(sample) >= 1));
    }

    #[test]
    fn every_small_change_is_refused_or_canonical() {
        let (samples, mut rng) = (samples(), Rng::new(15));
        for round in 0..10_000 {
            let mut bytes = samples[round % samples.len()].clone();
            small_change(&mut bytes, &mut rng);
            errand(&bytes);
        }
    }
}
