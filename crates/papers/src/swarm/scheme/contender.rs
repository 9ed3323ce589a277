//! The schemes that experiments compare, by name.

use overlay::Policy;

use super::{KChoices, LogN, None, Proportion, Scheme, Threshold, Transfer};

/// A scheme that has not begun.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contender {
    /// K16.
    None,
    /// K12.
    LogN,
    /// K13.
    Proportion,
    /// K13 where machines make servers as long as they have room for one more.
    Eager,
    /// K14.
    Transfer,
    /// K15.
    Threshold,
    /// K5 to K8.
    KChoices(Policy),
}

impl Contender {
    /// k-Choices that never moves after the join, with so many choices.
    pub fn passive(choices: u32) -> Contender {
        Contender::KChoices(Policy { choices, is_active: false, ..Policy::paper() })
    }

    /// k-Choices as the paper has it, with so many choices.
    pub fn active(choices: u32) -> Contender {
        Contender::KChoices(Policy { choices, ..Policy::paper() })
    }

    /// k-Choices as the product has it, with so many choices.
    pub fn farsighted(choices: u32) -> Contender {
        Contender::KChoices(Policy { choices, ..Policy::default() })
    }

    /// All of them, k-Choices in both modes with so many choices.
    pub fn all(choices: u32) -> [Contender; 7] {
        use Contender::{LogN, None, Proportion, Threshold, Transfer};
        let (passive, active) = (Contender::passive(choices), Contender::active(choices));
        [None, LogN, Proportion, Transfer, Threshold, passive, active]
    }

    /// As rows call it.
    pub fn name(&self) -> &'static str {
        match self {
            Contender::None => "none",
            Contender::LogN => "log-n",
            Contender::Proportion => "proportion",
            Contender::Eager => "eager",
            Contender::Transfer => "transfer",
            Contender::Threshold => "threshold",
            Contender::KChoices(policy) if policy.is_active && policy.is_farsighted => "farsighted",
            Contender::KChoices(policy) if policy.is_active => "active",
            Contender::KChoices(_) => "passive",
        }
    }

    /// Begins in a network of so many machines.
    pub fn scheme(&self, machines: usize) -> Box<dyn Scheme> {
        match *self {
            Contender::None => Box::new(None),
            Contender::LogN => Box::new(LogN::new(machines)),
            Contender::Proportion => Box::new(Proportion::default()),
            Contender::Eager => Box::new(Proportion { is_eager: true, ..Proportion::default() }),
            Contender::Transfer => Box::new(Transfer::default()),
            Contender::Threshold => Box::new(Threshold::default()),
            Contender::KChoices(policy) => Box::new(KChoices::new(policy)),
        }
    }
}
