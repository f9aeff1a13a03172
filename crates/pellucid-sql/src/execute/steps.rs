//! The sets that a restoring database has had so far, as the registry keeps them: what RECOVERY makes a database of.

use std::path::PathBuf;

use pellucid::hash::hex;
use pellucid::lsn::Lsn;
use pellucid::media::SetHeader;

use crate::values::convert::from_hex;

/// A set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub position: u32,
    /// Its media.
    pub files: Vec<PathBuf>,
    pub is_log: bool,
    /// The recovery fork of its chain; none without one.
    pub fork: Option<[u8; 16]>,
    /// Of a full set or a differential where the logs behind it have to begin, of a log where it does.
    pub first: Lsn,
    /// Up to where the database is with it.
    pub to: Lsn,
    /// When it was begun, in microseconds since 1970.
    pub begun: u64,
    /// When the last commit was that the database has with it.
    pub time: u64,
    /// Whether a point in time within it was asked for.
    pub stops: bool,
}

impl Step {
    /// A full set or a differential.
    pub fn of_database(header: &SetHeader, files: &[PathBuf]) -> Self {
        let place = header.version2.and_then(|own| own.chain);
        Self {
            position: header.position,
            files: files.to_vec(),
            is_log: false,
            fork: place.map(|place| place.fork),
            first: place.map_or(Lsn::NONE, |place| place.first),
            to: place.map_or(Lsn::NONE, |place| place.last),
            begun: header.begun,
            time: header.begun,
            stops: false,
        }
    }
}

/// The sets in their order: a full one, perhaps a differential, logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    /// Those of one set.
    pub fn of(step: Step) -> Self {
        Self(vec![step])
    }

    /// Reads what [`std::fmt::Display`] writes.
    pub fn parse(text: &str) -> Self {
        Self(text.split("\n\n").filter_map(parse).collect())
    }

    /// The full set.
    pub fn full(&self) -> Option<&Step> {
        self.0.first()
    }

    /// The last full set or differential: what the logs are applied to.
    pub fn base(&self) -> Option<&Step> {
        self.0.iter().rev().find(|step| !step.is_log)
    }

    /// The last set.
    pub fn last(&self) -> Option<&Step> {
        self.0.last()
    }

    /// Where the next log has to begin or before.
    pub fn reached(&self) -> Lsn {
        let of = |step: &Step| if step.is_log { step.to } else { step.first };
        self.last().map_or(Lsn::NONE, of)
    }

    /// The sets with a differential behind the full one, in the place of all that came behind that.
    pub fn with_differential(&self, step: Step) -> Self {
        Self(self.0.iter().take(1).cloned().chain([step]).collect())
    }

    /// The sets with a log behind them.
    pub fn with_log(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// The commit behind which the logs lead from the base, if they lead anywhere.
    pub fn target(&self) -> Option<Lsn> {
        let (base, last) = (self.base()?, self.last()?);
        (last.is_log && last.to > base.to).then_some(last.to)
    }

    /// All files, each once.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for file in self.0.iter().flat_map(|step| &step.files) {
            if !files.contains(file) {
                files.push(file.clone());
            }
        }
        files
    }

    /// A file and the position of each set.
    pub fn sets(&self) -> Vec<(PathBuf, u32)> {
        let of = |step: &Step| Some((step.files.first()?.clone(), step.position));
        self.0.iter().filter_map(of).collect()
    }
}

impl std::fmt::Display for Steps {
    /// For each set a line of its facts and one for each file, and an empty line between two sets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            let between = if at > 0 { "\n\n" } else { "" };
            write!(
                f,
                "{between}{} {} {} {} {} {} {} {}",
                step.position,
                if step.is_log { 'L' } else { 'D' },
                step.fork.map_or_else(|| "-".to_owned(), |fork| hex(&fork)),
                step.first,
                step.to,
                step.begun,
                step.time,
                u8::from(step.stops),
            )?;
            for file in &step.files {
                write!(f, "\n{}", file.display())?;
            }
        }
        Ok(())
    }
}

/// A set; of one that an older version wrote down only its position and media are known.
fn parse(block: &str) -> Option<Step> {
    let mut lines = block.lines();
    let mut facts = lines.next()?.split(' ');
    let mut step = Step { position: facts.next()?.parse().ok()?, ..Step::default() };
    step.files = lines.map(PathBuf::from).collect();
    step.is_log = facts.next() == Some("L");
    step.fork = facts.next().and_then(from_hex).and_then(|bytes| bytes.try_into().ok());
    let mut lsn = || facts.next().and_then(Lsn::parse).unwrap_or_default();
    (step.first, step.to) = (lsn(), lsn());
    let mut number = || facts.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    (step.begun, step.time) = (number(), number());
    step.stops = number() == 1;
    Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_reads_back() {
        let full = Step {
            position: 2,
            files: vec!["/a/1.bak".into(), "/a/2 b.bak".into()],
            fork: Some([7; 16]),
            first: Lsn::new(3, 4),
            to: Lsn::new(3, 9),
            begun: 1_700_000_000_000_000,
            time: 1_700_000_000_000_001,
            ..Step::default()
        };
        let log = Step {
            files: vec!["/a/l.trn".into()],
            is_log: true,
            stops: true,
            to: Lsn::new(70_000, 1),
            ..full.clone()
        };
        let steps = Steps::of(full.clone()).with_log(log);
        assert_eq!(Steps::parse(&steps.to_string()), steps);
        assert_eq!(
            (steps.reached(), steps.target()),
            (Lsn::new(70_000, 1), Some(Lsn::new(70_000, 1)))
        );
        let old = Steps::parse("1\n/a/1.bak\n/a/2.bak");
        assert_eq!(old.files(), [PathBuf::from("/a/1.bak"), "/a/2.bak".into()]);
        assert_eq!((old.reached(), old.target()), (Lsn::NONE, None));
        assert_eq!(steps.with_differential(full.clone()), Steps(vec![full.clone(), full]));
    }
}
