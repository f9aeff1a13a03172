//! Options that BACKUP and RESTORE share.

use pellucid_tsql::ast::{MediaFlag, MediaOption};

use super::device::check_block_size;
use super::Done;
use crate::message::Message;
use crate::session::Session;

/// STATS without a number says each tenth.
const STATS_DEFAULT: u64 = 10;

/// What they say.
#[derive(Debug, Clone, Default)]
pub(super) struct MediaOptions {
    pub flags: Vec<MediaFlag>,
    /// STATS
    pub stats: Option<u64>,
    /// MEDIANAME
    pub name: Option<String>,
}

impl Session {
    /// Takes one in.
    pub(super) fn media_option(&mut self, option: &MediaOption, into: &mut MediaOptions) -> Done {
        match option {
            MediaOption::Flag(flag) => into.flags.push(*flag),
            MediaOption::BlockSize(bytes) => check_block_size(self.number(bytes)?)?,
            // Memory is bounded by other means.
            MediaOption::BufferCount(number) | MediaOption::MaxTransferSize(number) => {
                self.number(number)?;
            }
            MediaOption::Stats(every) => {
                into.stats = Some(match every {
                    Some(every) => self.number(every)?,
                    None => STATS_DEFAULT,
                });
            }
            MediaOption::MediaName(text) => into.name = Some(self.text(text)?),
            MediaOption::MediaPassword(_) => {
                return Err(Message::unsupported("MEDIAPASSWORD").into())
            }
            MediaOption::Password(_) => return Err(Message::unsupported("PASSWORD").into()),
            MediaOption::Credential(_) => return Err(Message::unsupported("CREDENTIAL").into()),
        }
        Ok(())
    }
}

/// 3031
pub(super) fn check(flags: &[MediaFlag]) -> Done {
    use MediaFlag as M;
    for (one, other) in [
        (M::Checksum, M::NoChecksum),
        (M::StopOnError, M::ContinueAfterError),
        (M::Rewind, M::NoRewind),
        (M::Unload, M::NoUnload),
    ] {
        if flags.contains(&one) && flags.contains(&other) {
            return Err(Message::option_conflict(&one.to_string(), &other.to_string()).into());
        }
    }
    Ok(())
}
