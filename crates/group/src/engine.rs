//! The engine behind a seam of ours: it is fed what happened at one height and says what to do.
//!
//! Nothing else knows which engine this is. It is told the truth about time (a timeout has passed) and
//! asked for nothing that needs an answer later but a value to propose.

use std::collections::{BTreeMap, BTreeSet};

use base::{Digest, Duration};
use borsh::{BorshDeserialize, BorshSerialize};
use malachitebft_core_consensus::{
    self as core, Effect, Input, LivenessMsg, LocallyProposedValue, Params, ProposedValue,
    Resumable as _, Resume, SignedConsensusMsg, State, process,
};
use malachitebft_core_types::{
    CertificateError, LinearTimeouts, PolkaCertificate, PolkaSignature, Round, RoundCertificate,
    RoundCertificateType, RoundSignature, SignedMessage, Timeout, TimeoutKind, Validity,
    ValueOrigin, ValuePayload, VoteExtensionPolicy, VoteType,
};

use crate::{
    ballot::{Certificate, Passage, Proposal, Step, Vote},
    seal::{Notary, Seal, Sealable as _, Sealed},
    seat::{Seat, Seats},
};

use context::{Bid, Cast, Context, Height, Value, number, step_of};

mod context;

/// What a round waits for, and then gives up on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Wait {
    /// The leader's proposal.
    Propose,
    /// Prevotes that agree.
    Prevote,
    /// Precommits that agree.
    Precommit,
    /// Anything; then the last words are said again.
    Rebroadcast,
}

/// How long a round waits. Each attempt waits a little longer than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For the proposal.
    pub propose: Duration,
    /// For prevotes that agree, once a quorum has voted.
    pub prevote: Duration,
    /// For precommits that agree, once a quorum has voted.
    pub precommit: Duration,
    /// Before the last words are said again.
    pub rebroadcast: Duration,
    /// By so much each wait grows from round to round.
    pub growth: Duration,
    /// Up to this; and after very many rounds beyond it, so that a height never has more rounds than can be kept.
    pub most: Duration,
}

/// After so many rounds waits double, every so many rounds, so many times.
const QUICK_ROUNDS: u32 = 64;
const DOUBLED_EVERY: u32 = 16;
const DOUBLED_MAX: u32 = 20;

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            propose: Duration::from_millis(200),
            prevote: Duration::from_millis(100),
            precommit: Duration::from_millis(100),
            rebroadcast: Duration::from_millis(400),
            growth: Duration::from_millis(100),
            most: Duration::from_secs(5),
        }
    }
}

impl Patience {
    fn of(&self, timeout: Timeout) -> Duration {
        let (propose_delta, prevote_delta, precommit_delta) =
            (self.growth, self.growth, self.growth);
        let Patience { propose, prevote, precommit, rebroadcast, most, .. } = *self;
        let is_repeat = timeout.kind == TimeoutKind::Rebroadcast;
        let doublings = match timeout.round.as_u32().filter(|_| !is_repeat) {
            Some(round) => round.saturating_sub(QUICK_ROUNDS) / DOUBLED_EVERY,
            None => 0,
        };
        let linear = LinearTimeouts {
            propose,
            propose_delta,
            prevote,
            prevote_delta,
            precommit,
            precommit_delta,
            rebroadcast,
            max_timeout: most,
        }
        .duration_for(timeout);
        linear.saturating_mul(1 << doublings.min(DOUBLED_MAX))
    }
}

/// What has to be in the log before the words that follow from it may leave, and is fed again after a
/// start.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Fact {
    /// A vote, of anybody.
    Vote(Sealed<Vote>),
    /// A proposal, of anybody.
    Proposal(Sealed<Proposal>),
    /// A quorum of prevotes.
    Polka(Certificate),
    /// Something was waited for in vain.
    Waited {
        /// For what.
        wait: Wait,
        /// In which round.
        round: u32,
    },
    /// A batch, by its digest, and whether it may be decided.
    Judged {
        /// In which round it was proposed.
        round: u32,
        /// The attempt in which a quorum had seen it already.
        valid_round: Option<u32>,
        /// Who proposed it.
        seat: Seat,
        /// Its digest.
        value: Digest,
        /// Whether it may be decided.
        is_fit: bool,
    },
}

