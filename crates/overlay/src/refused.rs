//! Why a machine is not let in, and what can be done.

use std::fmt;

use base::Malformed;

use crate::{
    cell::Cell,
    code::Code,
    issuer::Power,
    patrons::{Patrons, UserName},
    permit::Permit,
    user::{People, Profile},
};

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is of another cell.
    CellOther {
        /// The cell that it is of.
        found: Cell,
        /// The cell that was asked for.
        wanted: Cell,
    },
    /// The root key has not signed the warrant of the issuer.
    WarrantForged,
    /// The warrant is that of another key.
    WarrantOther,
    /// The warrant does not allow the issuer this.
    PowerMissing(Power),
    /// What the issuer says came too late.
    IssuerExpired {
        /// By how much.
        seconds: u64,
    },
    /// Nothing more is taken from the issuer.
    IssuerRevoked {
        /// Since when, in seconds since 1970.
        at: u64,
    },
    /// The issuer has not signed the permit.
    PermitForged,
    /// The certificate rests on another permit than the one that comes with it.
    PermitOther,
    /// The key of the invitation has not signed the certificate.
    CertificateForged,
    /// Who made the certificate has not shown that they have the machine's key.
    KeyNotShown,
    /// It would last longer than its issuer allows.
    CertificateTooLong,
    /// It was good once.
    CertificateExpired {
        /// How long ago.
        seconds: u64,
    },
    /// The invitation came too late.
    InvitationExpired {
        /// By how much.
        seconds: u64,
    },
    /// Other machines were first.
    InvitationUsed,
    /// A machine that came with it was sent away.
    InvitationEnded,
    /// It would serve no machine, or more than one can.
    CountUnfit,
    /// Too many are used and have not expired.
    InvitationsTooMany,
    /// An issuer has sent the machine away.
    MachineRevoked {
        /// When, in seconds since 1970.
        at: u64,
    },
    /// Who has to has not signed the revocation.
    RevocationForged,
    /// No more can be remembered.
    RevocationsTooMany,
    /// The machine may not stand where it says.
    PositionForged,
    /// More users than a permit can name.
    UsersTooMany,
    /// It would act for any user, in a cell whose machines do not.
    AnyUser,
    /// The machine came with another invitation.
    InvitationOther,
    /// The issuer has not signed who the user is.
    EnrolmentForged,
    /// The issuer has not signed how much somebody may have.
    ShareForged,
    /// No more shares can be remembered.
    SharesTooMany,
    /// No machine of the cell has this key.
    MachineUnknown,
    /// The name is that of a user with another key or number.
    NameTaken(UserName),
    /// This user has the number or the key.
    UserTaken(UserName),
    /// An issuer has removed the user.
    UserRemoved(UserName),
    /// No more users can be remembered.
    PeopleTooMany,
    /// A user is in more groups than may be.
    GroupsTooMany,
    /// The issuer has not signed the renewal.
    RenewalForged,
    /// The renewal is that of another machine.
    RenewalOther,
    /// The user has not signed the consent.
    ConsentForged,
    /// The consent is for another machine.
    ConsentOther,
    /// More addresses than a code can name.
    AddressesTooMany,
    /// The text is no code of ours.
    CodeOther,
    /// A letter is wrong or missing.
    CodeMistyped,
    /// It is of another version of croft.
    CodeVersion {
        /// Which.
        version: u8,
    },
    /// It was typed well and says what no code says.
    CodeMalformed(Malformed),
    /// The key in the code is not the one that the permit is for.
    KeyOther,
    /// The machine, or whoever lets it in, has wanted it too often lately.
    JoinsTooMany,
    /// Who answers shows something else than the code was made for.
    PinOther,
    /// Two codes by one machine.
    CodesAlike,
    /// Two codes of which each leads elsewhere.
    CodesApart,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::CellOther { found, wanted } => write!(
                f,
                "it is of cell {found}, and this is cell {wanted}: ask for an invitation to this cell"
            ),
            Refused::WarrantForged => f.write_str(
                "the cell's root key has not certified the issuer of this: take what an issuer of this cell \
                 has made, and find out where this came from",
            ),
            Refused::WarrantOther => f.write_str(
                "the warrant is that of another issuer's key: take the key and the warrant that `croft \
                 issuer new` has printed together",
            ),
            Refused::PowerMissing(power) => write!(
                f,
                "this issuer may not {power}: have one do it that may, or make one where the root key is, \
                 with `croft issuer new`"
            ),
            Refused::IssuerExpired { seconds } => write!(
                f,
                "the issuer's warrant expired {} ago: make a new issuer where the root key is, with `croft \
                 issuer new`",
                Span(*seconds)
            ),
            Refused::IssuerRevoked { at } => write!(
                f,
                "the issuer was revoked (at {at} seconds since 1970): have another issuer of the cell do it, \
                 and ask where this came from"
            ),
            Refused::ShareForged => f.write_str(
                "the issuer has not signed this share: set it with `croft quota` where an issuer's key is",
            ),
            Refused::SharesTooMany => f.write_str(
                "so many shares are set that no more can be remembered: set one for everybody instead",
            ),
            Refused::MachineUnknown => f.write_str(
                "no machine of the cell has this key: name one that `croft status` shows",
            ),
            Refused::PermitForged => f.write_str(
                "no issuer of the cell has signed this invitation: ask whoever runs the cell for \
                 another, and where this one came from",
            ),
            Refused::PermitOther => f.write_str(
                "the certificate belongs to another permit than the one it comes with: join again with \
                 a new invitation",
            ),
            Refused::CertificateForged => f.write_str(
                "the certificate was not made with the key of its invitation: join again with a new \
                 invitation",
            ),
            Refused::KeyNotShown => f.write_str(
                "the certificate does not show that the machine has its key: join again on the machine \
                 itself",
            ),
            Refused::CertificateTooLong => f.write_str(
                "the certificate would last longer than its invitation allows: ask for one that allows \
                 more, or make it shorter",
            ),
            Refused::CertificateExpired { seconds } => write!(
                f,
                "the certificate expired {} ago: join again with a new invitation, and look at the \
                 clocks if that can't be",
                Span(*seconds)
            ),
            Refused::InvitationExpired { seconds } => write!(
                f,
                "the invitation expired {} ago: ask for a new one, and look at the clocks if that \
                 can't be",
                Span(*seconds)
            ),
            Refused::InvitationUsed => f.write_str(
                "this invitation is used up: ask for a new one, and if nobody else should have had this one, find \
                 out who has",
            ),
            Refused::InvitationEnded => f.write_str(
                "a machine that came with this invitation was sent away, so it serves nobody any more: ask for a \
                 new one",
            ),
            Refused::CountUnfit => write!(
                f,
                "an invitation serves one machine at least, and {} at the most: make several",
                Permit::COUNT_MAX
            ),
            Refused::InvitationsTooMany => f.write_str(
                "too many invitations are used and have not expired: wait until some have, and make \
                 shorter ones",
            ),
            Refused::MachineRevoked { at } => write!(
                f,
                "this machine was sent away (at {at} seconds since 1970): to come back \
                 it needs a new key and a new invitation"
            ),
            Refused::RevocationForged => f.write_str(
                "nobody who may has signed this revocation: make it with an issuer's key, or that of an issuer with \
                 the root key",
            ),
            Refused::RevocationsTooMany => f.write_str(
                "no more revocations can be remembered: invite the machines that stay into a new cell",
            ),
            Refused::PositionForged => f.write_str(
                "the machine does not stand where its certificate lets it: choose among its own positions",
            ),
            Refused::UsersTooMany => write!(
                f,
                "an invitation names at most {} users: name fewer, or let the machine act for any",
                Patrons::COUNT_MAX
            ),
            Refused::AnyUser => f.write_str(
                "in this cell machines act only for users that are named and agree: ask for an \
                 invitation that names them",
            ),
            Refused::InvitationOther => f.write_str(
                "this machine joined with another invitation: to come with this one, join from a new \
                 directory",
            ),
            Refused::EnrolmentForged => f.write_str(
                "no issuer of the cell has signed who this user is: enrol them where an issuer's key is",
            ),
            Refused::NameTaken(name) => write!(
                f,
                "{name} is, or was, a user with another key or number: choose another name"
            ),
            Refused::UserTaken(name) => write!(
                f,
                "this number or key is, or was, that of {name}: choose another, since files may still be theirs"
            ),
            Refused::UserRemoved(name) => write!(
                f,
                "{name} was removed, and stays so: enrol them under another name and number"
            ),
            Refused::PeopleTooMany => write!(
                f,
                "a cell has at most {} users in all its life: no more can be enrolled",
                People::COUNT_MAX
            ),
            Refused::GroupsTooMany => write!(
                f,
                "a user is in at most {} groups besides their own: name fewer of them",
                Profile::GROUPS_MAX
            ),
            Refused::RenewalForged => f.write_str(
                "no issuer of the cell has signed this renewal: ask for one where an issuer's key is",
            ),
            Refused::RenewalOther => f.write_str(
                "the renewal is that of another machine: ask for one on this machine",
            ),
            Refused::ConsentForged => f.write_str(
                "the user has not signed this consent: let them agree anew, with their own key",
            ),
            Refused::ConsentOther => f.write_str(
                "the user has agreed to another machine: let them agree on this one",
            ),
            Refused::AddressesTooMany => write!(
                f,
                "a code names at most {} addresses, two of them of IPv6: choose those that can be reached best",
                Code::ADDRESSES_MAX
            ),
            Refused::CodeOther => f.write_str(
                "this is no invitation: one begins with croft1; copy all that `croft invite` has printed",
            ),
            Refused::CodeMistyped => f.write_str(
                "a letter of the invitation is wrong or missing: copy all that `croft invite` has printed",
            ),
            Refused::CodeVersion { version } => write!(
                f,
                "the invitation is of format {version}, which this croft does not know: use the release \
                 that the cell uses"
            ),
            Refused::CodeMalformed(malformed) => write!(
                f,
                "the invitation was made by something that is not croft ({malformed}): ask whoever runs \
                 the cell for another, and where this one came from"
            ),
            Refused::PinOther => f.write_str(
                "it is not the machine that has made the code, or has put something else in place of its cell: ask \
                 for another code, and find out who answers there",
            ),
            Refused::CodesAlike => f.write_str(
                "both codes are by one machine, so to compare them shows nothing: take the second from another",
            ),
            Refused::CodesApart => f.write_str(
                "the two codes do not lead to the same cell, or to members of whom one proves the other: one of \
                 those who have invited may lie, so ask both, and have both make new codes",
            ),
            Refused::KeyOther => f.write_str(
                "the invitation has another key than its issuer has signed: ask whoever runs the cell \
                 for another, and where this one came from",
            ),
            Refused::JoinsTooMany => f.write_str(
                "this machine, or others that its issuer lets in, have joined too often in a short time: \
                 try again in a minute",
            ),
        }
    }
}

impl std::error::Error for Refused {}

/// A span of time in the largest unit that fits.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = match self.0 {
            0..120 => (self.0, "s"),
            120..7_200 => (self.0 / 60, "min"),
            7_200..172_800 => (self.0 / 3_600, "h"),
            _ => (self.0 / 86_400, "days"),
        };
        write!(f, "{count} {unit}")
    }
}
