//! Being somebody else for a system call, in this thread only.

use rustix::{
    process::{Gid, Uid},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};
use sim::reference::Actor;

use crate::draw;

/// Who the thread acts as. When it goes, the thread is what it was.
pub struct Identity {
    own: Actor,
    present: Actor,
}

impl Identity {
    pub fn new() -> Identity {
        let own = own();
        Identity { present: own.clone(), own }
    }

    /// Everybody that this thread can be.
    pub fn actors(&self) -> Vec<Actor> {
        if self.own.is_super() { draw::actors() } else { vec![self.own.clone()] }
    }

    /// Who it was before it was anybody else; of all actors it has the most rights.
    pub fn own(&self) -> Actor {
        self.own.clone()
    }

    pub fn become_own(&mut self) {
        self.become_actor(&self.own.clone());
    }

    pub fn become_actor(&mut self, actor: &Actor) {
        if self.present == *actor {
            return;
        }
        // The saved user stays the superuser, so that there is a way back.
        let root = (Uid::ROOT, Gid::ROOT);
        set_thread_res_uid(root.0, root.0, root.0).expect("the saved user allows it");
        let groups: Vec<Gid> = actor.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        set_thread_groups(&groups).expect("the superuser may");
        let gid = Gid::from_raw(actor.gid);
        set_thread_res_gid(gid, gid, root.1).expect("the superuser may");
        let uid = Uid::from_raw(actor.uid);
        set_thread_res_uid(uid, uid, root.0).expect("the superuser may");
        self.present = actor.clone();
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.become_own();
    }
}

fn own() -> Actor {
    let groups = rustix::process::getgroups().expect("one's groups are known");
    Actor {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        groups: groups.into_iter().map(Gid::as_raw).collect(),
    }
}
