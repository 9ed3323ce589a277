//! How a machine becomes the home of a live file, and how that ends.
//!
//! What the kernel reads and writes by itself can't be taken back. So it begins only while nobody else has the file
//! open, and only once the group has decided that everybody hears of it. It ends when nobody has the file open here
//! any more; nobody else can end it.

use base::Duration;
use directory::record::Content;

use crate::{File, Follow, Ledger, Seen, Stay, ledger::anothers};

pub use crate::follow::Anothers;

/// For a smaller file that exists it is not worth a decision of the group, which takes as long as its daemon takes to
/// write so much.
pub const WORTH_MIN: u64 = 16 << 20;
/// How long to wait for a home that is to do something, and for one that is only to tell what it has.
pub const DEED_MAX: Duration = Duration::from_secs(10);
/// See [`DEED_MAX`].
pub const TELL_MAX: Duration = Duration::from_secs(2);
/// How long to wait for the group before a file is opened without, or closed and looked at again later.
pub const ASK_MAX: Duration = Duration::from_secs(1);

/// What speaks for and against becoming the home of a file that is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    /// It is opened to be written. What is only read everybody's kernel may keep as well.
    pub writes: bool,
    /// Nobody else has it open on this machine.
    pub is_first: bool,
    /// The kernel could use its bytes by itself, and this machine acts for any user: else it could not tell what
    /// others have written here.
    pub is_able: bool,
    /// The group did not decide in time a short while ago.
    pub is_slow: bool,
    /// Others have wanted the file lately.
    pub is_contended: bool,
    /// A file of so many bytes is worth it: [`WORTH_MIN`], but for tests.
    pub worth_min: u64,
}

/// The group is being asked whether the bytes of a file may change here.
#[derive(Clone, Debug)]
pub struct Bid {
    losses: u64,
    kept: Option<Content>,
}

/// What comes next of a bid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bidding {
    /// What can't be taken back has to be certain: everything that was done is to be pushed.
    Settle,
    /// The group has decided, and this is what it says of them: [`File::become_home`].
    Won(Content),
    /// It is not to be: [`File::give_up_bid`].
    Lost {
        /// The group may have decided, and has to be told.
        is_kept: bool,
        /// It did not answer in time, and is not asked for a while.
        is_slow: bool,
    },
}

/// What is to be done when nobody has a file open any more that changed here, with the right to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing: somebody has it open, or it did not change here.
    Nothing,
    /// Others have it by now: what is here goes, or is kept aside first, and then [`File::leave`].
    Follow(Follow),
    /// The directory is told that they change here no more, and then [`File::leave`].
    Keep,
    /// It is told what they are now, and then [`File::leave`].
    Settle,
}

impl<M, F> File<M, F> {
    /// Whether the group is to be asked to let the bytes of this content change here. Then it is.
    pub fn bid(&mut self, content: &Content, chance: Chance, ledger: &impl Ledger) -> Option<Bid> {
        let is_ours = content.home == Some(ledger.me());
        let is_worth_it = chance.writes && content.size >= chance.worth_min;
        let is_free = chance.is_first && self.body.is_at_rest() && self.stay == Stay::Not;
        let is_wise = chance.is_able && !chance.is_slow && !chance.is_contended;
        (is_ours && is_worth_it && is_free && is_wise).then(|| self.begin_bid(ledger))
    }

    /// The same for a new file, which is expected to become large or not.
    pub fn bid_new(&mut self, is_large: bool, chance: Chance, ledger: &impl Ledger) -> Option<Bid> {
        let is_wise = chance.writes && chance.is_able && !chance.is_slow;
        (is_large && is_wise).then(|| self.begin_bid(ledger))
    }

    fn begin_bid(&mut self, ledger: &impl Ledger) -> Bid {
        self.stay = Stay::Asked;
        Bid { losses: ledger.losses(), kept: None }
    }

    /// It was not to be.
    pub fn give_up_bid(&mut self) {
        if self.stay == Stay::Asked {
            self.stay = Stay::Not;
        }
    }

    /// Whether the kernel may begin to use the bytes by itself, as the group has decided. Not if somebody has begun to
    /// use them in another way meanwhile.
    pub fn may_become_home(&self, won: &Content, is_first: bool, ledger: &impl Ledger) -> bool {
        is_first && self.body.is_at_rest() && ledger.holds(false).as_ref() == Some(won)
    }

    /// It does. From here on that ends when nobody has the file open, whatever comes.
    pub fn become_home(&mut self, won: Content, ledger: &impl Ledger) {
        self.stay = Stay::Home;
        (self.base, self.origin) = (Some(won), None);
        self.reported = Some(ledger.losses());
    }

    /// The directory was told that the bytes change here, or do not, and says this of them now.
    pub fn note_kept(&mut self, content: Content) {
        self.base = Some(content);
    }

    /// Nobody has it open any more, perhaps: what there is to do, with the right to tell. `seen` is the backing file as
    /// it is now.
    pub fn end(
        &mut self,
        now: &Content,
        is_open: bool,
        ledger: &impl Ledger,
        seen: Option<Seen>,
    ) -> End {
        if is_open || self.stay != Stay::Home {
            return End::Nothing;
        }
        if anothers(now, ledger.me()).is_some() {
            return End::Follow(self.follow(now, ledger, seen));
        }
        // That they are to change here needs not be said any more.
        _ = self.follow_at_home(now, ledger.losses(), ledger);
        self.stay = Stay::Leaving;
        if self.has_news(seen) { End::Settle } else { End::Keep }
    }

    /// It changes here no more, or never did.
    pub fn leave(&mut self) {
        self.stay = Stay::Not;
    }

    /// The directory could not be told: it changes here until it can.
    pub fn remain(&mut self) {
        if self.stay == Stay::Leaving {
            self.stay = Stay::Home;
        }
    }

    /// The machine stops, and programs that have the file open may go on: so to others nothing ends.
    pub fn abandon(&mut self) {
        self.forget();
        self.stay = Stay::Not;
    }
}

impl Bid {
    /// The group was told that they are to change here: what it says of them then, if it has said something, and
    /// whether it was too slow.
    pub fn kept(&mut self, kept: Option<Content>, is_slow: bool) -> Bidding {
        self.kept = kept;
        match self.kept {
            Some(_) => Bidding::Settle,
            None => Bidding::Lost { is_kept: false, is_slow },
        }
    }

    /// The same of a new file, which is not waited for: if it is lost, then as a rule so is the file. Else what is
    /// written here counts as written in a session that was lost.
    pub fn kept_new(self, kept: Option<Content>) -> Bidding {
        match kept {
            Some(content) => Bidding::Won(content),
            None => Bidding::Lost { is_kept: false, is_slow: false },
        }
    }

    /// Everything is pushed, or not.
    pub fn settled(self, is_pushed: bool, ledger: &impl Ledger) -> Bidding {
        match self.kept {
            Some(content) if is_pushed && ledger.losses() == self.losses => Bidding::Won(content),
            _ => Bidding::Lost { is_kept: true, is_slow: true },
        }
    }
}
