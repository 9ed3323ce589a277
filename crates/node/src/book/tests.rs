//! For whom machines act, and who can change that.

use base::SecretKey;
use overlay::{
    Consent, Invitation, Issuer, IssuerRevocation, Renewal, Revocation, Secret, Terms, UserName,
};

use super::*;

const NOW: u64 = 1_000;
const ALICE: u8 = 40;
const BOB: u8 = 41;

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn authority() -> PublicKey {
    key(1).public()
}

/// Until when issuers may issue.
const ISSUES: u64 = NOW + 400;

fn issuer_of(root: u8) -> Issuer {
    Issuer::by(&key(root), key(root + 100), ISSUES)
}

fn name(text: &str) -> UserName {
    UserName::new(text).unwrap()
}

fn patrons(names: &[&str]) -> Patrons {
    Patrons::These(names.iter().map(|text| name(text)).collect())
}

/// A machine with a certificate by the invitation with this seed, and the users who have agreed.
fn join(invitation: u8, machine: u8, patrons: Patrons, agreed: &[u8]) -> Join {
    let terms = Terms { count: 1, expires: NOW + 60, certificate_expires_max: NOW + 900, patrons };
    let invitation = Invitation::new(&issuer_of(1), &Secret::new([invitation; 16]), terms).unwrap();
    let machine = key(machine);
    let certificate = invitation.certify(&machine, NOW + 900).unwrap();
    let consent = |user: &u8| Consent::new(&key(*user), authority(), machine.public());
    Join::new(certificate, Whereabouts::default(), &machine, NOW)
        .with(agreed.iter().map(consent).collect())
}

fn enrolment(text: &str, seed: u8, uid: u32, groups: &[u32], at: u64) -> Decree {
    let groups = groups.iter().copied().collect();
    let user = Profile { name: name(text), key: key(seed).public(), uid, gid: uid, groups };
    Decree::Enrol(Enrolment::new(&issuer_of(1), user, at).unwrap())
}

fn revocation(seed: u8) -> Decree {
    Decree::Revoke(Revocation::new(&issuer_of(1), key(seed).public(), NOW))
}

/// A cell whose machines act for named users only, with alice and bob.
fn named() -> Book {
    let mut book = Book::default();
    book.admit(&join(2, 20, patrons(&[]), &[]), &authority()).unwrap();
    for decree in [enrolment("alice", ALICE, 7, &[20], 1), enrolment("bob", BOB, 8, &[], 1)] {
        assert_eq!(book.obey(&decree, &authority(), NOW), Ok(Vec::new()));
    }
    book
}

fn users(users: &[(u32, &[u32])]) -> Users {
    Users::These(users.iter().map(|(uid, gids)| (*uid, gids.iter().copied().collect())).collect())
}

#[test]
fn a_machine_acts_for_users_whom_the_authority_names_and_who_agree() {
    let mut book = named();
    let both = patrons(&["alice", "bob"]);
    let mut admit = |join: &Join| book.admit(join, &authority()).map(|(_, users)| users);
    assert_eq!(admit(&join(3, 21, both.clone(), &[])), Ok(users(&[])), "nobody has agreed");
    assert_eq!(admit(&join(3, 21, both.clone(), &[ALICE])), Ok(users(&[(7, &[7, 20])])));
    let all = users(&[(7, &[7, 20]), (8, &[8])]);
    assert_eq!(
        admit(&join(3, 21, both.clone(), &[BOB])),
        Ok(all.clone()),
        "who has agreed stays so"
    );
    assert_eq!(admit(&join(3, 21, both, &[])), Ok(all));
    let agreed = join(4, 22, patrons(&["alice"]), &[ALICE, BOB]);
    assert_eq!(admit(&agreed), Ok(users(&[(7, &[7, 20])])), "the authority has not named bob");
}

#[test]
fn nobody_agrees_for_another_machine_or_in_another_cell() {
    let mut book = named();
    let mut stolen = join(3, 21, patrons(&["alice"]), &[]);
    stolen.consents = join(4, 22, patrons(&["alice"]), &[ALICE]).consents;
    assert_eq!(book.admit(&stolen, &authority()), Err(Refused::ConsentOther));
    let elsewhere = Consent::new(&key(ALICE), key(9).public(), key(21).public());
    let foreign = join(3, 21, patrons(&["alice"]), &[]).with(vec![elsewhere]);
    assert!(matches!(book.admit(&foreign, &authority()), Err(Refused::CellOther { .. })));
    assert_eq!(book.machines().count(), 1);
}

