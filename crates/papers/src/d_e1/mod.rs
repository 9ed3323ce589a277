//! D-E1: how long tree-structured identifiers get, against identifiers of a fixed size.
//!
//! Source: Douceur and Howell, OSDI 2006, §8.3.1; identifiers are the production `base::FileId`.
//! Reading order: a [`namespace`], where namespaces come from ([`desktop`]; [`contents`], [`debian`]
//! and [`paths`]), what is measured on them ([`length`], [`halving`]), and the run.

mod namespace;

mod desktop;

mod paths;

mod contents;

mod debian;

mod length;

mod halving;

mod run;

pub(crate) use run::run;
