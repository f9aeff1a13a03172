//! `policy`: what the administrator of the instance wants done, or told, and when.

mod told;

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pellucid_engine::inspect::inspect;
use pellucid_keyring::policy::{Due, Policies, Policy};
use pellucid_keyring::Keyring;

pub use told::Told;

use crate::exit;
use crate::keys::OpenWith;
use crate::known::{Known, POLICIES};
use crate::named;
use crate::output::{now, table, Failure, Id, Output};
use crate::rekey::renew;
use crate::scan::ScanOptions;

/// What `policy` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid policy set rekey-after 365d\n  pellucid policy run --dry-run"
)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Show the policies, their values and what each is for
    Show,
    /// Set a policy
    Set(SetArgs),
    /// Reset policies to their defaults; all of them if none is named
    Clear(ClearArgs),
    /// Do what is due: rekey databases, one after the other, and resume scans that no process runs
    Run(RunArgs),
}

#[derive(Debug, Args)]
struct SetArgs {
    /// Policy
    #[arg(value_name = "NAME", value_parser = named::policy())]
    policy: Policy,
    /// Its value: days as in `365d`, a number of writes, `on`, `off`, a format version,
    /// a size as in `4g`, `fail` or `break`
    value: String,
}

#[derive(Debug, Args)]
struct ClearArgs {
    /// Names of the policies
    #[arg(value_name = "NAME", value_parser = named::policy())]
    policies: Vec<Policy>,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Change nothing; say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Limit each scan to so many MB a second
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    throttle: Option<u32>,
    /// Seconds to wait for locks of other connections
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    #[command(flatten)]
    with: OpenWith,
}

/// Does it.
pub fn run(args: &PolicyArgs, output: &Output) -> Result<ExitCode, Failure> {
    let home = Keyring::locate()?;
    match &args.command {
        PolicyCommand::Show => {
            // Where there is no keyring yet, the defaults are what will hold.
            let policies = match Keyring::is_at(&home) {
                true => Keyring::open(&home)?.policies()?,
                false => Policies::default(),
            };
            show(&policies, output);
        }
        PolicyCommand::Set(args) => {
            let policy = args.policy;
            let limit = policy.parse(&args.value)?;
            let keyring = Keyring::open(&home)?;
            keyring.set_policy(policy, Some(limit))?;
            show(&keyring.policies()?, output);
        }
        PolicyCommand::Clear(args) => {
            let mut named = args.policies.iter();
            let keyring = Keyring::open(&home)?;
            match args.policies.is_empty() {
                true => keyring.clear_policies()?,
                false => named.try_for_each(|policy| keyring.set_policy(*policy, None))?,
            }
            show(&keyring.policies()?, output);
        }
        PolicyCommand::Run(args) => return run_due(&home, args, output),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(policies: &Policies, output: &Output) {
    let mut table = table(["policy", "value", "default", "meaning"]);
    let mut facts = Vec::new();
    for policy in Policy::ALL {
        let (limit, default) = (policies.limit(policy), policy.default_limit());
        table.add_row([policy.name(), &limit.to_string(), &default.to_string(), policy.about()]);
        facts.push(serde_json::json!({
            "name": policy.name(), "value": limit.to_string(), "default": default.to_string(),
            "set": policies.is_set(policy),
        }));
    }
    output.line(table);
    output.facts(&serde_json::json!({"policies": facts}));
}

/// What `policy run` does about one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Rekey,
    GoOn,
}

impl Work {
    fn of(due: &Due) -> Option<Self> {
        match due {
            Due::KeyOld { .. } | Due::KeyWorn { .. } => Some(Work::Rekey),
            Due::ScanStands { .. } => Some(Work::GoOn),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Work::Rekey => "rekey",
            Work::GoOn => "scan resume",
        }
    }
}

fn run_due(home: &Path, args: &RunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let known = Known::open(home)?;
    for damage in &known.damage {
        // Whoever has switched something off does not want it done for a damaged file.
        if damage.what == POLICIES {
            let told = format!("{}: {}", damage.what, damage.told);
            return Err(Failure::new(Id::Policies, told, &damage.todo));
        }
        output.warning(format!("{}: {}", damage.what, damage.told));
    }
    args.with.offer()?;
    let (mut done, mut failed) = (0, 0);
    for database in &known.databases {
        // Looked at when its turn comes: somebody may have done it while others took hours.
        let worked = due_of(&known, database).and_then(|due| match due {
            Some((work, told)) => work_on(database, work, &told, args, output).map(|()| 1),
            None => Ok(0),
        });
        match worked {
            Ok(count) => done += count,
            Err(failure) => {
                failed += 1;
                output.failure(&failure.about(database));
            }
        }
    }
    if done == 0 && failed == 0 {
        output.line("nothing is due");
    }
    output.facts(&serde_json::json!({"dry_run": args.dry_run, "due": done, "failed": failed}));
    // What only people can do.
    for told in known.due([], now()).iter().map(Told::new) {
        output.warning(told.line());
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// What is due for a database, and why; none if nothing is.
fn due_of(known: &Known, database: &Path) -> Result<Option<(Work, Told)>, Failure> {
    let found = inspect(database)?;
    let due = known.due([&found], now());
    Ok(due.iter().find_map(|due| Some((Work::of(due)?, Told::new(due)))))
}

fn work_on(
    database: &Path,
    work: Work,
    told: &Told,
    args: &RunArgs,
    output: &Output,
) -> Result<(), Failure> {
    let would = if args.dry_run { "would " } else { "" };
    output.line(format!("{would}{}: {}", work.name(), told.told));
    if args.dry_run {
        output.facts(&serde_json::json!({
            "database": crate::output::name(database), "would": work.name(), "because": told.facts(),
        }));
        return Ok(());
    }
    let options = ScanOptions::here(args.throttle, args.timeout);
    renew(database, work == Work::Rekey, &options, &args.with, output)
}
