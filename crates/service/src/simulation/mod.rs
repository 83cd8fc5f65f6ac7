//! The deeds of a sandbox, for its API and for the console: it plays payer and rail, and moves its clock.

mod act;
mod travel;

pub(crate) use act::{Outcome, act};
pub(crate) use travel::travel;
