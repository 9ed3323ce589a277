//! What is replicated in this world: for each customer how often it was served, and a hash over everything.

use std::collections::BTreeMap;

use base::{Digest, Domain, Rng};
use borsh::{BorshDeserialize, BorshSerialize};

use super::notary::keyed;

const CHAIN: Domain = Domain::new("simulated tally v1");

/// Whose orders are whims: no customer's.
const WHIM: u16 = u16::MAX;

/// What a customer wants. Its tag shows that it does.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Order {
    pub(crate) customer: u16,
    /// The first is 1, and each is one more than the last.
    pub(crate) number: u64,
    pub(crate) weight: u32,
    tag: u64,
}

impl Order {
    pub(crate) fn new(customer: u16, number: u64, weight: u32, secret: u64) -> Order {
        let tag = keyed(secret, &base::encode(&(customer, number, weight)));
        Order { customer, number, weight, tag }
    }

    /// One that nobody wants.
    pub(crate) fn invented(rng: &mut Rng) -> Vec<u8> {
        base::encode(&Order::new(4, 1 + rng.below(20), 666, rng.next_u64()))
    }

    /// The next one that whoever is alone likes to serve.
    pub(crate) fn whim(tally: &Tally, rng: &mut Rng) -> Order {
        let number = tally.last.get(&WHIM).map_or(0, |(number, _)| *number);
        Order::new(WHIM, number + 1, rng.below(1_000) as u32, 0)
    }

    /// Whether the customer with this secret wants it.
    pub(crate) fn is_wanted(&self, secret: u64) -> bool {
        *self == Order::new(self.customer, self.number, self.weight, secret)
    }

    /// Who wants it.
    pub(crate) fn author(bytes: &[u8]) -> Option<u64> {
        Order::of(bytes).map(|order| u64::from(order.customer))
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<Order> {
        base::decode(bytes, bytes.len()).ok()
    }
}

/// What came of an order: how many there were before it, what they weigh together with it, and a hash.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Receipt {
    pub(crate) place: u64,
    pub(crate) weight: u64,
    pub(crate) chain: [u8; 8],
}

/// The state.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    weight: u64,
    chain: [u8; 32],
    /// The last order of each customer and what came of it.
    last: BTreeMap<u16, (u64, Receipt)>,
}

impl Tally {
    /// Serves an order once. Answers what came of it, unless it is too old or too new.
    pub(crate) fn serve(&mut self, order: &Order) -> Option<Receipt> {
        let last = self.last.get(&order.customer);
        let number = last.map_or(0, |(number, _)| *number);
        if order.number == number {
            return last.map(|(_, receipt)| receipt.clone());
        }
        (order.number == number + 1).then(|| self.take(order))
    }

    /// Serves an order, whether or not it was served before.
    pub(crate) fn take(&mut self, order: &Order) -> Receipt {
        let bytes = base::encode(&(self.chain, order.customer, order.number, order.weight));
        self.chain = *Digest::of(CHAIN, &bytes).as_bytes();
        self.weight += u64::from(order.weight);
        let chain = self.chain.first_chunk().copied().unwrap_or_default();
        let receipt = Receipt { place: self.count, weight: self.weight, chain };
        self.count += 1;
        self.last.insert(order.customer, (order.number, receipt.clone()));
        receipt
    }

    /// Changes it without anybody having asked for that.
    pub(crate) fn spoil(&mut self) {
        self.weight += 1;
        self.chain[0] ^= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_served_once_and_answered_as_often_as_it_comes() {
        let mut tally = Tally::default();
        let order = Order::new(3, 1, 10, 42);
        let receipt = tally.serve(&order);
        assert!(receipt.is_some());
        assert_eq!(tally.serve(&order), receipt);
        assert_eq!(tally.serve(&Order::new(3, 3, 1, 42)), None, "one is missing");
        assert!(tally.serve(&Order::new(3, 2, 1, 42)).is_some());
        assert_eq!(tally.serve(&order), None, "it is long over");
        assert_eq!((tally.count, tally.weight), (2, 11));
    }

    #[test]
    fn nobody_orders_for_another() {
        let order = Order::new(3, 1, 10, 42);
        assert!(order.is_wanted(42) && !order.is_wanted(43));
        assert!(!Order { weight: 11, ..order }.is_wanted(42));
    }
}