#[test]
fn a_user_that_is_removed_is_served_by_no_machine_and_does_not_come_back() {
    let mut book = named();
    let both = patrons(&["alice", "bob"]);
    let (client, _) = book.admit(&join(3, 21, both.clone(), &[ALICE, BOB]), &authority()).unwrap();
    book.admit(&join(4, 22, patrons(&["bob"]), &[BOB]), &authority()).unwrap();
    let left = Ok(vec![(client, users(&[(8, &[8])]))]);
    assert_eq!(book.obey(&revocation(ALICE), &authority(), NOW), left);
    let again = book.admit(&join(3, 21, both, &[ALICE]), &authority());
    assert_eq!(again, Ok((client, users(&[(8, &[8])]))));
    let removed = Err(Refused::UserRemoved(name("alice")));
    assert_eq!(book.obey(&enrolment("alice", ALICE, 7, &[], 9), &authority(), NOW), removed);
    // Nor does anybody else get what was theirs.
    let taken = Err(Refused::UserTaken(name("alice")));
    assert_eq!(book.obey(&enrolment("mallory", 42, 7, &[], 9), &authority(), NOW), taken);
    let renamed = Err(Refused::NameTaken(name("alice")));
    assert_eq!(book.obey(&enrolment("alice", 42, 9, &[], 9), &authority(), NOW), renamed);
}

#[test]
fn a_change_of_a_users_groups_holds_on_each_machine_that_acts_for_them() {
    let mut book = named();
    let (client, _) =
        book.admit(&join(3, 21, patrons(&["alice"]), &[ALICE]), &authority()).unwrap();
    let changed = enrolment("alice", ALICE, 7, &[30], 2);
    assert_eq!(book.judge(&changed, &authority(), NOW), Ok(true));
    assert_eq!(book.obey(&changed, &authority(), NOW), Ok(vec![(client, users(&[(7, &[7, 30])]))]));
    let old = enrolment("alice", ALICE, 7, &[20], 1);
    assert_eq!(book.judge(&old, &authority(), NOW), Ok(false), "an old word said again");
    assert_eq!(book.obey(&old, &authority(), NOW), Ok(vec![(client, users(&[(7, &[7, 30])]))]));
}

#[test]
fn where_machines_act_for_named_users_none_comes_that_acts_for_any() {
    let mut book = named();
    assert!(book.is_named());
    assert_eq!(book.admit(&join(3, 21, Patrons::Any, &[]), &authority()), Err(Refused::AnyUser));
    let mut open = Book::default();
    open.admit(&join(2, 20, Patrons::Any, &[]), &authority()).unwrap();
    assert!(!open.is_named());
    let guest = join(3, 21, patrons(&["alice"]), &[]);
    assert_eq!(open.admit(&guest, &authority()).map(|(_, users)| users), Ok(users(&[])));
    let friend = join(4, 22, Patrons::Any, &[]);
    assert_eq!(open.admit(&friend, &authority()).map(|(_, users)| users), Ok(Users::Any));
}

#[test]
fn a_machine_that_is_known_does_not_take_what_another_invitation_allows() {
    let mut book = Book::default();
    book.admit(&join(2, 20, Patrons::Any, &[]), &authority()).unwrap();
    book.admit(&join(3, 21, patrons(&[]), &[]), &authority()).unwrap();
    let wider = join(2, 21, Patrons::Any, &[]);
    assert_eq!(book.admit(&wider, &authority()), Err(Refused::InvitationOther));
}

#[test]
fn only_what_was_not_known_is_news() {
    let mut book = named();
    let first = join(3, 21, patrons(&["alice"]), &[]);
    let (client, _) = book.admit(&first, &authority()).unwrap();
    let is_news = |join: &Join| book.is_news(client, join, &authority());
    assert!(!is_news(&first));
    assert!(is_news(&join(3, 21, patrons(&["alice"]), &[ALICE])));
    assert!(!is_news(&join(3, 21, patrons(&["alice"]), &[BOB])), "it may not act for bob");
}

#[test]
fn what_the_authority_has_not_said_is_not_obeyed() {
    let mut book = named();
    let liar = Decree::Revoke(Revocation::new(&issuer_of(9), key(ALICE).public(), NOW));
    assert!(book.obey(&liar, &authority(), NOW).is_err());
    assert!(!book.is_revoked(&key(ALICE).public()));
}

/// The machine with this key, let stay until then by an issuer.
fn renewed(join: &Join, machine: u8, issuer: &Issuer, until: u64, heard: u64) -> Join {
    let renewal = Renewal::new(issuer, key(machine).public(), until);
    let certificate = join.certificate.renewed(renewal);
    Join::new(certificate, Whereabouts::default(), &key(machine), heard)
}