/// What the engine can say to the other members.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Word {
    /// A vote, and whether it has been said before.
    Vote(Sealed<Vote>, bool),
    /// A proposal.
    Proposal(Sealed<Proposal>),
    /// A quorum of prevotes.
    Polka(Certificate),
    /// Why a round was entered.
    Passage(Passage),
}

impl Word {
    /// The height that it is about.
    pub fn height(&self) -> u64 {
        match self {
            Word::Vote(vote, _) => vote.what.height,
            Word::Proposal(proposal) => proposal.what.height,
            Word::Polka(certificate) => certificate.height,
            Word::Passage(passage) => passage.height,
        }
    }

    /// The round that it is about.
    pub(crate) fn round(&self) -> u32 {
        match self {
            Word::Vote(vote, _) => vote.what.round,
            Word::Proposal(proposal) => proposal.what.round,
            Word::Polka(certificate) => certificate.round,
            Word::Passage(passage) => passage.round,
        }
    }
}

/// Two things that a member has said, of which an honest one says at most one.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Evidence {
    /// Two votes at one place.
    Votes(Sealed<Vote>, Sealed<Vote>),
    /// Two proposals at one place.
    Proposals(Sealed<Proposal>, Sealed<Proposal>),
}

impl Evidence {
    /// Whose.
    pub fn seat(&self) -> Seat {
        match self {
            Evidence::Votes(vote, _) => vote.what.seat,
            Evidence::Proposals(proposal, _) => proposal.what.seat,
        }
    }
}

/// What is to be done, in this order.
#[derive(Debug)]
pub(crate) enum Deed {
    /// Goes into the log.
    Log(Fact),
    /// Goes to all others, once everything before it is safe in the log.
    Say(Word),
    /// A round begins.
    Round {
        leader: Seat,
    },
    /// This member leads and has to propose something.
    Want {
        round: u32,
    },
    Start {
        wait: Wait,
        round: u32,
        after: Duration,
    },
    Stop {
        wait: Wait,
        round: u32,
    },
    StopAll,
    /// The height is over.
    Decided {
        certificate: Certificate,
        evidence: Vec<Evidence>,
    },
}

/// As many things for later heights are kept: for the next height mostly, from each member a few votes.
const QUEUE_HEIGHTS: usize = 2;
const QUEUE_MAX: usize = 8 * Seats::COUNT_MAX;

pub(crate) struct Engine {
    group: Digest,
    patience: Patience,
    state: State<Context>,
    /// Seals at this height that are known to be right, each with what it stands under: it proves nothing
    /// else. At most [`KNOWN_MAX`].
    known: BTreeMap<Seal, Vec<u8>>,
}

const KNOWN_MAX: usize = 1_024;

impl Engine {
    pub(crate) fn new(
        group: Digest,
        me: Seat,
        patience: Patience,
        height: u64,
        seats: Seats,
    ) -> Engine {
        let params = Params {
            address: me,
            threshold_params: Default::default(),
            value_payload: ValuePayload::ProposalAndParts,
            enabled: true,
        };
        let state = State::new(Context, Height(height), seats, params, QUEUE_HEIGHTS, QUEUE_MAX);
        Engine { group, patience, state, known: BTreeMap::new() }
    }

    /// Begins a height.
    pub(crate) fn begin<N: Notary>(
        &mut self,
        notary: &N,
        height: u64,
        seats: Seats,
        deeds: &mut Vec<Deed>,
    ) {
        self.known.clear();
        let policy = VoteExtensionPolicy::Disabled;
        let input = Input::StartHeight(Height(height), seats, false, None, policy);
        self.feed(notary, input, deeds);
    }

    /// Before facts of a log are fed again.
    pub(crate) fn begin_replay(&mut self, facts: &[Fact]) {
        let inputs: Vec<_> =
            facts.iter().map(|fact| input_of(self.state.height(), fact.clone())).collect();
        self.state.index_wal_entries(&inputs);
    }

    /// After they were.
    pub(crate) fn end_replay(&mut self) {
        self.state.reset_entries_index();
    }

    /// The round that is on.
    pub(crate) fn round(&self) -> u32 {
        number(self.state.round())
    }

    /// Takes a fact: from the log, from this member's judgement, or from its clock.
    pub(crate) fn take<N: Notary>(&mut self, notary: &N, fact: Fact, deeds: &mut Vec<Deed>) {
        let input = input_of(self.state.height(), fact);
        self.feed(notary, input, deeds);
    }

