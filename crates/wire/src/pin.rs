//! What a code pins: what the machine that has made it hands over to whoever comes with it.

use base::{Digest, Domain, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};
use group::{Charter, Decision, Notary, Roll, Seat};
use overlay::{Code, Invitation, Offer, Refused};

const PIN: Domain = Domain::new("pin of a code v1");

/// All that whoever joins has to be sure of before they believe anybody. The code has its digest.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Pin {
    /// What the invitation allows, in which cell.
    pub offer: Offer,
    /// The key of the machine that has made the code.
    pub inviter: PublicKey,
    /// Who has founded the cell: its group is known by that.
    pub founder: Seat,
    /// Who sits in the group, as the inviter knows it.
    pub roll: Roll,
}

impl Pin {
    /// What stands in the code.
    pub fn digest(&self) -> Digest {
        Digest::of(PIN, &base::encode(self))
    }

    /// The invitation, for whoever has this code and was handed all this by the owner of this key.
    pub fn accept(&self, code: &Code, from: &PublicKey) -> Result<Invitation, Refused> {
        // Else whoever has a certificate of the cell, or none, could pretend to be the cell.
        match self.digest() == code.pin && self.inviter == *from {
            true => self.offer.clone().accept(&code.secret),
            false => Err(Refused::PinOther),
        }
    }

    /// Refuses two codes that do not lead to the same cell, or are not of two machines, or of whose rolls the changes
    /// that one of the two has shown do not prove the newer one.
    pub fn compare<N: Notary>(
        &self,
        other: &Pin,
        shown: [&[Decision]; 2],
        charter: &Charter,
        notary: &N,
    ) -> Result<(), Refused> {
        if self.inviter == other.inviter {
            return Err(Refused::CodesAlike);
        }
        let is_one = self.founder == other.founder
            && self.offer.permit().authority == other.offer.permit().authority;
        let (older, newer) = match self.roll.epoch <= other.roll.epoch {
            true => (&self.roll, &other.roll),
            false => (&other.roll, &self.roll),
        };
        // Who leads is a hint.
        let is_newer = |roll: &Roll| (roll.epoch, &roll.seats) == (newer.epoch, &newer.seats);
        let proves = |changes: &[Decision]| {
            let mut counts = 0..=changes.len();
            counts.any(|count| is_newer(&older.after(&changes[..count], charter, notary)))
        };
        match is_one && shown.into_iter().any(proves) {
            true => Ok(()),
            false => Err(Refused::CodesApart),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{Instant, SecretKey};
    use group::{Ed25519, Rescue, Sealable as _, Sealed};
    use overlay::{Issuer, Patrons, Secret, Terms};

    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_seed([seed; 32])
    }

    fn seat(seed: u8) -> Seat {
        Seat { key: key(seed).public(), incarnation: 0 }
    }

    fn roll(epoch: u64, seats: impl IntoIterator<Item = u8>) -> Roll {
        let seats: Vec<Seat> = seats.into_iter().map(seat).collect();
        Roll { epoch, leader: seats[0], seats }
    }

    /// What this machine pins that invites to the cell with this root key, by the secret with this number.
    fn pin(root: u8, secret: u8, inviter: u8, roll: Roll) -> Pin {
        let terms =
            Terms { count: 1, expires: 10, certificate_expires_max: 90, patrons: Patrons::Any };
        let issuer = Issuer::by(&key(root), key(77), 100);
        let invited = Invitation::new(&issuer, &Secret::new([secret; 16]), terms).unwrap();
        let (offer, inviter) = (invited.offer(), key(inviter).public());
        Pin { offer, inviter, founder: seat(2), roll }
    }

    fn code(pin: &Pin, secret: u8) -> Code {
        Code::new(Secret::new([secret; 16]), pin.digest(), &[]).unwrap()
    }

    #[test]
    fn only_the_machine_that_has_made_the_code_leads_where_it_was_made_for() {
        let made = pin(1, 5, 3, roll(1, [2, 3]));
        let code = code(&made, 5);
        assert!(made.accept(&code, &key(3).public()).is_ok());
        // A machine of the cell, be it revoked or not, that has come by the bytes or answers at the address.
        let refused = |pin: &Pin, from: u8| pin.accept(&code, &key(from).public()).unwrap_err();
        assert_eq!(refused(&made, 4), Refused::PinOther);
        assert_eq!(
            refused(&Pin { inviter: key(4).public(), ..made.clone() }, 4),
            Refused::PinOther
        );
        for other in [
            Pin { founder: seat(4), ..made.clone() },
            Pin { roll: roll(1, [4]), ..made.clone() },
            Pin { roll: roll(2, [2, 3]), ..made.clone() },
            // An issuer of the cell can sign another permit for the same secret.
            Pin { offer: pin(9, 5, 3, roll(1, [2, 3])).offer, ..made.clone() },
        ] {
            assert_eq!(refused(&other, 3), Refused::PinOther);
        }
    }

    #[test]
    fn two_codes_are_of_one_cell_if_one_of_their_rolls_proves_the_other() {
        let charter = Charter { group: made_up_group(), authority: Some(key(1).public()) };
        let notary = Ed25519::new(key(99));
        let compare = |one: &Pin, two: &Pin, changes: &[Decision]| {
            one.compare(two, [&[], changes], &charter, &notary)
        };
        let one = pin(1, 5, 3, roll(1, [2, 3]));
        assert_eq!(compare(&one, &pin(1, 6, 4, roll(1, [2, 3])), &[]), Ok(()));
        let alike = pin(1, 6, 3, roll(1, [2, 3]));
        assert_eq!(compare(&one, &alike, &[]), Err(Refused::CodesAlike));
        // Another cell, another founder, other members, and members since another time.
        for two in [
            pin(9, 6, 4, roll(1, [2, 3])),
            Pin { founder: seat(4), ..pin(1, 6, 4, roll(1, [2, 3])) },
            pin(1, 6, 4, roll(1, [2, 4])),
            pin(1, 6, 4, roll(7, [2, 3])),
        ] {
            assert_eq!(compare(&one, &two, &[]), Err(Refused::CodesApart));
            assert_eq!(compare(&two, &one, &[]), Err(Refused::CodesApart));
        }
        let what = Rescue { number: 1, seat: seat(4), height: 30, time: Instant::START, at: 9 };
        let seal = Ed25519::new(key(1)).seal(&what.sealed_bytes(&charter.group));
        let change = Sealed { what, seal }.decision();
        let later = pin(1, 6, 4, Roll { epoch: change.height + 1, ..roll(0, [4]) });
        for (one, two) in [(&one, &later), (&later, &one)] {
            assert_eq!(compare(one, two, std::slice::from_ref(&change)), Ok(()));
            assert_eq!(compare(one, two, &[]), Err(Refused::CodesApart), "nothing proves it");
        }
    }

    fn made_up_group() -> Digest {
        Digest::of(Domain::new("test group v1"), b"")
    }
}
