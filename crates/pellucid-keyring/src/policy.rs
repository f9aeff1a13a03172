//! Policies of an instance: what its administrator wants done, or told, and when.
//!
//! Kept in the keyring ([`crate`]); docs/format.md, "Keyring". Evaluated from facts alone ([`evaluate`]): no
//! file is read here and no clock.

mod due;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use due::{
    evaluate, CertificateFacts, DatabaseFacts, Due, Facts, MasterKeyFacts, SCAN_STANDS_SECONDS,
};

use pellucid::error::{Error, Result, Subject};
use pellucid::header::{FORMAT_VERSION, NEWEST_VERSION};

/// Seconds of a day.
pub const DAY_SECONDS: i64 = 86_400;
/// A hundred years: more is a slip of the pen.
const DAYS_MOST: u32 = 36_525;

/// One policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Policy {
    /// A data encryption key of this age is to be replaced.
    RekeyAfter,
    /// A data encryption key under which so much was written is to be replaced.
    RekeyAfterWrites,
    /// A certificate is called out so long before it expires.
    WarnBeforeExpiry,
    /// The backup of a certificate's private key may be so old.
    CertificateBackupAge,
    /// The backup of a master key may be so old.
    MasterKeyBackupAge,
    /// The last check of a database that found nothing may be so old.
    CheckAge,
    /// Another encrypted database of the instance at a pinned path is an error.
    StrictPaths,
    /// The format version of databases that are born in the instance.
    FormatVersion,
    /// How large a log may grow whose commits cannot go into the archive of its chain of log backups.
    LogLimit,
    /// What becomes of a log that is larger.
    LogFull,
}

impl Policy {
    /// Every policy, in the order they are shown.
    pub const ALL: [Policy; 10] = [
        Policy::RekeyAfter,
        Policy::RekeyAfterWrites,
        Policy::WarnBeforeExpiry,
        Policy::CertificateBackupAge,
        Policy::MasterKeyBackupAge,
        Policy::CheckAge,
        Policy::StrictPaths,
        Policy::FormatVersion,
        Policy::LogLimit,
        Policy::LogFull,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::RekeyAfter => "rekey-after",
            Policy::RekeyAfterWrites => "rekey-after-writes",
            Policy::WarnBeforeExpiry => "warn-before-expiry",
            Policy::CertificateBackupAge => "certificate-backup-age",
            Policy::MasterKeyBackupAge => "master-key-backup-age",
            Policy::CheckAge => "check-age",
            Policy::StrictPaths => "strict-paths",
            Policy::FormatVersion => "format-version",
            Policy::LogLimit => "log-limit",
            Policy::LogFull => "log-full",
        }
    }

    /// What it is for, in a line.
    pub const fn about(self) -> &'static str {
        match self {
            Policy::RekeyAfter => "a data encryption key this old is due for a rekey",
            Policy::RekeyAfterWrites => {
                "a data encryption key that sealed this many pages is due, too"
            }
            Policy::WarnBeforeExpiry => "a certificate is called out this long before it expires",
            Policy::CertificateBackupAge => {
                "a private key's backup that is older, or missing, is called out"
            }
            Policy::MasterKeyBackupAge => {
                "a master key's backup that is older, or missing, is called out"
            }
            Policy::CheckAge => {
                "a database whose last good check is older, or missing, is called out"
            }
            Policy::StrictPaths => {
                "another encrypted database at a path where one was before is an error"
            }
            Policy::FormatVersion => {
                "a new database is of this format version; `upgrade` changes it later"
            }
            Policy::LogLimit => {
                "a log under FULL may grow to this while its archive is not writable"
            }
            Policy::LogFull => "what then comes: commits fail, or the chain of log backups breaks",
        }
    }

    /// What holds where nothing is set.
    ///
    /// Two years are the longest that NIST SP 800-57 part 1 revision 5, 5.3.6, table 1, lets a symmetric key protect
    /// new data. Writes wear no key out: generations move on by themselves. Master keys come back by `cert import` as
    /// long as the certificates' own backups are there.
    pub const fn default_limit(self) -> Limit {
        match self {
            Policy::RekeyAfter => Limit::Days(730),
            Policy::WarnBeforeExpiry => Limit::Days(30),
            Policy::CertificateBackupAge => Limit::Days(90),
            Policy::FormatVersion => Limit::Version(1),
            Policy::LogFull => Limit::Fail,
            Policy::RekeyAfterWrites
            | Policy::MasterKeyBackupAge
            | Policy::CheckAge
            | Policy::StrictPaths
            | Policy::LogLimit => Limit::Off,
        }
    }

    /// Reads a limit of this policy: `365d`, a number of writes, `on`, `off`, a format version, `512m`, `4g`, `fail`, `break`.
    ///
    /// # Errors
    /// [`Error::Misuse`] saying how it is written.
    pub fn parse(self, text: &str) -> Result<Limit> {
        let refused = |how: &'static str| Err(Error::misuse(self.as_subject(), how));
        if self == Policy::FormatVersion {
            return match text.parse() {
                Ok(version) if (1..=NEWEST_VERSION).contains(&version) && text.len() == 1 => {
                    Ok(Limit::Version(version))
                }
                _ => refused("is `1` or `2`"),
            };
        }
        if self == Policy::LogFull {
            return match text {
                "fail" => Ok(Limit::Fail),
                "break" => Ok(Limit::Break),
                _ => refused("is `fail` or `break`"),
            };
        }
        if text == "off" {
            return Ok(Limit::Off);
        }
        if self == Policy::LogLimit {
            let number = |unit: char| text.strip_suffix(unit).and_then(|text| text.parse().ok());
            let mebibytes =
                number('m').or_else(|| number('g').and_then(|g: u32| g.checked_mul(1024)));
            return match mebibytes {
                Some(mebibytes) if mebibytes > 0 => Ok(Limit::Mebibytes(mebibytes)),
                _ => refused("is a size as `512m` or `4g`, or `off`"),
            };
        }
        if self == Policy::StrictPaths {
            return match text {
                "on" => Ok(Limit::On),
                _ => refused("is `on` or `off`"),
            };
        }
        if self == Policy::RekeyAfterWrites {
            return match text.parse() {
                Ok(writes) if writes > 0 => Ok(Limit::Writes(writes)),
                _ => refused("is a number of writes, or `off`"),
            };
        }
        match text.strip_suffix('d').map(str::parse) {
            Some(Ok(days)) if (1..=DAYS_MOST).contains(&days) => Ok(Limit::Days(days)),
            _ => refused("is a number of days from `1d` to `36525d`, or `off`"),
        }
    }

    fn as_subject(self) -> Subject {
        Subject::Option(self.name().into())
    }
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|policy| policy.name()).collect();
            Error::misuse(
                Subject::Option(name.to_owned().into()),
                format!("no such policy; there are {}", names.join(", ")),
            )
        })
    }
}

