//! Load generator, baselines and reports. `bench/run` builds and starts it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

mod bare;
mod growth;
mod load;
mod pgbench;
mod process;
mod report;
mod run;
mod start_up;
mod target;

use clap::{Parser, Subcommand, ValueEnum};

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
    /// create and query with ten thousand and with two million orders stored
    Growth(growth::Args),
    /// time until ready and memory when idle
    Start(start_up::Args),
    /// (inside) the bare routes
    #[command(hide = true)]
    Bare,
    /// (inside) the load generator
    #[command(hide = true)]
    Load(load::Args),
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
        Command::Bare => bare::serve().await,
        Command::Load(args) => load::run(args).await,
    }
}
