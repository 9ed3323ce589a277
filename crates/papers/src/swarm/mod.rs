//! A network of unequal machines that come and go, in seconds: the simulator of the k-Choices paper (K17, K18).
//!
//! Reading order: `network` is who stands where and remembers whom; `traffic` is queries on their way; `turnover`
//! is who comes and goes; `world` is one second after the other; a `scheme` keeps machines in balance; a `course` is a whole run of one
//! scheme with its figures, a `contest` many of them. `population` and `popularity` say who comes and what is
//! asked for (G3, G4). Positions, ring, fingers, refreshing and k-Choices are `overlay`'s, where they wait for
//! the product to use them; only what they are compared with lives here.
//!
//! To add an experiment: a plan, a file that holds a contest or runs worlds by `crew::all`, and a line in the
//! registry.

pub mod contest;
pub mod course;
pub mod crew;
pub mod network;
pub mod popularity;
pub mod population;
pub mod scheme;
pub mod tally;
pub mod traffic;
pub mod turnover;
pub mod world;

#[cfg(test)]
mod tests;
