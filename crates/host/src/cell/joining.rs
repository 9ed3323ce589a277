//! How a machine joins: it has the one that has made its code hand over what the code pins, and asks those on the roll.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    path::Path,
    sync::Arc,
    time::Duration,
};

use base::PublicKey;
use group::Ed25519;
use overlay::{Code, Invitation};
use wire::{Answer, Join, Lead, Query, Ticket};

use crate::{
    Asker, Failure, Lane, Limits, Network, NetworkSettings, Reception, Welcome,
    discovery::{self, Mdns},
    key,
};

use super::{
    Membership, NEARBY, NEARBY_MAX, PATIENCE, certify, charter, seconds_now, unfit, whereabouts,
};

impl Membership {
    /// Joins the cell that a code invites to; the machine's key comes to be in a directory. A code of another machine
    /// has to lead to the same cell.
    pub(crate) fn join(
        directory: &Path,
        code: &Code,
        other: Option<&Code>,
        listen: SocketAddr,
    ) -> Result<Membership, Failure> {
        let path = directory.join("key");
        // After a join that came to nothing it is there: the invitation may be used up for it.
        if !path.exists() {
            key::make(&path)?;
        }
        let machine = key::read(&path)?;
        let (key, limits) = (machine.clone(), Limits::default());
        let network =
            Network::start(NetworkSettings { key, bind: listen, limits }, Arc::new(Nobody))?;
        let listen = network.address()?;
        let (lead, invitation, inviter) = follow(&network, code, listen)?;
        let (authority, founder) = (*invitation.authority(), lead.pin.founder);
        let (charter, notary) = (charter(&founder, authority), Ed25519::new(machine.clone()));
        let mut roll = lead.pin.roll.after(&lead.changes, &charter, &notary);
        if let Some(other) = other {
            let (second, ..) = follow(&network, other, listen)?;
            let shown = [&lead.changes[..], &second.changes];
            lead.pin.compare(&second.pin, shown, &charter, &notary).map_err(unfit)?;
            let later = second.pin.roll.after(&second.changes, &charter, &notary);
            if later.epoch > roll.epoch {
                roll = later;
            }
        }
        let me = machine.public();
        if founder.key == me || roll.seats.iter().any(|seat| seat.key == me) {
            let what = "the machine that lets this one in says that it has a seat in the group already, so its \
                        key is no new one or that machine lies; make a new directory, and ask another for an \
                        invitation";
            return Err(Failure::Unfit(what.into()));
        }
        let certificate = certify(&invitation, &machine)?;
        let join =
            Join::new(certificate.clone(), whereabouts(Some(listen)), &machine, seconds_now());
        let query = wire::encode(&Query::Join(Box::new(join)));
        let may_answer = |key: &PublicKey| {
            *key == lead.pin.inviter || roll.seats.iter().any(|seat| seat.key == *key)
        };
        let addresses: Vec<SocketAddr> = [inviter].into_iter().chain(lead.members).collect();
        let ticket = first_of(&addresses, |address| {
            let (key, bytes) = network.ask_at(*address, query.clone(), PATIENCE)?;
            match wire::decode::<Answer>(&bytes)? {
                _ if !may_answer(&key) => {
                    let what = "it is no member of the group that the invitation leads to".into();
                    Err(Failure::Peer { who: format!("{key:?}"), what })
                }
                Answer::Joined(ticket) => Ok(ticket),
                answer => Err(refusal(&key, answer)),
            }
        })?;
        let Ticket { client, machines, users } = *ticket;
        Ok(Membership {
            authority,
            founder,
            pin: roll.clone(),
            client,
            certificate,
            consents: Vec::new(),
            users,
            listen: Some(listen),
            roll,
            machines,
        })
    }
}

/// What the machine that has made a code hands over, the invitation in it, and where that machine is.
fn follow(
    network: &Network,
    code: &Code,
    listen: SocketAddr,
) -> Result<(Lead, Invitation, SocketAddr), Failure> {
    let query = wire::encode(&Query::Invited(code.pin));
    let ask = |address: &SocketAddr| {
        let (key, bytes) = network.ask_at(*address, query.clone(), PATIENCE)?;
        match wire::decode::<Answer>(&bytes)? {
            Answer::Invited(lead) => {
                let invitation = lead.pin.accept(code, &key).map_err(unfit)?;
                Ok((*lead, invitation, *address))
            }
            answer => Err(refusal(&key, answer)),
        }
    };
    let found = first_of(code.addresses(), ask);
    if !matches!(found, Err(Failure::Peer { .. })) || listen.ip().is_loopback() {
        return found;
    }
    // It is not there any more; nearby it is known by its key.
    let nearby = discovery::look_around(Mdns::new(listen.ip(), None), NEARBY, NEARBY_MAX);
    match nearby.is_empty() {
        true => found,
        false => first_of(&nearby, ask),
    }
}

/// What the first says who has something to say, else what the last says.
fn first_of<T>(
    addresses: &[SocketAddr],
    ask: impl Fn(&SocketAddr) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut last = Err(Failure::Unfit("the invitation names no address; ask for another".into()));
    for address in addresses {
        last = ask(address);
        if last.is_ok() {
            break;
        }
    }
    last
}

fn refusal(key: &PublicKey, answer: Answer) -> Failure {
    match answer {
        Answer::Refused(why) => Failure::Unfit(why),
        _ => {
            let what = "it answers something else".to_owned();
            Failure::Peer { who: format!("{key:?}"), what }
        }
    }
}

/// The address of this machine from which a code's addresses are reached, with any port.
pub(crate) fn way_to(code: &Code) -> Result<SocketAddr, Failure> {
    let Some(first) = code.addresses().first() else {
        return Err(Failure::Unfit("the invitation names no address; ask for another".into()));
    };
    let local = |to: &SocketAddr| {
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        // Nothing is sent by this: the kernel only looks for the way.
        socket.connect(to).ok()?;
        Some(SocketAddr::new(socket.local_addr().ok()?.ip(), 0))
    };
    code.addresses().iter().find_map(local).ok_or_else(|| {
        let what = format!(
            "no way leads from here to {first}; mend that, or name the address at which other \
             machines reach this one with `--listen ADDRESS`"
        );
        Failure::Unfit(what)
    })
}

/// Lets nobody in: whoever joins does not listen yet.
struct Nobody;

impl Reception for Nobody {
    fn welcome(&self, _: &PublicKey) -> Welcome {
        Welcome::Early
    }

    fn on_frame(&self, _: &PublicKey, _: Lane, _: Vec<u8>) -> Duration {
        Duration::ZERO
    }

    fn on_ask(&self, _: &Asker, _: Vec<u8>, _: &dyn Fn() -> bool) -> Vec<u8> {
        Vec::new()
    }
}