/// How far a policy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// It says nothing.
    Off,
    /// It holds; it has no degrees.
    On,
    /// So many days.
    Days(u32),
    /// So many writes.
    Writes(u64),
    /// This format version.
    Version(u32),
    /// So many MiB.
    Mebibytes(u32),
    /// Commits fail.
    Fail,
    /// The chain of log backups is broken.
    Break,
}

impl Limit {
    fn days(self) -> Option<u32> {
        match self {
            Limit::Days(days) => Some(days),
            _ => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Off => f.write_str("off"),
            Limit::On => f.write_str("on"),
            Limit::Days(days) => write!(f, "{days}d"),
            Limit::Writes(writes) => write!(f, "{writes}"),
            Limit::Version(version) => write!(f, "{version}"),
            Limit::Mebibytes(mebibytes) => write!(f, "{mebibytes}m"),
            Limit::Fail => f.write_str("fail"),
            Limit::Break => f.write_str("break"),
        }
    }
}

/// The policies of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies(BTreeMap<Policy, Limit>);

impl Policies {
    /// What holds: what was set, or the default.
    pub fn limit(&self, policy: Policy) -> Limit {
        self.0.get(&policy).copied().unwrap_or(policy.default_limit())
    }

    /// The format version of databases that are born.
    pub fn format_version(&self) -> u32 {
        match self.limit(Policy::FormatVersion) {
            Limit::Version(version) => version,
            _ => FORMAT_VERSION,
        }
    }

    /// Whether somebody has set it.
    pub fn is_set(&self, policy: Policy) -> bool {
        self.0.contains_key(&policy)
    }

    /// Sets it.
    pub fn set(&mut self, policy: Policy, limit: Limit) {
        self.0.insert(policy, limit);
    }

    /// Its default holds again.
    pub fn clear(&mut self, policy: Policy) {
        self.0.remove(&policy);
    }

    /// Those that are set.
    pub fn iter(&self) -> impl Iterator<Item = (Policy, Limit)> + '_ {
        self.0.iter().map(|(policy, limit)| (*policy, *limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_found_by_its_name_and_its_limits_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse::<Policy>().unwrap(), policy);
            assert_eq!(
                policy.parse(&policy.default_limit().to_string()).unwrap(),
                policy.default_limit()
            );
        }
        let told = "rekey".parse::<Policy>().unwrap_err().to_string();
        assert!(told.contains("`rekey`") && told.contains("rekey-after, "), "{told}");
    }

    #[test]
    fn a_limit_that_means_nothing_is_refused() {
        for text in ["", "0d", "-1d", "365", "1y", "36526d", "Off", "d", "1 d", "99999999999d"] {
            assert!(Policy::RekeyAfter.parse(text).is_err(), "{text}");
        }
        for text in ["", "0", "-1", "1d", "1e9", "99999999999999999999"] {
            assert!(Policy::RekeyAfterWrites.parse(text).is_err(), "{text}");
        }
        assert_eq!(Policy::RekeyAfterWrites.parse("5000").unwrap(), Limit::Writes(5000));
        for text in ["", "0", "3", "02", "+2", "off", "on", "2d"] {
            assert!(Policy::FormatVersion.parse(text).is_err(), "{text}");
        }
        assert_eq!(Policy::FormatVersion.parse("2").unwrap(), Limit::Version(2));
        for text in ["", "0m", "64", "64k", "-1g", "4194304g", "m", "fail"] {
            assert!(Policy::LogLimit.parse(text).is_err(), "{text}");
        }
        assert_eq!(Policy::LogLimit.parse("4g").unwrap(), Limit::Mebibytes(4096));
        for text in ["", "off", "on", "Fail"] {
            assert!(Policy::LogFull.parse(text).is_err(), "{text}");
        }
        assert_eq!(Policy::LogFull.parse("break").unwrap(), Limit::Break);
        assert_eq!(Policy::WarnBeforeExpiry.parse("36525d").unwrap(), Limit::Days(36525));
    }
}
