//! What a mutant does differently: each hook is a place where queues could be built wrong.

use std::collections::BTreeSet;

use base::PublicKey;
use node::mailroom::Sender;

/// Hooks around the product's machines. The honest system leaves all as they are.
pub(crate) trait Tamper: Clone {
    /// As whose a letter is put in the mailroom.
    fn sender(&self, from: Sender) -> Sender {
        from
    }

    /// Whom the mailroom takes for members.
    fn seated(&self, seated: BTreeSet<PublicKey>) -> BTreeSet<PublicKey> {
        seated
    }

    /// How a member behaves.
    fn settings(&self, settings: group::Settings) -> group::Settings {
        settings
    }
}

/// Nothing is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Honest;

impl Tamper for Honest {}
