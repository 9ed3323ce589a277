//! Marks that a run should pass now and then: what never happens was never tested.

/// Named marks and how often each was passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Vec<(&'static str, u64)>);

impl Marks {
    /// These marks, none of them passed.
    pub fn new(names: &[&'static str]) -> Marks {
        Marks(names.iter().map(|name| (*name, 0)).collect())
    }

    /// Passes a mark.
    pub fn pass(&mut self, name: &'static str) {
        self.add(name, 1);
    }

    /// Passes a mark so many times.
    pub fn pass_many(&mut self, name: &'static str, count: u64) {
        self.add(name, count);
    }

    /// Passes a mark if this is so.
    pub fn pass_if(&mut self, is_so: bool, name: &'static str) {
        if is_so {
            self.pass(name);
        }
    }

    /// Adds what another run passed.
    pub fn merge(&mut self, other: &Marks) {
        for &(name, count) in &other.0 {
            self.add(name, count);
        }
    }

    /// Each mark and how often it was passed, in the order in which they were named.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }

    /// The marks that were never passed.
    pub fn missed(&self) -> impl Iterator<Item = &'static str> {
        self.iter().filter(|(_, count)| *count == 0).map(|(name, _)| name)
    }

    fn add(&mut self, name: &'static str, count: u64) {
        // The same literal mostly has the same address, which is quicker to see.
        let quick = self.0.iter().position(|(known, _)| std::ptr::eq(*known, name));
        let known = quick.or_else(|| self.0.iter().position(|(known, _)| *known == name));
        match known {
            Some(index) => self.0[index].1 += count,
            None => self.0.push((name, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_passed_is_missed() {
        let mut marks = Marks::new(&["rain", "sun", "snow"]);
        marks.pass("sun");
        marks.pass_if(false, "snow");
        marks.pass_if(true, "hail");
        assert_eq!(marks.missed().collect::<Vec<_>>(), ["rain", "snow"]);
        let mut all = Marks::new(&["snow"]);
        all.merge(&marks);
        all.merge(&marks);
        assert_eq!(
            all.iter().collect::<Vec<_>>(),
            [("snow", 0), ("rain", 0), ("sun", 2), ("hail", 2)]
        );
    }
}
