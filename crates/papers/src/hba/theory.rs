//! H3: what an array of Bloom filters does, by formula.

/// How often a filter with the best number of probes is wrong.
pub(crate) fn wrong(bits_per_file: f64) -> f64 {
    0.6185f64.powf(bits_per_file)
}

/// How often it is with this number of probes.
pub(crate) fn wrong_with(bits_per_file: f64, probes: f64) -> f64 {
    (1.0 - (-probes / bits_per_file).exp()).powf(probes)
}

/// How often exactly one of `groups` filters answers for a path that is there. The paper's formula.
pub(crate) fn hit(groups: f64, wrong: f64) -> f64 {
    (1.0 - wrong).powf(groups)
}

/// The same, not counting the group's own filter, which is never wrong about it.
pub(crate) fn hit_exact(groups: f64, wrong: f64) -> f64 {
    hit(groups - 1.0, wrong)
}

/// How often exactly one answers for a path that is nowhere.
pub(crate) fn false_new(groups: f64, wrong: f64) -> f64 {
    groups * wrong * (1.0 - wrong).powf(groups - 1.0)
}

/// The bits a file at which [`false_new`] is greatest, in steps of a thousandth, and its value there.
pub(crate) fn false_new_max(groups: f64) -> (f64, f64) {
    let steps = (1..40_000).map(|step| f64::from(step) / 1_000.0);
    let values = steps.map(|bits| (bits, false_new(groups, wrong(bits))));
    values.max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are steps")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_where_the_paper_derives_it() {
        for groups in [10.0, 50.0, 100.0, 200.0f64] {
            let (bits, value) = false_new_max(groups);
            assert!((bits - groups.ln() / -(0.6185f64.ln())).abs() < 0.001);
            assert!((value - (1.0 - 1.0 / groups).powf(groups - 1.0)).abs() < 1e-6);
        }
    }
}
