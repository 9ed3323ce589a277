//! A cell as a machine's status tells of it, in words.

use serde_json::Value;

/// With so many members one of them may be lost or lie.
pub const MEMBERS: u64 = 4;

/// A certificate that lasts no longer than this ends soon. Machines ask for renewal from a year and a half before.
const SOON_DAYS: u64 = 180;

/// A cell as one of its machines sees it.
pub struct Cell {
    /// The first to come first.
    pub machines: Vec<Machine>,
    /// How many members the group has.
    pub members: u64,
    /// How many of them decide.
    quorum: u64,
    /// How many machines there are, also if not all are told of.
    pub count: u64,
    /// Whether this machine listens.
    pub is_listening: bool,
}

/// A machine of the cell.
pub struct Machine {
    /// Hexadecimal digits.
    pub key: String,
    addresses: String,
    is_this: bool,
    /// Whether it has a vote.
    pub is_member: bool,
    is_learner: bool,
    is_leader: bool,
    is_connected: bool,
    /// Whether it does not answer.
    pub is_away: bool,
    /// How often it is proven that it has lied.
    pub lies: u64,
    /// Whom it acts for, if that is known.
    pub acts_for: Option<Vec<String>>,
    /// When its certificate expires, in seconds since 1970, if that is known.
    expires: Option<u64>,
}

/// Enough of a key to tell machines apart.
pub fn short(key: &str) -> &str {
    key.get(..8).unwrap_or(key)
}

/// A decision in words. Those after a recovery are counted anew.
pub fn decision(height: &Value) -> String {
    match host::since_recovery(height.as_u64().unwrap_or(0)) {
        (0, height) => format!("decision {height}"),
        (number, height) => format!("decision {height} after recovery {number}"),
    }
}

impl Cell {
    /// What a status says of it.
    pub fn of(status: &Value) -> Cell {
        let group = &status["group"];
        let machines = status["machines"].as_array().into_iter().flatten();
        let machines: Vec<Machine> = machines.map(Machine::of).collect();
        let members = group["members"].as_u64().unwrap_or(1);
        Cell {
            members,
            quorum: group["quorum"].as_u64().unwrap_or(1),
            count: group["machines"].as_u64().unwrap_or(1).max(machines.len() as u64),
            is_listening: !group["address"].is_null(),
            machines,
        }
    }

    /// Whether this machine is a member.
    pub fn has_vote(&self) -> bool {
        self.machines.iter().any(|machine| machine.is_this && machine.is_member)
    }

    /// How many machines there are, and how many of them do not answer.
    pub fn summary(&self) -> String {
        let away = self.machines.iter().filter(|machine| machine.is_away).count();
        match (self.count, away) {
            (1, _) => "1 machine".into(),
            (count, 0) => format!("{count} machines"),
            (count, 1) => format!("{count} machines, of which 1 does not answer"),
            (count, away) => format!("{count} machines, of which {away} do not answer"),
        }
    }

    /// What the group can bear.
    pub fn group(&self) -> String {
        if self.members >= MEMBERS {
            let (members, lost) = (self.members, (self.members - 1) / 3);
            return format!("of {members} members: any {lost} may be away, be lost or lie");
        }
        let voter = self.machines.iter().find(|machine| machine.is_member);
        match voter {
            _ if self.members > 1 => {
                format!("of {} members, none of which may be away", self.members)
            }
            Some(voter) if !voter.is_this => format!(
                "of one member, {}: while it is away nothing can be changed, and if it is lost for good, so \
                 is the tree",
                short(&voter.key)
            ),
            _ => "of one member, this machine: if it is lost for good, so is the tree".into(),
        }
    }

    /// Why nothing can be decided, if that is so.
    pub fn stalled(&self) -> Option<String> {
        let away = self.machines.iter().filter(|machine| machine.is_member && machine.is_away);
        let there = self.members.saturating_sub(away.count() as u64);
        (there < self.quorum).then(|| {
            format!(
                "only {there} of {} members answer, and {} have to: nothing can be changed until then",
                self.members, self.quorum
            )
        })
    }
}

impl Machine {
    fn of(value: &Value) -> Machine {
        let is = |name: &str| value[name] == true;
        let addresses = value["addresses"].as_array().into_iter().flatten();
        let addresses: Vec<&str> = addresses.filter_map(Value::as_str).collect();
        Machine {
            key: value["key"].as_str().unwrap_or_default().to_owned(),
            addresses: addresses.join(" "),
            is_this: is("is_this"),
            is_member: is("is_member"),
            is_learner: is("is_learner"),
            is_leader: is("is_leader"),
            is_connected: is("is_connected"),
            is_away: is("is_away"),
            lies: value["lies"].as_u64().unwrap_or(0),
            expires: value["expires"].as_u64(),
            acts_for: value["acts_for"]
                .as_array()
                .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        }
    }

    /// In how many days its certificate ends, at this moment in seconds since 1970, if that is so soon that it should
    /// have been renewed long ago.
    pub fn ends_in(&self, now: u64) -> Option<u64> {
        let days = self.expires?.saturating_sub(now) / 86_400;
        Some(days).filter(|days| *days < SOON_DAYS)
    }

    /// Whether it acts for any user.
    pub fn is_for_any(&self) -> bool {
        self.acts_for.as_ref().is_some_and(|names| names.iter().any(|name| name == "any"))
    }

    /// For whom it acts, in a few words.
    pub fn users(&self) -> String {
        match &self.acts_for {
            None => String::new(),
            Some(_) if self.is_for_any() => ", for any user".into(),
            Some(names) if names.is_empty() => ", for nobody".into(),
            Some(names) => format!(", for {}", names.join(" and ")),
        }
    }

    /// It in a few words.
    pub fn line(&self) -> String {
        let addresses = if self.addresses.is_empty() { "nowhere" } else { &self.addresses };
        let part = match (self.is_member, self.is_learner) {
            (true, _) if self.is_leader => "leads",
            (true, _) => "member",
            (_, true) => "is to be a member",
            _ => "no member",
        };
        let there = match (self.is_this, self.is_connected, self.is_away) {
            (true, ..) => "this machine",
            (_, true, _) => "connected",
            (_, _, true) => "does not answer",
            _ => "not connected",
        };
        format!("{}  {addresses:<22}{part}, {there}", short(&self.key))
    }

    /// Its key and where it is.
    pub fn name(&self) -> String {
        let at = if self.addresses.is_empty() { "" } else { " at " };
        format!("{}{at}{}", short(&self.key), self.addresses)
    }
}