#[test]
fn a_machine_that_a_revoked_issuer_has_let_in_stays_and_no_other_comes() {
    let (mut book, join) = (Book::default(), |seed, by| join(seed, by, patrons(&[]), &[]));
    let (client, _) = book.admit(&join(2, 20), &authority()).unwrap();
    assert_eq!(book.machine(client).unwrap().issuer, issuer_of(1).tenure().issuer);
    let of_issuer = IssuerRevocation::new(&key(1), issuer_of(1).tenure().issuer, NOW);
    let decree = Decree::RevokeIssuer(of_issuer);
    assert_eq!(book.judge(&decree, &authority(), NOW), Ok(true));
    assert_eq!(book.obey(&decree, &authority(), NOW), Ok(Vec::new()));
    assert_eq!(book.judge(&decree, &authority(), NOW), Ok(false));
    let refused = Refused::IssuerRevoked { at: NOW };
    assert_eq!(book.admit(&join(3, 21), &authority()), Err(refused.clone()));
    assert_eq!(book.admit(&join(2, 20), &authority()).map(|(again, _)| again), Ok(client));
    // Nor does it decree anything.
    for decree in [revocation(20), enrolment("carol", 42, 9, &[], 5)] {
        assert_eq!(book.judge(&decree, &authority(), NOW), Err(refused.clone()));
        assert_eq!(book.obey(&decree, &authority(), NOW), Err(refused.clone()));
    }
    // Nor does it let anybody stay for longer, and whoever shows its renewal loses nothing by that.
    let longer = renewed(&join(2, 20), 20, &issuer_of(1), NOW + 9_000, NOW);
    assert!(!book.is_news(client, &longer, &authority()), "it must not cost a decision");
    book.admit(&longer, &authority()).unwrap();
    assert_eq!(book.machine(client).unwrap().expires, NOW + 900);
    let other = Issuer::by(&key(1), key(103), ISSUES);
    let longer = renewed(&join(2, 20), 20, &other, NOW + 9_000, NOW);
    assert!(book.is_news(client, &longer, &authority()));
    book.admit(&longer, &authority()).unwrap();
    assert_eq!(book.machine(client).unwrap().expires, NOW + 9_000);
}

#[test]
fn an_issuer_whose_time_is_over_decrees_and_renews_nothing_and_what_it_has_renewed_lasts() {
    let (mut book, first) = (Book::default(), join(2, 20, patrons(&[]), &[]));
    let (client, _) = book.admit(&first, &authority()).unwrap();
    let longer = renewed(&first, 20, &issuer_of(1), NOW + 9_000, ISSUES - 1);
    book.admit(&longer, &authority()).unwrap();
    let refused = Refused::IssuerExpired { seconds: 0 };
    assert_eq!(book.judge(&revocation(20), &authority(), ISSUES), Err(refused.clone()));
    assert_eq!(book.obey(&revocation(20), &authority(), ISSUES), Err(refused));
    let late = renewed(&first, 20, &issuer_of(1), NOW + 99_000, ISSUES);
    book.admit(&late, &authority()).unwrap();
    assert_eq!(book.machine(client).unwrap().expires, NOW + 9_000);
}

#[test]
fn of_two_words_on_a_share_the_later_counts_and_only_an_issuer_says_one() {
    let mut book = named();
    let share = |root: u8, sharer, bytes, at| {
        Decree::Share(Share::new(&issuer_of(root), sharer, None, bytes, at))
    };
    let set = |book: &mut Book, decree: &Decree| {
        book.obey(decree, &authority(), NOW)?;
        Ok::<_, Refused>(book.share(decree, &authority()))
    };
    let command = |holder, bytes: Option<u64>| {
        let share = bytes.map(|bytes| Quota { files: u64::MAX, bytes });
        Ok(Some(Command::Share { holder, share }))
    };
    let (alice, holder) = (Sharer::User(7), Holder::User(7));
    let narrow = share(1, alice, Some(10), 5);
    assert_eq!(set(&mut book, &narrow), command(holder, Some(10)));
    assert_eq!(set(&mut book, &share(1, alice, Some(99), 4)), Ok(None), "an old word");
    assert_eq!(book.judge(&narrow, &authority(), NOW), Ok(false));
    assert_eq!(set(&mut book, &share(1, alice, None, 6)), command(holder, None));
    assert_eq!(set(&mut book, &narrow), Ok(None), "that somebody says again");
    assert!(set(&mut book, &share(2, alice, Some(1), 9)).is_err(), "of another cell");
    let machine = Sharer::Machine(key(20).public());
    let known = command(Holder::Machine(Client(1)), Some(3));
    assert_eq!(set(&mut book, &share(1, machine, Some(3), 5)), known);
    let nobody = Sharer::Machine(key(77).public());
    let unknown = Err(Refused::MachineUnknown);
    assert_eq!(set(&mut book, &share(1, nobody, Some(3), 5)), unknown);
    let bytes = base::encode(&book);
    assert_eq!(base::decode::<Book>(&bytes, bytes.len()), Ok(book));
}
