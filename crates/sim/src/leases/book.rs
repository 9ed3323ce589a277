//! A second opinion on what was promised: the grantor's leases, kept from its messages alone.

use std::collections::BTreeMap;

use base::Instant;
use lease::{
    Client, Kind, Scope,
    message::{Down, Downward, Grant, Return, Up, Upward},
};

/// What each client was promised and has not given back.
#[derive(Debug, Default)]
pub(crate) struct Book {
    accounts: BTreeMap<Client, Account>,
}

#[derive(Debug, Default)]
struct Account {
    session: u64,
    is_lost: bool,
    /// Returns that were overtaken do not count.
    return_last: u64,
    /// By scope, and whether it is about the others' booleans: one client may hold both.
    leases: BTreeMap<(Scope, bool), Entry>,
    /// The questions that are answered as a whole, and whether they were.
    questions: BTreeMap<u64, bool>,
}

#[derive(Debug)]
struct Entry {
    kind: Kind,
    serial: u64,
    until: Instant,
    except: Vec<Scope>,
}

impl Book {
    /// Reads what the grantor is about to hear.
    pub(crate) fn hear(&mut self, client: Client, message: &Upward) {
        let account = self.accounts.entry(client).or_default();
        if message.session > account.session {
            *account = Account { session: message.session, ..Account::default() };
        }
        if let Up::Ask { request, wants, together } = &message.body
            && account.is_current(message.session)
            && (*together || wants.len() == 1)
        {
            account.questions.entry(*request).or_default();
        }
        if let Up::Return { number, returns } = &message.body
            && account.is_current(message.session)
            && account.return_last < *number
        {
            account.return_last = *number;
            returns.iter().for_each(|returned| account.give_back(returned));
        }
    }

    /// Reads what the grantor has said. Whether a question was decided again that was answered: it got what it had
    /// given back.
    pub(crate) fn say(&mut self, now: Instant, client: Client, message: &Downward) -> bool {
        let account = self.accounts.entry(client).or_default();
        if message.session != account.session {
            return false;
        }
        let mut is_again = false;
        match &message.body {
            Down::Granted { request, grants } => {
                let was_answered = account.questions.get_mut(request);
                is_again = was_answered.is_some_and(|was| std::mem::replace(was, true))
                    && grants.iter().any(|grant| !account.has(grant));
                for grant in grants {
                    let entry = Entry {
                        kind: grant.kind,
                        serial: grant.serial,
                        until: now + grant.span,
                        except: grant.except.clone(),
                    };
                    let key = (grant.scope.clone(), is_other(grant.kind));
                    // Answers of one moment come in the order of their requests.
                    if account.leases.get(&key).is_none_or(|known| known.serial < entry.serial) {
                        account.leases.insert(key, entry);
                    }
                }
            }
            Down::Lost => {
                account.is_lost = true;
                account.leases.clear();
            }
            Down::Refused { .. } | Down::Recall(_) | Down::Renewed => {}
        }
        is_again
    }

    /// Whether the client's session is this one and goes on.
    pub(crate) fn is_current(&self, client: Client, session: u64) -> bool {
        self.accounts.get(&client).is_some_and(|account| account.is_current(session))
    }

    /// Whether the client has a session that goes on.
    pub(crate) fn is_alive(&self, client: Client) -> bool {
        self.accounts.get(&client).is_some_and(|account| !account.is_lost)
    }

    /// Whether the client may rely on this, by a lease other than the one with this number.
    pub(crate) fn promises(
        &self,
        now: Instant,
        client: Client,
        scope: &Scope,
        kind: Kind,
        but: Option<u64>,
    ) -> bool {
        let Some(account) = self.accounts.get(&client) else { return false };
        account.leases.iter().any(|((around, _), entry)| {
            around.contains(scope)
                && entry.kind.covers(kind)
                && now < entry.until
                && but != Some(entry.serial)
                && !entry.except.iter().any(|except| except.meets(scope))
        })
    }
}

impl Account {
    fn is_current(&self, session: u64) -> bool {
        self.session == session && !self.is_lost
    }

    fn has(&self, grant: &Grant) -> bool {
        self.leases.contains_key(&(grant.scope.clone(), is_other(grant.kind)))
    }

    fn give_back(&mut self, returned: &Return) {
        let key = (returned.lease.clone(), is_other(returned.kind));
        let Some(entry) = self.leases.get_mut(&key) else { return };
        if entry.serial != returned.serial || !returned.lease.contains(&returned.part) {
            return;
        }
        if returned.part != returned.lease {
            entry.except.push(returned.part.clone());
        } else if !returned.kept {
            self.leases.remove(&key);
        } else if entry.kind == Kind::Write {
            // Once; a repeated return changes nothing.
            entry.kind = Kind::Read;
        }
    }
}

fn is_other(kind: Kind) -> bool {
    kind == Kind::OtherRead
}
