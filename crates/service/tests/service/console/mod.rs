//! The console over real sockets: who gets in, who sees what, who may do what, and what is kept of it.

mod answers;
mod codes;
mod forms;
mod history;
mod keys;
mod lists;
mod people;
mod repairs;
mod requests;
mod roles;
mod sessions;
mod sign_in;
mod tenancy;
mod world;
