//! `plugin`: the programs that ask for keys elsewhere.

mod conformance;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use pellucid::shown::Shown;
use pellucid_plugin::{directories, found, Plugin};

use crate::output::{table, Failure, Output};

/// What `plugin` does.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid plugin list\n  pellucid plugin test pkcs11 --key \
                  'pkcs11:token=T;object=smk'")]
pub struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
    /// List the plugins that are there, and what each can do
    List,
    /// Try everything that a plugin can do with a key; makes and changes no key
    Test(TestArgs),
}

#[derive(Debug, Args)]
struct TestArgs {
    /// The plugin's name: `pellucid plugin list`
    name: String,
    /// Which key, as the plugin names keys; no PIN belongs into it
    #[arg(long, value_name = "KEY")]
    key: String,
}

/// Does it.
pub fn run(args: &PluginArgs, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        PluginCommand::List => list(output),
        PluginCommand::Test(args) => {
            conformance::run(&Plugin::find(&args.name)?, &args.key, output)
        }
    }
}

fn list(output: &Output) -> Result<ExitCode, Failure> {
    let mut rows = table(["plugin", "version", "can", "program"]);
    let mut facts = Vec::new();
    for (name, file) in found() {
        let described = file.and_then(|_| Plugin::find(&name)).and_then(|plugin| {
            let described = plugin.describe()?;
            Ok((plugin, described))
        });
        match described {
            Ok((plugin, described)) => {
                let can: Vec<_> = described.can.iter().map(|one| one.name()).collect();
                let program = plugin.file().shown().to_string();
                facts.push(serde_json::json!({
                    "plugin": name, "description": described.name, "version": described.version,
                    "can": can, "program": crate::output::name(plugin.file()), "trouble": null,
                }));
                rows.add_row([name, described.version, can.join(" "), program]);
            }
            Err(error) => {
                facts.push(serde_json::json!({
                    "plugin": name, "description": null, "version": null, "can": [],
                    "program": null, "trouble": error.to_string(),
                }));
                rows.add_row([name, "!!".to_owned(), error.to_string(), String::new()]);
            }
        }
    }
    match facts.is_empty() {
        true => {
            let places = directories();
            let places: Vec<_> = places.iter().map(|path| path.shown().to_string()).collect();
            output.line(format!("no plugins in {}", places.join(", ")));
        }
        false => output.line(rows),
    }
    output.facts(&serde_json::json!({"plugins": facts}));
    Ok(ExitCode::SUCCESS)
}
