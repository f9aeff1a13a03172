//! Options whose values have names: a wrong one is told together with the right ones (exit 2), and shells complete them.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use pellucid::media::Compression;
use pellucid::Algorithm;
use pellucid_keyring::policy::Policy;

/// Ciphers of databases, in either case.
pub fn algorithm() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name))
        .try_map(|name| name.parse::<Algorithm>())
}

/// Ciphers of backup sets, in either case.
pub fn algorithm_of_sets() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::OF_SETS.map(Algorithm::name))
        .try_map(|name| name.parse::<Algorithm>())
}

/// Policies.
pub fn policy() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(Policy::ALL.map(Policy::name)).try_map(|name| name.parse::<Policy>())
}

/// `zstd`, `zstd:LEVEL`, `lz4` and `none`, with their level.
#[derive(Debug, Clone)]
pub struct CompressionParser;

impl TypedValueParser for CompressionParser {
    type Value = (Compression, i32);

    fn parse_ref(
        &self,
        command: &Command,
        option: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, option, value)?;
        compression(&text).ok_or_else(|| {
            let told = format!(
                "compression `{}` is not known: zstd, zstd:LEVEL with a level from 1 to 22, lz4 or none",
                pellucid::shown::printable(&text)
            );
            command.clone().error(ErrorKind::InvalidValue, told)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(["zstd", "lz4", "none"].map(PossibleValue::new).into_iter()))
    }
}

fn compression(text: &str) -> Option<(Compression, i32)> {
    match text {
        "zstd" => Some((Compression::Zstd, 1)),
        "lz4" => Some((Compression::Lz4, 0)),
        "none" => Some((Compression::None, 0)),
        _ => {
            let level = text.strip_prefix("zstd:")?.parse().ok()?;
            (1..=22).contains(&level).then_some((Compression::Zstd, level))
        }
    }
}