    /// Hears what another member says.
    pub(crate) fn hear<N: Notary>(&mut self, notary: &N, word: Word, deeds: &mut Vec<Deed>) {
        let input = match word {
            Word::Vote(vote, _) => Input::Vote(signed_vote(vote)),
            Word::Proposal(proposal) => Input::Proposal(signed_proposal(proposal)),
            Word::Polka(certificate) => Input::PolkaCertificate(polka(certificate)),
            Word::Passage(passage) => Input::RoundCertificate(round_certificate(passage)),
        };
        self.feed(notary, input, deeds);
    }

    /// Proposes a batch.
    pub(crate) fn propose<N: Notary>(
        &mut self,
        notary: &N,
        round: u32,
        value: Digest,
        deeds: &mut Vec<Deed>,
    ) {
        let height = self.state.height();
        let value = LocallyProposedValue::new(height, Round::new(round), Value(value));
        self.feed(notary, Input::Propose(value), deeds);
    }

    fn feed<N: Notary>(&mut self, notary: &N, input: Input<Context>, deeds: &mut Vec<Deed>) {
        let since = deeds.len();
        let Engine { group, patience, state, known } = self;
        let mut desk = Desk { group, patience: *patience, notary, known, deeds };
        let done: Result<(), core::Error<Context>> =
            process!(input: input, state: state, metrics: &(), with: effect => desk.serve(effect));
        // The engine refuses what others have made wrong by itself; an error means that its own log
        // contradicts it, and then it must not vote any more.
        if let Err(error) = done {
            assert!(
                !matches!(error, core::Error::ReplayDivergence(..)),
                "the log of this member contradicts what it does: {error}"
            );
        }
        self.show_lock(since, deeds);
    }

    /// Who binds itself to a value shows all others why, so that they do not bind themselves to another one in
    /// the next round, with a liar's help, and so on for ever. The engine does so too, but only from its tenth
    /// round on. In the first round it would cost more than it is worth.
    fn show_lock(&self, since: usize, deeds: &mut Vec<Deed>) {
        let lock = deeds[since..].iter().find_map(|deed| match deed {
            Deed::Say(Word::Vote(Sealed { what, .. }, false)) if what.step == Step::Precommit => {
                Some((what.round, what.value?))
            }
            _ => None,
        });
        let Some((round, value)) = lock.filter(|(round, _)| *round > 0) else { return };
        let round = Round::new(round);
        if let Some(polka) = self.state.polka_certificate(round, &value) {
            deeds.push(Deed::Say(Word::Polka(of_polka(polka.clone()))));
        }
        let driver = &self.state.driver;
        if let Some((bid, _)) = driver.proposal_and_validity_for_round_and_value(round, value) {
            deeds.push(Deed::Say(Word::Proposal(sealed_proposal(bid.clone()))));
        }
    }

    /// Checks a seal, unless it is known.
    pub(crate) fn is_sealed<N: Notary>(
        &mut self,
        notary: &N,
        seat: &Seat,
        bytes: &[u8],
        seal: &Seal,
    ) -> bool {
        if !notary.is_sealed(&seat.key, bytes, seal) {
            return false;
        }
        if self.known.len() < KNOWN_MAX {
            self.known.insert(*seal, bytes.to_vec());
        }
        true
    }
}

/// Serves one step of the engine.
struct Desk<'a, N> {
    group: &'a Digest,
    patience: Patience,
    notary: &'a N,
    known: &'a mut BTreeMap<Seal, Vec<u8>>,
    deeds: &'a mut Vec<Deed>,
}

