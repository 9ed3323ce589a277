//! That a machine may stay for longer than its invitation has said.

use base::{Domain, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    issuer::{Issuable, Issued, Issuer, Power, Tenure},
    refused::Refused,
    signed::Statement,
};

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Extension {
    authority: PublicKey,
    machine: PublicKey,
    expires: u64,
}

impl Statement for Extension {
    const SIGNED: Domain = Domain::new("renewal of a certificate v2");
    const NAMED: Domain = Domain::new("name of a renewal v1");
    const BYTES_MAX: usize = 32 + 32 + 8;
}

impl Issuable for Extension {
    const POWER: Power = Power::Renew;
    const FORGED: Refused = Refused::RenewalForged;

    fn authority(&self) -> &PublicKey {
        &self.authority
    }
}

/// An issuer's word that a machine's certificate lasts longer. Everything else stays as it was: the machine's
/// number, and for whom it acts.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Renewal(Issued<Extension>);

impl Renewal {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize = Issued::<Extension>::BYTES_MAX;
    /// How long a certificate lasts, in seconds: three years.
    pub const SPAN: u64 = 3 * 365 * 86_400;

    /// Lets a machine stay until this moment in seconds since 1970.
    pub fn new(issuer: &Issuer, machine: PublicKey, expires: u64) -> Renewal {
        let extension = Extension { authority: *issuer.authority(), machine, expires };
        Renewal(Issued::new(extension, issuer))
    }

    /// Until when this machine may stay and who says so, if that is an issuer of this cell.
    pub fn verify(
        &self,
        authority: &PublicKey,
        machine: &PublicKey,
    ) -> Result<(u64, Tenure), Refused> {
        let (extension, tenure) = self.0.verify(authority)?;
        match extension.machine == *machine {
            true => Ok((extension.expires, tenure)),
            false => Err(Refused::RenewalOther),
        }
    }
}

/// When a machine asks for a renewal, and when it is given one. Moments are seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewer {
    asked: Option<u64>,
}

impl Renewer {
    /// So long before the end it asks: half of the time, since all who have an issuer's key may be away for very
    /// long.
    pub const LEAD: u64 = Renewal::SPAN / 2;
    /// So long it waits before it asks again.
    pub const PAUSE: u64 = 86_400;

    /// Whether a certificate that expires then may be renewed now: not long before it has to be, else a machine
    /// could have it done as often as it likes; and not when it is too late.
    pub fn is_due(expires: u64, now: u64) -> bool {
        now < expires && expires - now < Renewer::LEAD
    }

    /// Whether to ask now. Whoever is told so has asked.
    pub fn asks(&mut self, expires: u64, now: u64) -> bool {
        // A clock that was set back does not keep it from asking.
        let is_paused =
            self.asked.is_some_and(|asked| asked <= now && now - asked < Renewer::PAUSE);
        let asks = Renewer::is_due(expires, now) && !is_paused;
        if asks {
            self.asked = Some(now);
        }
        asks
    }
}

#[cfg(test)]
mod tests {
    use base::SecretKey;

    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_seed([seed; 32])
    }

    fn issuer(root: u8) -> Issuer {
        Issuer::by(&key(root), key(root + 50), 1_000)
    }

    #[test]
    fn only_an_issuer_renews_and_only_for_one_machine() {
        let (cell, machine) = (key(1).public(), key(3).public());
        let renewal = Renewal::new(&issuer(1), machine, 70);
        assert_eq!(renewal.verify(&cell, &machine), Ok((70, issuer(1).tenure())));
        assert_eq!(renewal.verify(&cell, &key(4).public()), Err(Refused::RenewalOther));
        assert!(matches!(
            renewal.verify(&key(2).public(), &machine),
            Err(Refused::CellOther { .. })
        ));
        let mut bytes = base::encode(&Renewal::new(&issuer(1), machine, 70));
        bytes[4 + 32..4 + 64].copy_from_slice(key(4).public().as_bytes());
        let forged: Renewal = base::decode(&bytes, Renewal::BYTES_MAX).unwrap();
        assert_eq!(forged.verify(&cell, &key(4).public()), Err(Refused::RenewalForged));
    }

    #[test]
    fn every_flipped_bit_of_a_renewal_is_refused() {
        let (cell, machine) = (key(1).public(), key(3).public());
        let renewal = base::encode(&Renewal::new(&issuer(1), machine, 70));
        assert_eq!(renewal.len(), Renewal::BYTES_MAX);
        for bit in 0..8 * renewal.len() {
            let mut bytes = renewal.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(read) = base::decode::<Renewal>(&bytes, Renewal::BYTES_MAX) else { continue };
            assert!(read.verify(&cell, &machine).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_machine_asks_from_half_time_on_once_a_day_until_the_end() {
        let expires = 10 * Renewal::SPAN;
        let begin = expires - Renewer::LEAD;
        let mut renewer = Renewer::default();
        assert!(!renewer.asks(expires, 0) && !renewer.asks(expires, begin));
        assert!(renewer.asks(expires, begin + 1));
        assert!(
            !renewer.asks(expires, begin + 1) && !renewer.asks(expires, begin + Renewer::PAUSE)
        );
        assert!(renewer.asks(expires, begin + 1 + Renewer::PAUSE));
        let days = (begin + 1..expires).step_by(Renewer::PAUSE as usize).skip(2);
        assert!(days.clone().count() > 500 && days.clone().all(|now| renewer.asks(expires, now)));
        assert!(!Renewer::default().asks(expires, expires), "it is too late");
        // It was renewed.
        assert!(!renewer.asks(expires + Renewal::SPAN, expires));
    }

    #[test]
    fn a_clock_that_goes_back_does_not_keep_a_machine_from_asking() {
        let expires = 10 * Renewal::SPAN;
        let mut renewer = Renewer::default();
        assert!(renewer.asks(expires, expires - 1));
        assert!(renewer.asks(expires, expires - 400 * 86_400));
    }
}
