//! What each of many may use up as time passes.

use std::collections::BTreeMap;

use base::{Duration, Instant};

/// How much may be used up: so much at once, and so much more with every second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// With so much used up and not paid off, nothing more is had. Whoever has less may take one thing more,
    /// however large: else what is larger could never be had.
    pub burst: u64,
    /// So much is paid off in a second.
    pub per_second: u64,
}

impl Allowance {
    /// As much as anybody wants.
    pub const ENDLESS: Allowance = Allowance { burst: u64::MAX, per_second: u64::MAX };

    /// How long it takes to pay this off.
    fn pay_off(self, amount: u64) -> Duration {
        let nanos = u128::from(amount) * 1_000_000_000 / u128::from(self.per_second.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// What each has used up and not paid off. It holds nothing itself: it says when somebody may have more.
///
/// Whoever has paid everything off is forgotten. When there are more than are remembered, the rest count as one:
/// so whoever comes under many names has no more of it than one.
#[derive(Clone, Debug)]
pub struct Budgets<K> {
    count_max: usize,
    /// By whom; of none those that there is no room for. At most `count_max`, and one.
    debts: BTreeMap<Option<K>, Debt>,
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    amount: u64,
    /// When it was so much.
    at: Instant,
}

impl Debt {
    fn left(self, now: Instant, allowance: Allowance) -> u64 {
        let paid = u128::from(allowance.per_second) * now.since(self.at).as_nanos() / 1_000_000_000;
        self.amount.saturating_sub(u64::try_from(paid).unwrap_or(u64::MAX))
    }
}

impl<K: Clone + Ord> Budgets<K> {
    /// Remembers so many.
    pub fn new(count_max: usize) -> Budgets<K> {
        Budgets { count_max, debts: BTreeMap::new() }
    }

    /// How long until somebody may have more. Nothing if it may now.
    pub fn wait(&self, now: Instant, who: &K, allowance: Allowance) -> Duration {
        match self.owed(now, who, allowance).checked_sub(allowance.burst) {
            Some(over) => allowance.pay_off(over.saturating_add(1)),
            None => Duration::ZERO,
        }
    }

    /// Whether somebody may have more now.
    pub fn may(&self, now: Instant, who: &K, allowance: Allowance) -> bool {
        self.wait(now, who, allowance).is_zero()
    }

    /// Somebody has used up so much. All that it owes pays off by this allowance since it last used up something.
    pub fn spend(&mut self, now: Instant, who: &K, allowance: Allowance, amount: u64) {
        if !self.has_own(who) {
            self.debts.retain(|_, debt| debt.left(now, allowance) > 0);
        }
        let amount = self.owed(now, who, allowance).saturating_add(amount);
        let whose = self.has_own(who).then(|| who.clone());
        self.debts.insert(whose, Debt { amount, at: now });
    }

    /// Takes so much for somebody if it may have it now. Whether it has.
    pub fn take(&mut self, now: Instant, who: &K, allowance: Allowance, amount: u64) -> bool {
        let may = self.may(now, who, allowance);
        if may {
            self.spend(now, who, allowance, amount);
        }
        may
    }

    /// How many are remembered.
    pub fn count(&self) -> usize {
        self.debts.len()
    }

    fn owed(&self, now: Instant, who: &K, allowance: Allowance) -> u64 {
        let whose = self.has_own(who).then(|| who.clone());
        self.debts.get(&whose).map_or(0, |debt| debt.left(now, allowance))
    }

    /// Whether somebody is remembered by name, or there is room for it.
    fn has_own(&self, who: &K) -> bool {
        self.debts.len() < self.count_max || self.debts.contains_key(&Some(who.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Allowance = Allowance { burst: 20, per_second: 10 };

    #[test]
    fn whoever_has_used_up_its_burst_waits_until_some_of_it_is_paid_off() {
        let (mut budgets, now) = (Budgets::new(9), Instant::from_secs(1));
        assert!(budgets.take(now, &'a', TEN, 19) && budgets.take(now, &'a', TEN, 21));
        assert!(!budgets.take(now, &'a', TEN, 1), "40 are owed");
        assert!(budgets.take(now, &'b', TEN, 1), "that is nobody else's affair");
        assert_eq!(budgets.wait(now, &'a', TEN), Duration::from_millis(2_100));
        let later = now + Duration::from_millis(2_000);
        assert!(
            !budgets.may(later, &'a', TEN)
                && budgets.may(later + Duration::from_millis(100), &'a', TEN)
        );
    }

    #[test]
    fn over_a_long_time_nobody_has_more_than_is_paid_off_and_one_burst() {
        let (mut budgets, mut had) = (Budgets::new(9), 0);
        for millis in 0..100_000 {
            while budgets.take(Instant::from_millis(millis), &(), TEN, 3) {
                had += 3;
            }
        }
        assert!((1_000..=1_023).contains(&had), "{had}");
    }

    #[test]
    fn those_for_whom_there_is_no_room_count_as_one_until_somebody_has_paid() {
        let (mut budgets, now) = (Budgets::new(2), Instant::START);
        for name in 'a'..='z' {
            budgets.take(now, &name, TEN, 20);
        }
        assert_eq!(budgets.count(), 3);
        let mays = |budgets: &Budgets<char>, at| {
            ('a'..='z').filter(|name| budgets.may(at, name, TEN)).count()
        };
        assert_eq!(mays(&budgets, now), 0, "all the others together have had as much as one");
        let later = now + Duration::from_secs(9);
        assert!(budgets.take(later, &'q', TEN, 1));
        assert_eq!((budgets.count(), mays(&budgets, later)), (1, 26), "who has paid is forgotten");
    }

    #[test]
    fn an_endless_allowance_lets_everything_through() {
        let mut budgets = Budgets::new(1);
        for _ in 0..3 {
            assert!(budgets.take(Instant::START, &'a', Allowance::ENDLESS, u64::MAX / 2));
        }
    }
}
