//! Paying an order: every row of the simulators' tables, and the rules behind them (rails.md 2–4).

mod attempts;
mod cancelling;
mod expiry;
mod held;
mod mended;
mod phones;
mod references;
mod row;
mod wallet;
mod windows;
