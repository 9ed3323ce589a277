//! What this machine's client says of one file at one moment.

use directory::record::Content;
use lease::Client;

/// What this machine's client says of one file, and of itself, at the moment at which it is asked.
pub trait Ledger {
    /// Which client it is.
    fn me(&self) -> Client;
    /// Whether others may have the same tree, on other machines.
    fn is_shared(&self) -> bool;
    /// The file's content, if that is right now, and may be changed if need be.
    fn holds(&self, writes: bool) -> Option<Content>;
    /// Whether it is just being given up to others.
    fn is_yielding(&self) -> bool;
    /// How many sessions were lost so far. What was done when there were fewer may be undone.
    fn losses(&self) -> u64;
    /// The place of the last operation that was performed here.
    fn place(&self) -> u64;
    /// Whether everything up to a place is safe with the group. What was lost never is.
    fn is_pushed(&self, place: u64) -> bool;
}

/// Whether the bytes of a content are on another machine.
pub fn is_elsewhere(content: &Content, ledger: &impl Ledger) -> bool {
    content.size > 0 && ledger.is_shared() && anothers(content, ledger.me()).is_some()
}

/// The machine where bytes change without a word, if that is another one.
pub fn live_elsewhere(content: &Content, ledger: &impl Ledger) -> Option<Client> {
    anothers(content, ledger.me()).filter(|_| content.is_live && ledger.is_shared())
}

/// Who else has changed a content last.
pub(crate) fn anothers(content: &Content, me: Client) -> Option<Client> {
    content.home.filter(|home| *home != me)
}
