//! `--help`: the program's commands in groups, by what somebody wants to do, and so the options of each command.

use clap::builder::StyledStr;
use clap::Command;

/// The heading of the options that each command has.
pub const GLOBAL: &str = "Options of every command";

/// Every command, in the order in which it is shown.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Databases",
        &[
            "encrypt", "decrypt", "run", "status", "check", "rekey", "rewrap", "scan", "accept",
            "salvage", "upgrade", "index", "recovery",
        ],
    ),
    (
        "Backups",
        &[
            "backup", "archive", "standby", "restore", "verify", "header", "files", "label",
            "history",
        ],
    ),
    ("Keys", &["init", "cert", "key", "plugin", "broker", "protector", "instance"]),
    ("Watching over it", &["doctor", "policy", "events"]),
    ("Statements, and other ways in", &["sql", "agent", "extension", "demo", "lab", "help"]),
];

/// Options under a heading of their own, in every command that has them.
const HEADINGS: [(&str, &[&str]); 4] = [
    (
        "Keys",
        &[
            "certificate",
            "key_file",
            "passphrase_file",
            "recovery",
            "no_encryption",
            "decrypted",
            "algorithm",
        ],
    ),
    (
        "Media",
        &[
            "append",
            "overwrite",
            "format",
            "skip",
            "expires",
            "retain_days",
            "name",
            "description",
            "media_name",
            "media_description",
            "position",
            "allow_clear",
            "allow_plain_differential",
        ],
    ),
    ("Kind of backup", &["differential", "base", "copy_only", "page", "unproven"]),
    (
        "While it runs",
        &[
            "every",
            "once",
            "merge_every",
            "full_every",
            "keep",
            "timeout",
            "workers",
            "cores",
            "background",
            "exclusive",
            "throttle",
            "hold",
            "load",
            "no_spool",
            "continue_after_error",
        ],
    ),
];

/// A command with fewer options is read at a glance.
const OPTIONS_AT_A_GLANCE: usize = 6;

/// A command and those within it, with their options under headings.
fn with_headings(command: Command) -> Command {
    let options = command.get_opts().filter(|option| !option.is_global_set()).count();
    let command = match options > OPTIONS_AT_A_GLANCE && command.get_name() != "sql" {
        true => command.mut_args(|option| {
            let of = |(_, ids): &&(&str, &[&str])| ids.contains(&option.get_id().as_str());
            match HEADINGS.iter().find(of).filter(|_| !option.is_positional()) {
                Some((heading, _)) => option.help_heading(*heading),
                None => option,
            }
        }),
        false => command,
    };
    command.mut_subcommands(with_headings)
}

/// The program's command line, with its help in groups.
pub fn in_groups(command: Command) -> Command {
    // `help` is added when the command is built, which the caller's is not yet.
    let mut built = command.clone();
    built.build();
    let style = *built.get_styles().get_header();
    let literal = *built.get_styles().get_literal();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let heading = |text: &str| format!("\n{style}{text}:{style:#}\n");
    for (group, names) in GROUPS {
        template.push_str(&heading(group));
        for name in names {
            let Some(found) = built.find_subcommand(name) else { continue };
            let about = found.get_about().map(StyledStr::to_string).unwrap_or_default();
            let aliases: Vec<_> = found.get_visible_aliases().collect();
            let aliases = match aliases.is_empty() {
                true => String::new(),
                false => format!(" [alias: {}]", aliases.join(", ")),
            };
            template.push_str(&format!("  {literal}{name:<10}{literal:#} {about}{aliases}\n"));
        }
    }
    template.push_str(&heading(GLOBAL));
    template.push_str("{options}{after-help}");
    with_headings(command).help_template(template)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = crate::Cli::command();
        command.build();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let there: BTreeSet<_> = shown.map(|command| command.get_name().to_owned()).collect();
        let grouped: Vec<_> =
            GROUPS.iter().flat_map(|(_, names)| *names).map(ToString::to_string).collect();
        assert_eq!(grouped.len(), there.len());
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), there);
    }

    #[test]
    fn each_option_under_a_heading_is_there() {
        let mut command = crate::Cli::command();
        command.build();
        let ids: BTreeSet<_> = command
            .get_subcommands()
            .flat_map(|command| command.get_arguments().map(|option| option.get_id().to_string()))
            .collect();
        for id in HEADINGS.iter().flat_map(|(_, ids)| *ids) {
            assert!(ids.contains(*id), "{id}");
        }
        let mut command = in_groups(crate::Cli::command());
        let backup = command.find_subcommand_mut("backup").unwrap().render_help().to_string();
        assert!(backup.contains("\nMedia:\n"), "{backup}");
    }

    #[test]
    fn no_command_is_wider_than_a_terminal_of_80_columns() {
        let help = in_groups(crate::Cli::command()).render_help().to_string();
        assert!(help.contains("\nBackups:\n  backup     Back up a database"), "{help}");
        // The rest is wrapped to the width of the terminal.
        let (groups, _) = help.split_once(GLOBAL).unwrap();
        assert!(groups.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
