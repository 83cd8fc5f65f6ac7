//! The console over real sockets: who gets in, who sees what, who may do what, and what is kept of it.

mod roles;
mod tenancy;
mod world;
