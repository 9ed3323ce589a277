//! Places where work can pile up, and how each is kept from overflowing.
//!
//! A place is a constant. The graph that declares it and the code that makes its reservoir use the
//! same constant, and its technique is part of its type, so the two cannot drift apart.

use std::{fmt, marker::PhantomData};

/// How a place is kept from overflowing, as a type.
///
/// Sealed: the techniques are those that the checker knows.
pub trait Technique: sealed::Sealed + 'static {
    /// The same as a value.
    const KIND: Kind;
}

/// How a place is kept from overflowing, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Stops the flows that fill it.
    Throttle,
    /// Lets load go along its normal path before its time.
    Release,
    /// Keeps at most one item for each object of a bounded set.
    ClownCar,
    /// Drops what does not fit; something rectifies that later.
    Shed,
    /// Cannot hold more than a number that follows from how the code is written.
    Bounded,
    /// Has no protection, which is known.
    Unprotected,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Throttle => "throttle",
            Kind::Release => "premature release",
            Kind::ClownCar => "clown car",
            Kind::Shed => "shed",
            Kind::Bounded => "bounded by design",
            Kind::Unprotected => "unprotected",
        })
    }
}

macro_rules! techniques {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Technique for $name {
            const KIND: Kind = Kind::$name;
        }
    )*};
}

techniques! {
    /// The place stops the flows that fill it (L17).
    Throttle
    /// The place lets load go along its normal path before its time (L25).
    Release
    /// The place keeps at most one item for each object of a bounded set (L26).
    ClownCar
    /// The place drops what does not fit, and something rectifies that later (L16).
    Shed
    /// The place cannot hold more than a number that follows from how the code is written.
    Bounded
    /// The place has no protection, and we know it (L61).
    Unprotected
}

mod sealed {
    pub trait Sealed {}
}

/// A place where work can pile up: a constant, named once and used both in the graph and in the code.
///
/// ```
/// use load::{Place, Throttle};
///
/// const UPDATES: Place<Throttle> = Place::new("6B", "update set").of("updates");
/// ```
pub struct Place<T: Technique> {
    label: &'static str,
    name: &'static str,
    unit: &'static str,
    technique: PhantomData<fn() -> T>,
}

impl<T: Technique> Place<T> {
    /// A place with a short label, unique within its graph, and a name for people.
    pub const fn new(label: &'static str, name: &'static str) -> Place<T> {
        assert!(!label.is_empty() && !name.is_empty(), "a place has a label and a name");
        Place { label, name, unit: "items", technique: PhantomData }
    }

    /// The same place, saying what is counted there: `items` unless told.
    pub const fn of(self, unit: &'static str) -> Place<T> {
        Place { unit, ..self }
    }

    /// The short label, such as `6B`.
    pub const fn label(self) -> &'static str {
        self.label
    }

    /// The name, such as `update set`.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// What is counted there, such as `updates`.
    pub const fn unit(self) -> &'static str {
        self.unit
    }

    /// The technique, as a value.
    pub const fn kind(self) -> Kind {
        T::KIND
    }
}

impl<T: Technique> Clone for Place<T> {
    fn clone(&self) -> Place<T> {
        *self
    }
}

impl<T: Technique> Copy for Place<T> {}

impl<T: Technique> fmt::Debug for Place<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.label, self.name, T::KIND)
    }
}

/// What the graph says about a place, handed to the reservoir that stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The place's short label.
    pub label: &'static str,
    /// The place's name.
    pub name: &'static str,
    /// How much may be in the place.
    pub capacity: u64,
    /// The level at which the place stops what fills it (L23); the capacity unless it throttles.
    pub threshold: u64,
}