impl<N: Notary> Desk<'_, N> {
    fn serve(
        &mut self,
        effect: Effect<Context>,
    ) -> Result<Resume<Context>, std::convert::Infallible> {
        Ok(match effect {
            Effect::CancelAllTimeouts(r) => {
                self.deeds.push(Deed::StopAll);
                r.resume_with(())
            }
            Effect::CancelTimeout(timeout, r) => {
                if let Some(wait) = wait_of(timeout.kind) {
                    self.deeds.push(Deed::Stop { wait, round: number(timeout.round) });
                }
                r.resume_with(())
            }
            Effect::ScheduleTimeout(timeout, r) => {
                if let Some(wait) = wait_of(timeout.kind) {
                    let after = self.patience.of(timeout);
                    self.deeds.push(Deed::Start { wait, round: number(timeout.round), after });
                }
                r.resume_with(())
            }
            Effect::StartRound(_, _, leader, _, r) => {
                self.deeds.push(Deed::Round { leader });
                r.resume_with(())
            }
            Effect::PublishConsensusMsg(message, r) => {
                let word = match message {
                    SignedConsensusMsg::Vote(vote) => Word::Vote(sealed_vote(vote), false),
                    SignedConsensusMsg::Proposal(bid) => Word::Proposal(sealed_proposal(bid)),
                };
                self.deeds.push(Deed::Say(word));
                r.resume_with(())
            }
            Effect::PublishLivenessMsg(message, r) => {
                let word = match message {
                    LivenessMsg::Vote(vote) => Word::Vote(sealed_vote(vote), true),
                    LivenessMsg::PolkaCertificate(certificate) => {
                        Word::Polka(of_polka(certificate))
                    }
                    LivenessMsg::SkipRoundCertificate(certificate) => {
                        Word::Passage(passage(certificate))
                    }
                };
                self.deeds.push(Deed::Say(word));
                r.resume_with(())
            }
            Effect::RepublishVote(vote, r) => {
                self.deeds.push(Deed::Say(Word::Vote(sealed_vote(vote), true)));
                r.resume_with(())
            }
            Effect::RepublishRoundCertificate(certificate, r) => {
                self.deeds.push(Deed::Say(Word::Passage(passage(certificate))));
                r.resume_with(())
            }
            Effect::GetValue(_, round, _, r) => {
                self.deeds.push(Deed::Want { round: number(round) });
                r.resume_with(())
            }
            // A batch goes with every proposal, and proposals are said again when it matters.
            Effect::RestreamProposal(.., r) => r.resume_with(()),
            // Decisions of others are checked and taken outside of the engine.
            Effect::CertVerifiedSyncValue(.., r) => r.resume_with(()),
            Effect::CertRejectedSyncValue(.., r) => r.resume_with(()),
            Effect::Decide(.., r) => r.resume_with(()),
            Effect::Finalize(certificate, _, found, r) => {
                let mut seals: Vec<_> = certificate
                    .commit_signatures
                    .into_iter()
                    .map(|one| (one.address, one.signature))
                    .collect();
                seals.sort_unstable_by_key(|(seat, _)| *seat);
                let certificate = Certificate {
                    height: certificate.height.0,
                    round: number(certificate.round),
                    step: Step::Precommit,
                    value: certificate.value_id,
                    seals,
                };
                let votes = found.votes.into_iter().flat_map(|(_, pairs)| pairs);
                let votes =
                    votes.map(|(one, other)| Evidence::Votes(sealed_vote(one), sealed_vote(other)));
                let proposals = found.proposals.into_iter().flat_map(|(_, pairs)| pairs);
                let proposals = proposals.map(|(one, other)| {
                    Evidence::Proposals(sealed_proposal(one), sealed_proposal(other))
                });
                let evidence = votes.chain(proposals).collect();
                self.deeds.push(Deed::Decided { certificate, evidence });
                r.resume_with(())
            }
            Effect::SignVote(cast, r) => {
                let seal = self.seal(&cast.vote.sealed_bytes(self.group));
                r.resume_with(SignedMessage::new(cast, seal))
            }
            Effect::SignProposal(bid, r) => {
                let seal = self.seal(&bid.proposal.sealed_bytes(self.group));
                r.resume_with(SignedMessage::new(bid, seal))
            }
            Effect::VerifySignature(signed, key, r) => {
                let bytes = match &signed.message {
                    core::ConsensusMsg::Vote(cast) => cast.vote.sealed_bytes(self.group),
                    core::ConsensusMsg::Proposal(bid) => bid.proposal.sealed_bytes(self.group),
                };
                let is_right = self.is_known(&signed.signature, &bytes)
                    || self.notary.is_sealed(&key, &bytes, &signed.signature);
                r.resume_with(is_right)
            }
            // Made of votes that were checked when they came.
            Effect::VerifyCommitCertificate(.., r) => r.resume_with(Ok(())),
            // Decisions of others do not come this way.
            Effect::VerifyExtendedCommitCertificate(.., r) => {
                r.resume_with(Err(CertificateError::VerificationError(None)))
            }
            Effect::VerifyPolkaCertificate(certificate, seats, _, r) => {
                let certificate = of_polka(certificate);
                let is_valid = certificate.is_valid(self.group, &seats, self.notary);
                r.resume_with(verdict(is_valid))
            }
            Effect::VerifyRoundCertificate(certificate, seats, _, r) => {
                let is_valid = self.is_passage(&passage(certificate), &seats);
                r.resume_with(verdict(is_valid))
            }
            Effect::WalAppend(_, input, r) => {
                if let Some(fact) = fact_of(input) {
                    self.deeds.push(Deed::Log(fact));
                }
                r.resume_with(())
            }
            Effect::ExtendVote(.., r) => r.resume_with(None),
            Effect::VerifyVoteExtension(.., r) => r.resume_with(Ok(())),
        })
    }

    fn seal(&mut self, bytes: &[u8]) -> Seal {
        let seal = self.notary.seal(bytes);
        self.known.insert(seal, bytes.to_vec());
        seal
    }

    /// Whose seal it is follows from the bytes: they name the seat.
    fn is_known(&self, seal: &Seal, bytes: &[u8]) -> bool {
        self.known.get(seal).is_some_and(|known| known == bytes)
    }

    fn is_passage(&self, passage: &Passage, seats: &Seats) -> bool {
        let mut voters = BTreeSet::new();
        let needed = if passage.is_precommit { seats.quorum() } else { seats.witnesses() };
        passage.votes.len() <= Seats::COUNT_MAX
            && passage.sealed_votes().all(|vote| {
                let Sealed { what, seal } = &vote;
                let bytes = what.sealed_bytes(self.group);
                (!passage.is_precommit || what.step == Step::Precommit)
                    && seats.contains(&what.seat)
                    && voters.insert(what.seat)
                    && (self.is_known(seal, &bytes)
                        || self.notary.is_sealed(&what.seat.key, &bytes, seal))
            })
            && voters.len() >= needed
    }
}

