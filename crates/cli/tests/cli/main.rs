//! The real binary from outside: every command, its settings, its refusals, starting and stopping.

#[macro_use]
mod support;

mod audit;
mod backup;
mod bad_input;
mod check;
mod check_report;
mod commands;
mod completions;
mod connections;
mod demo;
mod doctor;
mod examples;
mod guards;
mod lifecycle;
mod listen;
mod merchant;
mod operator;
mod ops;
mod rail;
mod refusals;
mod sandbox;
mod seed;
mod settings;
mod verify;
mod webhook;
mod webhook_secret;
mod webhook_snippets;
