//! Options of sqlcmd about the connection to a server and the login there: they are taken and have no effect.

use std::convert::Infallible;
use std::str::FromStr;

use clap::Args;

/// A password. Nothing needs one: it is not even kept.
#[derive(Debug, Clone, Copy)]
pub struct Unkept;

impl FromStr for Unkept {
    type Err = Infallible;

    fn from_str(_: &str) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

/// What they are.
#[derive(Debug, Args)]
pub struct Idle {
    #[arg(short = 'E', long = "use-trusted-connection", alias = "trusted-connection", hide = true)]
    trusted: bool,
    #[arg(short = 'P', long, value_name = "TEXT", hide = true)]
    password: Option<Unkept>,
    /// New password
    #[arg(short = 'z', long, value_name = "TEXT", hide = true)]
    pub change_password: Option<Unkept>,
    /// New password, and nothing else
    #[arg(short = 'Z', long = "change-password-exit", value_name = "TEXT", hide = true)]
    pub change_password_and_exit: Option<Unkept>,
    #[arg(short = 'A', long = "dedicated-admin-connection", hide = true)]
    administrator: bool,
    #[arg(short = 'C', long = "trust-server-certificate", hide = true)]
    trusts_certificate: bool,
    #[arg(short = 'D', long = "dsn", hide = true)]
    source_name: bool,
    #[arg(short = 'g', long = "enable-column-encryption", hide = true)]
    column_encryption: bool,
    #[arg(short = 'G', long = "use-aad", hide = true)]
    directory: bool,
    #[arg(long, value_name = "NAME", hide = true)]
    authentication_method: Option<String>,
    #[arg(short = 'j', long = "raw-errors", hide = true)]
    raw_errors: bool,
    #[arg(short = 'J', long = "server-certificate", value_name = "FILE", hide = true)]
    server_certificate: Option<String>,
    #[arg(long, value_name = "NAME", hide = true)]
    host_name_in_certificate: Option<String>,
    #[arg(long, value_name = "NAME", hide = true)]
    server_name: Option<String>,
    #[arg(
        short = 'K',
        long = "application-intent",
        value_name = "INTENT",
        hide = true,
        ignore_case = true,
        value_parser = ["ReadOnly", "ReadWrite"]
    )]
    intent: Option<String>,
    #[arg(short = 'M', long = "multi-subnet-failover", hide = true)]
    failover: bool,
    #[arg(
        short = 'N',
        long = "encrypt-connection",
        value_name = "HOW",
        hide = true,
        num_args = 0..=1,
        default_missing_value = "mandatory",
        ignore_case = true,
        value_parser = [
            "s", "strict", "m", "mandatory", "o", "optional", "t", "true", "f", "false", "y", "yes", "n", "no", "1", "0",
            "disable"
        ]
    )]
    encrypts: Option<String>,
    #[arg(short = 'R', long = "client-regional-setting", hide = true)]
    regional: bool,
    #[arg(long, value_name = "LEVEL", hide = true)]
    driver_logging_level: Option<u32>,
    #[arg(long, value_name = "FILE", hide = true)]
    trace_file: Option<String>,
}
