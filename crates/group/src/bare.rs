//! The engine alone: four of it that hand each other what they say, with the same signatures and without
//! batches, a log or anything else that makes a group. What a group costs is measured against it.

use std::{collections::VecDeque, fmt};

use base::{Domain, PublicKey, SecretKey, Signature};
use malachitebft_core_consensus::{
    self as core, Effect, Input, LivenessMsg, LocallyProposedValue, Params, ProposedValue,
    Resumable as _, Resume, SignedConsensusMsg, State, process,
};
use malachitebft_core_types::{
    self as engine, CertificateError, LinearTimeouts, NilOrVal, Round, SignedExtension,
    SignedMessage, Validity, ValueOrigin, ValuePayload, VoteExtensionPolicy, VoteType,
};

const DOMAIN: Domain = Domain::new("bare engine bench");

#[derive(Clone, Debug, PartialEq, Eq)]
struct Context;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Height(u64);

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl engine::Height for Height {
    const ZERO: Height = Height(0);
    const INITIAL: Height = Height(1);

    fn increment_by(&self, n: u64) -> Height {
        Height(self.0 + n)
    }

    fn decrement_by(&self, n: u64) -> Option<Height> {
        self.0.checked_sub(n).map(Height)
    }

    fn as_u64(&self) -> u64 {
        self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Id(u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Value(Id);

impl engine::Value for Value {
    type Id = Id;

    fn id(&self) -> Id {
        self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Address(u8);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl engine::Address for Address {}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Voter {
    address: Address,
    key: PublicKey,
}

impl engine::Validator<Context> for Voter {
    fn address(&self) -> &Address {
        &self.address
    }

    fn public_key(&self) -> &PublicKey {
        &self.key
    }

    fn voting_power(&self) -> u64 {
        1
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Voters(std::sync::Arc<[Voter]>);

impl engine::ValidatorSet<Context> for Voters {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn total_voting_power(&self) -> u64 {
        self.0.len() as u64
    }

    fn get_by_address(&self, address: &Address) -> Option<&Voter> {
        self.0.get(usize::from(address.0))
    }

    fn get_by_index(&self, index: usize) -> Option<&Voter> {
        self.0.get(index)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Vote {
    height: Height,
    round: Round,
    kind: VoteType,
    value: NilOrVal<Id>,
    by: Address,
}

impl Vote {
    fn bytes(&self) -> Vec<u8> {
        let value = match self.value {
            NilOrVal::Nil => 0,
            NilOrVal::Val(id) => 1 + id.0,
        };
        let kind = u8::from(self.kind == VoteType::Precommit);
        bytes(kind, self.height, self.round, value, self.by)
    }
}

fn bytes(kind: u8, height: Height, round: Round, value: u64, by: Address) -> Vec<u8> {
    base::encode(&(kind, height.0, round.as_i64(), value, by.0))
}

impl engine::Vote<Context> for Vote {
    fn height(&self) -> Height {
        self.height
    }

    fn round(&self) -> Round {
        self.round
    }

    fn value(&self) -> &NilOrVal<Id> {
        &self.value
    }

    fn take_value(self) -> NilOrVal<Id> {
        self.value
    }

    fn vote_type(&self) -> VoteType {
        self.kind
    }

    fn validator_address(&self) -> &Address {
        &self.by
    }

    fn extension(&self) -> Option<&SignedExtension<Context>> {
        None
    }

    fn take_extension(&mut self) -> Option<SignedExtension<Context>> {
        None
    }

    fn extend(self, _: SignedExtension<Context>) -> Vote {
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Proposal {
    height: Height,
    round: Round,
    value: Value,
    valid_round: Round,
    by: Address,
}

impl Proposal {
    fn bytes(&self) -> Vec<u8> {
        bytes(2, self.height, self.round, self.value.0.0, self.by)
    }
}

impl engine::Proposal<Context> for Proposal {
    fn height(&self) -> Height {
        self.height
    }

    fn round(&self) -> Round {
        self.round
    }

    fn value(&self) -> &Value {
        &self.value
    }

    fn take_value(self) -> Value {
        self.value
    }

    fn pol_round(&self) -> Round {
        self.valid_round
    }

    fn validator_address(&self) -> &Address {
        &self.by
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NoPart;

impl engine::ProposalPart<Context> for NoPart {
    fn is_first(&self) -> bool {
        true
    }

    fn is_last(&self) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Scheme;

impl engine::SigningScheme for Scheme {
    type DecodingError = base::Malformed;
    type Signature = Seal;
    type PublicKey = PublicKey;
    type PrivateKey = ();

    fn decode_signature(bytes: &[u8]) -> Result<Seal, base::Malformed> {
        base::decode(bytes, 64).map(Seal)
    }

    fn encode_signature(seal: &Seal) -> Vec<u8> {
        base::encode(&seal.0)
    }

    fn decode_public_key(bytes: &[u8]) -> Result<PublicKey, base::Malformed> {
        base::decode(bytes, 32)
    }

    fn encode_public_key(key: &PublicKey) -> Vec<u8> {
        base::encode(key)
    }
}

/// A signature's bytes: the engine wants to order signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seal([u8; 64]);

impl engine::Context for Context {
    type Address = Address;
    type Height = Height;
    type ProposalPart = NoPart;
    type Proposal = Proposal;
    type Validator = Voter;
    type ValidatorSet = Voters;
    type Timeouts = LinearTimeouts;
    type Value = Value;
    type Vote = Vote;
    type Extension = ();
    type SigningScheme = Scheme;

    fn select_proposer<'a>(&self, voters: &'a Voters, _: Height, round: Round) -> &'a Voter {
        &voters.0[round.as_u32().unwrap_or(0) as usize % voters.0.len()]
    }

    fn new_proposal(
        &self,
        height: Height,
        round: Round,
        value: Value,
        valid_round: Round,
        by: Address,
    ) -> Proposal {
        Proposal { height, round, value, valid_round, by }
    }

    fn new_prevote(&self, height: Height, round: Round, value: NilOrVal<Id>, by: Address) -> Vote {
        Vote { height, round, kind: VoteType::Prevote, value, by }
    }

    fn new_precommit(
        &self,
        height: Height,
        round: Round,
        value: NilOrVal<Id>,
        by: Address,
    ) -> Vote {
        Vote { height, round, kind: VoteType::Precommit, value, by }
    }
}

struct Host {
    address: Address,
    key: SecretKey,
    /// What it has signed itself is not checked when it comes back.
    own: Vec<Seal>,
    said: Vec<SignedConsensusMsg<Context>>,
    is_wanted: bool,
    is_decided: bool,
}

impl Host {
    fn sign(&mut self, bytes: &[u8]) -> Seal {
        let mut seal = Seal([0; 64]);
        seal.0.copy_from_slice(&base::encode(&self.key.sign(DOMAIN, bytes)));
        self.own.push(seal);
        seal
    }

    fn is_signed(&self, key: &PublicKey, bytes: &[u8], seal: &Seal) -> bool {
        self.own.contains(seal)
            || base::decode::<Signature>(&seal.0, 64)
                .is_ok_and(|signature| key.verify(DOMAIN, bytes, &signature).is_ok())
    }

    fn serve(
        &mut self,
        effect: Effect<Context>,
    ) -> Result<Resume<Context>, std::convert::Infallible> {
        Ok(match effect {
            Effect::CancelAllTimeouts(r) => r.resume_with(()),
            Effect::CancelTimeout(_, r) => r.resume_with(()),
            Effect::ScheduleTimeout(_, r) => r.resume_with(()),
            Effect::StartRound(.., r) => r.resume_with(()),
            Effect::PublishConsensusMsg(message, r) => {
                self.said.push(message);
                r.resume_with(())
            }
            Effect::PublishLivenessMsg(LivenessMsg::Vote(_) | _, r) => r.resume_with(()),
            Effect::RepublishVote(_, r) => r.resume_with(()),
            Effect::RepublishRoundCertificate(_, r) => r.resume_with(()),
            Effect::GetValue(.., r) => {
                self.is_wanted = true;
                r.resume_with(())
            }
            Effect::RestreamProposal(.., r) => r.resume_with(()),
            Effect::CertVerifiedSyncValue(.., r) => r.resume_with(()),
            Effect::CertRejectedSyncValue(.., r) => r.resume_with(()),
            Effect::Decide(.., r) => r.resume_with(()),
            Effect::Finalize(.., r) => {
                self.is_decided = true;
                r.resume_with(())
            }
            Effect::SignVote(vote, r) => {
                let seal = self.sign(&vote.bytes());
                r.resume_with(SignedMessage::new(vote, seal))
            }
            Effect::SignProposal(proposal, r) => {
                let seal = self.sign(&proposal.bytes());
                r.resume_with(SignedMessage::new(proposal, seal))
            }
            Effect::VerifySignature(signed, key, r) => {
                let bytes = match &signed.message {
                    core::ConsensusMsg::Vote(vote) => vote.bytes(),
                    core::ConsensusMsg::Proposal(proposal) => proposal.bytes(),
                };
                r.resume_with(self.is_signed(&key, &bytes, &signed.signature))
            }
            Effect::VerifyCommitCertificate(.., r) => r.resume_with(Ok(())),
            Effect::VerifyExtendedCommitCertificate(.., r) => {
                r.resume_with(Err(CertificateError::VerificationError(None)))
            }
            Effect::VerifyPolkaCertificate(.., r) => r.resume_with(Ok(())),
            Effect::VerifyRoundCertificate(.., r) => r.resume_with(Ok(())),
            Effect::WalAppend(.., r) => r.resume_with(()),
            Effect::ExtendVote(.., r) => r.resume_with(None),
            Effect::VerifyVoteExtension(.., r) => r.resume_with(Ok(())),
        })
    }
}

/// Engines that decide together, with nothing of a group around them: a baseline for benchmarks.
pub struct Bare {
    voters: Voters,
    all: Vec<(State<Context>, Host)>,
    height: u64,
}

impl Bare {
    /// So many of them.
    pub fn new(count: u8) -> Bare {
        let keys: Vec<SecretKey> = (0..count).map(|n| SecretKey::from_seed([n; 32])).collect();
        let voter =
            |(n, key): (usize, &SecretKey)| Voter { address: Address(n as u8), key: key.public() };
        let voters = Voters(keys.iter().enumerate().map(voter).collect());
        let hosts = keys.into_iter().enumerate().map(|(n, key)| {
            let address = Address(n as u8);
            let params = Params {
                address,
                threshold_params: Default::default(),
                value_payload: ValuePayload::ProposalAndParts,
                enabled: true,
            };
            let state = State::new(Context, Height(1), voters.clone(), params, 2, 128);
            let (own, said) = Default::default();
            (state, Host { address, key, own, said, is_wanted: false, is_decided: false })
        });
        Bare { voters: voters.clone(), all: hosts.collect(), height: 0 }
    }

    fn feed(&mut self, index: usize, input: Input<Context>) {
        let (state, host) = &mut self.all[index];
        let done: Result<(), core::Error<Context>> =
            process!(input: input, state: state, metrics: &(), with: effect => host.serve(effect));
        done.expect("nothing goes wrong");
    }

    /// Decides one thing: all know it in the end.
    pub fn decide(&mut self) {
        self.height += 1;
        let height = Height(self.height);
        for index in 0..self.all.len() {
            let host = &mut self.all[index].1;
            (host.is_wanted, host.is_decided) = (false, false);
            host.own.clear();
            let policy = VoteExtensionPolicy::Disabled;
            let input = Input::StartHeight(height, self.voters.clone(), false, None, policy);
            self.feed(index, input);
        }
        let value = Value(Id(self.height));
        let leader = self.all.iter().position(|(_, host)| host.is_wanted).expect("one leads");
        let round = Round::new(0);
        self.feed(leader, Input::Propose(LocallyProposedValue::new(height, round, value)));
        let mut mail: VecDeque<(Address, SignedConsensusMsg<Context>)> = VecDeque::new();
        loop {
            for (_, host) in &mut self.all {
                let address = host.address;
                mail.extend(host.said.drain(..).map(|message| (address, message)));
            }
            let Some((from, message)) = mail.pop_front() else { break };
            for to in 0..self.all.len() {
                // What comes after a decision is of no use, as in a group.
                if Address(to as u8) == from || self.all[to].1.is_decided {
                    continue;
                }
                match message.clone() {
                    SignedConsensusMsg::Vote(vote) => self.feed(to, Input::Vote(vote)),
                    SignedConsensusMsg::Proposal(proposal) => {
                        let value = ProposedValue {
                            height,
                            round,
                            valid_round: Round::Nil,
                            proposer: from,
                            value: proposal.message.value,
                            validity: Validity::Valid,
                        };
                        self.feed(to, Input::Proposal(proposal));
                        self.feed(to, Input::ProposedValue(value, ValueOrigin::Consensus));
                    }
                }
            }
        }
        assert!(self.all.iter().all(|(_, host)| host.is_decided), "all have decided");
    }
}
