//! A machine with a good certificate and no vote that sends all that it can, of everything or mostly of one thing.

use std::rc::Rc;

use base::{Duration, FileId, Instant, Rng};
use directory::message::{Ask, Needs};
use group::Message as Words;
use lease::Client;
use wire::{About, Message};

use super::{
    machine::{Letter, wish},
    run::{MEMBERS, Out, Site},
    tamper::Tamper,
};
use crate::Node;

pub(crate) struct Flooder {
    site: Rc<Site>,
    node: Node,
    /// How it floods: what it says most.
    bent: usize,
    gap: Duration,
    next_at: Instant,
    number: u64,
    rng: Rng,
}

/// What it can say.
const KINDS: usize = 7;
/// So many letters at a time go to all.
const VOLLEY: usize = 8;

impl Flooder {
    pub(crate) fn new(site: Rc<Site>, node: Node, start: Instant, mut rng: Rng) -> Flooder {
        let bent = rng.index(2 * KINDS).min(KINDS);
        let gap = Duration::from_millis(*rng.pick(&[2, 4]));
        Flooder { site, node, bent, gap, next_at: start, number: 0, rng }
    }

    /// Whether it sends mostly one kind of thing.
    pub(crate) fn is_bent(&self) -> bool {
        self.bent < KINDS
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        Some(self.next_at)
    }

    pub(crate) fn wake<T: Tamper>(&mut self, now: Instant, out: &mut Out<T>) {
        self.next_at = now + self.gap;
        for _ in 0..VOLLEY {
            let kind = match self.is_bent() && self.rng.chance(0.8) {
                true => self.bent,
                false => self.rng.index(KINDS),
            };
            let letter = self.letter(kind);
            for to in (0..MEMBERS).map(Node) {
                out.send(to, letter.clone());
            }
        }
    }

    fn letter(&mut self, kind: usize) -> Letter {
        self.number += 1;
        let bytes = match kind {
            0 => self.noise(),
            1 => {
                let height = self.rng.below(9);
                self.words(Words::Behind { height, epoch: 1 })
            }
            2 => {
                let height = 64 * self.rng.below(9);
                self.words(Words::Fetch { height, from: 0 })
            }
            3 => self.wish(0),
            4 => self.wish(8_000),
            5 => self.words(Words::Hello { nonce: self.number }),
            _ => return Letter::Join(Rc::clone(&self.site.joins[self.node.index()])),
        };
        Letter::Frame(bytes.into())
    }

    /// A long frame that begins like one for a member.
    fn noise(&mut self) -> Vec<u8> {
        let mut bytes = vec![0xff; 1 << (4 + self.rng.index(15))];
        let hello = self.words(Words::Hello { nonce: 0 });
        // All but what it says.
        let begun = &hello[..hello.len() - 9];
        let count = begun.len().min(bytes.len());
        bytes[..count].copy_from_slice(&begun[..count]);
        bytes
    }

    fn words(&self, words: Words) -> Vec<u8> {
        About { group: self.site.group, epoch: 0 }.encode(Message::Member(Box::new(words)))
    }

    /// Something new to decide, with so many bytes at least.
    fn wish(&mut self, bytes: usize) -> Vec<u8> {
        let key = self.site.seat(self.node).key;
        let client = Client(u32::from(self.node.0) + 1);
        let release = vec![FileId::ROOT; bytes];
        let ask = (bytes > 0).then_some(Ask::Provide {
            request: self.number,
            needs: Needs { release, ..Needs::default() },
        });
        wish(&self.site.group, key, client, Instant::from_nanos(self.number), ask)
    }
}