#[expect(clippy::result_large_err, reason = "the engine's own type")]
fn verdict(is_valid: bool) -> Result<(), CertificateError<Context>> {
    if is_valid { Ok(()) } else { Err(CertificateError::VerificationError(None)) }
}

fn wait_of(kind: TimeoutKind) -> Option<Wait> {
    match kind {
        TimeoutKind::Propose => Some(Wait::Propose),
        TimeoutKind::Prevote => Some(Wait::Prevote),
        TimeoutKind::Precommit => Some(Wait::Precommit),
        TimeoutKind::Rebroadcast => Some(Wait::Rebroadcast),
        TimeoutKind::FinalizeHeight(_) => None,
    }
}

fn timeout_of(wait: Wait, round: u32) -> Timeout {
    let round = Round::new(round);
    match wait {
        Wait::Propose => Timeout::propose(round),
        Wait::Prevote => Timeout::prevote(round),
        Wait::Precommit => Timeout::precommit(round),
        Wait::Rebroadcast => Timeout::rebroadcast(round),
    }
}

fn input_of(height: Height, fact: Fact) -> Input<Context> {
    match fact {
        Fact::Vote(vote) => Input::Vote(signed_vote(vote)),
        Fact::Proposal(proposal) => Input::Proposal(signed_proposal(proposal)),
        Fact::Polka(certificate) => Input::PolkaCertificate(polka(certificate)),
        Fact::Waited { wait, round } => Input::TimeoutElapsed(timeout_of(wait, round)),
        Fact::Judged { round, valid_round, seat, value, is_fit } => Input::ProposedValue(
            ProposedValue {
                height,
                round: Round::new(round),
                valid_round: Round::from(valid_round),
                proposer: seat,
                value: Value(value),
                validity: Validity::from_bool(is_fit),
            },
            ValueOrigin::Consensus,
        ),
    }
}

