//! `svc`: the whole payment service and its tools in one binary.

mod application;
mod arguments;
mod audit;
mod backup;
mod check;
mod completions;
mod demo;
mod doctor;
mod exception;
mod forms;
mod http;
mod keygen;
mod lang;
mod listen;
mod log;
mod merchant;
mod migrate;
mod operator;
mod order;
mod output;
mod partner;
mod rail;
mod reencode;
mod rekey;
mod restore;
mod sandbox;
mod secrets;
mod seed;
mod serve;
mod settings;
mod signed_headers;
mod verify;
mod webhook;
mod webhook_secret;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tracing::Level;

/// A request is a dozen small allocations on one thread, freed on another; this one is made for it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "Examples:
  # a sandbox with credentials and a walk to paste
  svc demo
  # a sandbox on the embedded database
  svc serve --database sqlite:svc.db
  # credentials for a new merchant
  svc partner create \"Loja Kianda\" --json
  # a consistent copy while the service runs
  svc backup copy.db

Settings come from flags, then SVC_SERVER_… variables, then --config FILE.";

#[derive(Parser)]
#[command(name = "svc", version, about = "Payment orders in kwanza: the whole service in one binary", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a sandbox with a ready partner, and print how to use it
    Demo(demo::Args),
    /// Run the service
    Serve(serve::Args),
    /// Create, list, disable and rotate partners
    #[command(subcommand)]
    Partner(partner::Command),
    /// Create and list applications, rotate their webhook secrets
    #[command(subcommand)]
    Application(application::Command),
    /// List, show and replay webhooks
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// List, show and cancel orders; settle payments whose rail keeps silent
    #[command(subcommand)]
    Order(order::Command),
    /// List and resolve money that fits no order
    #[command(subcommand)]
    Exception(exception::Command),
    /// Compare an acquirer's statement with our orders
    #[command(subcommand)]
    Rail(rail::Command),
    /// Manage who may sign in to the console
    #[command(subcommand)]
    Operator(operator::Command),
    /// Check and list the history of who did what
    #[command(subcommand)]
    Audit(audit::Command),
    /// Act as a payer, move the clock, disturb webhooks: with a merchant's variables
    Sandbox(sandbox::Args),
    /// Fill a sandbox with a believable month of orders
    Seed(seed::Args),
    /// Run the reference shop against a service
    Merchant(merchant::Args),
    /// Grade a webhook handler by its effect: exit code 0 passed, 1 failed, 2 could not run
    Check(check::Args),
    /// Forward an application's events to a handler on this machine, as they happen
    Listen(listen::Args),
    /// Explain a webhook's signature: valid, or precisely why not
    Verify(verify::Args),
    /// Create the database or bring it up to date
    Migrate(migrate::Args),
    /// Look at a deployment and say what to mend: exit code 0 fine, 1 wrong, 2 could not look
    Doctor(doctor::Args),
    /// Copy the embedded database while the service runs
    Backup(backup::Args),
    /// Replace the embedded database with a copy made by svc backup
    Restore(restore::Args),
    /// Print a new master key, or a secret for a rail
    Keygen(keygen::Args),
    /// Seal every stored secret with the present master key, so that the one before can go
    Rekey(rekey::Args),
    /// Print a completion script for your shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages
    Man(completions::ManArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let default = match cli.command {
        // What a seeded month is to meet is no news to whoever seeds it.
        Command::Seed(_) => Level::ERROR,
        // Nothing comes between what is printed and whoever copies it.
        Command::Demo(_) => Level::WARN,
        _ => Level::INFO,
    };
    // What 1 says of these, a fault must not say.
    let failed = match cli.command {
        Command::Rail(_) | Command::Audit(_) => output::COULD_NOT_RUN.into(),
        _ => ExitCode::FAILURE,
    };
    let outcome =
        log::start(default).and_then(|()| settings::refuse_unknown_variables()).and_then(|()| {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(run(cli.command))
        });
    match outcome {
        Ok(code) => code,
        Err(fault) => {
            output::error(&fault);
            failed
        }
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let done = match command {
        Command::Check(args) => return Ok(check::run(args).await),
        Command::Doctor(args) => return Ok(doctor::run(args).await),
        Command::Verify(args) => return Ok(verify::run(&args)),
        Command::Rail(command) => return rail::run(command).await,
        Command::Audit(command) => return audit::run(command).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Serve(args) => serve::run(args).await,
        Command::Partner(command) => partner::run(command).await,
        Command::Application(command) => application::run(command).await,
        Command::Webhook(command) => webhook::run(command).await,
        Command::Order(command) => order::run(command).await,
        Command::Exception(command) => exception::run(command).await,
        Command::Operator(command) => operator::run(command).await,
        Command::Listen(args) => listen::run(args).await,
        Command::Sandbox(args) => sandbox::run(args).await,
        Command::Seed(args) => seed::run(args).await,
        Command::Merchant(args) => merchant::run(args).await,
        Command::Migrate(args) => migrate::run(args).await,
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Rekey(args) => rekey::run(args).await,
        Command::Completions(args) => completions::completions(&args, Cli::command()),
        Command::Man(args) => completions::man(&args, Cli::command()),
    };
    done.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clap breaks what is longer, and an example that is broken does something else when it is pasted.
    #[test]
    fn examples_fit_the_narrowest_terminal() {
        fn look_at(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() < 80, "svc {}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(look_at);
        }
        look_at(&Cli::command());
    }
}
