//! `svc completions` and `svc man`: from the same arguments the program itself reads.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Command;
use clap_complete::Shell;

use crate::output;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc completions bash > ~/.local/share/bash-completion/completions/svc
  svc completions zsh  > ~/.zfunc/_svc
  svc completions fish > ~/.config/fish/completions/svc.fish")]
pub(crate) struct CompletionsArgs {
    /// For this shell
    #[arg(value_parser = clap::builder::EnumValueParser::<Known>::new())]
    shell: Known,
}

/// The shells people here use.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

#[derive(clap::Args)]
#[command(after_help = "Example:\n  svc man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The directory for the pages
    dir: PathBuf,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> anyhow::Result<()> {
    let shell = match args.shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "svc", &mut script);
    output::line(String::from_utf8(script).context("a script is text")?.trim_end());
    Ok(())
}

/// `svc.1`, and one page for every command: `svc-partner-create.1`.
pub(crate) fn man(args: &ManArgs, command: Command) -> anyhow::Result<()> {
    if !args.dir.is_dir() {
        let dir = args.dir.display();
        bail!("there is no directory {dir}: mkdir -p {dir}");
    }
    clap_mangen::generate_to(command, &args.dir)
        .with_context(|| format!("cannot write the pages to {}", args.dir.display()))?;
    let count = std::fs::read_dir(&args.dir)?.count();
    output::note(format_args!("{count} pages are in {}.", args.dir.display()));
    Ok(())
}