/// What of it belongs into the log.
fn fact_of(input: Input<Context>) -> Option<Fact> {
    Some(match input {
        Input::Vote(vote) => Fact::Vote(sealed_vote(vote)),
        Input::Proposal(bid) => Fact::Proposal(sealed_proposal(bid)),
        Input::PolkaCertificate(certificate) => Fact::Polka(of_polka(certificate)),
        Input::TimeoutElapsed(timeout) => {
            Fact::Waited { wait: wait_of(timeout.kind)?, round: number(timeout.round) }
        }
        Input::ProposedValue(value, _) => Fact::Judged {
            round: number(value.round),
            valid_round: value.valid_round.as_u32(),
            seat: value.proposer,
            value: value.value.0,
            is_fit: value.validity.is_valid(),
        },
        _ => return None,
    })
}

fn signed_vote(vote: Sealed<Vote>) -> SignedMessage<Context, Cast> {
    SignedMessage::new(Cast::from(vote.what), vote.seal)
}

fn sealed_vote(vote: SignedMessage<Context, Cast>) -> Sealed<Vote> {
    Sealed { what: vote.message.vote, seal: vote.signature }
}

fn signed_proposal(proposal: Sealed<Proposal>) -> SignedMessage<Context, Bid> {
    SignedMessage::new(Bid::from(proposal.what), proposal.seal)
}

fn sealed_proposal(bid: SignedMessage<Context, Bid>) -> Sealed<Proposal> {
    Sealed { what: bid.message.proposal, seal: bid.signature }
}

fn polka(certificate: Certificate) -> PolkaCertificate<Context> {
    let seals = certificate.seals.into_iter();
    PolkaCertificate {
        height: Height(certificate.height),
        round: Round::new(certificate.round),
        value_id: certificate.value,
        polka_signatures: seals.map(|(seat, seal)| PolkaSignature::new(seat, seal)).collect(),
    }
}

fn of_polka(certificate: PolkaCertificate<Context>) -> Certificate {
    let signatures = certificate.polka_signatures.into_iter();
    let mut seals: Vec<_> = signatures.map(|one| (one.address, one.signature)).collect();
    seals.sort_unstable_by_key(|(seat, _)| *seat);
    Certificate {
        height: certificate.height.0,
        round: number(certificate.round),
        step: Step::Prevote,
        value: certificate.value_id,
        seals,
    }
}

fn passage(certificate: RoundCertificate<Context>) -> Passage {
    use malachitebft_core_types::NilOrVal;
    let signatures = certificate.round_signatures.into_iter();
    let votes = signatures.map(|one| {
        let value = match one.value_id {
            NilOrVal::Nil => None,
            NilOrVal::Val(value) => Some(value),
        };
        (step_of(one.vote_type), value, one.address, one.signature)
    });
    Passage {
        height: certificate.height.0,
        round: number(certificate.round),
        is_precommit: certificate.cert_type == RoundCertificateType::Precommit,
        votes: votes.collect(),
    }
}

fn round_certificate(passage: Passage) -> RoundCertificate<Context> {
    use malachitebft_core_types::NilOrVal;
    let votes = passage.votes.into_iter();
    RoundCertificate {
        height: Height(passage.height),
        round: Round::new(passage.round),
        cert_type: match passage.is_precommit {
            true => RoundCertificateType::Precommit,
            false => RoundCertificateType::Skip,
        },
        round_signatures: votes
            .map(|(step, value, seat, seal)| {
                let kind = match step {
                    Step::Prevote => VoteType::Prevote,
                    Step::Precommit => VoteType::Precommit,
                };
                let value = value.map_or(NilOrVal::Nil, NilOrVal::Val);
                RoundSignature::new(kind, value, seat, seal)
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_height_takes_lifetimes_to_have_as_many_rounds_as_are_kept() {
        let patience = Patience::default();
        let wait = |round| patience.of(Timeout::precommit(Round::new(round)));
        assert_eq!([0, 10, 64].map(wait), [100, 1_100, 5_000].map(Duration::from_millis));
        assert_eq!(wait(80), Duration::from_secs(10));
        let rounds = 0..crate::Settings::default().rounds_max;
        let all: Duration = rounds.map(wait).sum();
        assert!(all > Duration::from_secs(100 * 365 * 86_400), "{all:?}");
    }

    #[test]
    fn what_was_said_last_is_said_again_soon_in_every_round() {
        let patience = Patience::default();
        let wait = |round| patience.of(Timeout::rebroadcast(Round::new(round)));
        assert_eq!([0, 1_000].map(wait), [patience.rebroadcast, patience.most]);
    }
}
