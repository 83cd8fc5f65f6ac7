//! Load generator, baselines and reports. `bench/run` builds and starts it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

mod bare;
mod console;
mod drill;
mod growth;
mod hiccups;
mod load;
mod merchant;
mod partner;
mod pgbench;
mod plot;
mod post;
mod process;
mod receiver;
mod report;
mod run;
mod start_up;
mod target;
mod webhook;
mod worker;

use clap::{Parser, Subcommand, ValueEnum};

/// As in `svc` itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "svc-bench", about = "Measures svc against a baseline in the same run")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// createPaymentOrder, all ids distinct, against a bare route (and pgbench on PostgreSQL)
    Create(run::Args),
    /// paymentByExternalTransaction against a bare route
    Query(run::Args),
    /// token against a bare route
    Token(run::Args),
    /// create and query with ten thousand to ten million orders stored
    Growth(growth::Args),
    /// time until ready and memory when idle
    Start(start_up::Args),
    /// webhooks from commit to delivery, against the same client posting the same bytes
    Webhook(webhook::Args),
    /// how long the console takes with two million orders stored
    Console(console::Args),
    /// crashes, power cuts, full disks, failovers and the like under load, and a ledger of what was kept
    Drill(drill::Args),
    /// Draw the reports as pictures
    Plot(plot::Args),
    /// (inside) the bare routes
    #[command(hide = true)]
    Bare,
    /// (inside) the load generator
    #[command(hide = true)]
    Load(load::Args),
    /// (inside) a merchant that keeps nothing but figures
    #[command(hide = true)]
    Receiver(receiver::Args),
    /// (inside) the client alone
    #[command(hide = true)]
    Post(post::Args),
    /// (inside) orders, outbox and dispatcher without the API
    #[command(hide = true)]
    Worker(worker::Args),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    Sqlite,
    Postgres,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    Create,
    Query,
    Token,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Create(args) => run::run(Scenario::Create, &args).await,
        Command::Query(args) => run::run(Scenario::Query, &args).await,
        Command::Token(args) => run::run(Scenario::Token, &args).await,
        Command::Growth(args) => growth::run(&args).await,
        Command::Start(args) => start_up::run(&args).await,
        Command::Console(args) => console::run(&args).await,
        Command::Plot(args) => plot::run(&args),
        Command::Bare => bare::serve().await,
        Command::Load(args) => load::run(args).await,
        Command::Drill(args) => drill::run(&args).await,
        Command::Webhook(args) => webhook::run(&args).await,
        Command::Receiver(args) => receiver::serve(&args).await,
        Command::Post(args) => post::run(&args).await,
        Command::Worker(args) => worker::run(args).await,
    }
}
