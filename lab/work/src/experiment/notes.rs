//! The observations of a session while it runs.

use pellucid_lab_measure::error::Result;
use pellucid_lab_measure::session::Place;
use pellucid_lab_report::record::Observation;

/// A session that observes.
#[derive(Debug)]
pub struct Notes {
    pub place: Place,
    session: String,
    all: Vec<Observation>,
}

/// Which run it is.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    pub cell: &'a str,
    /// From 1; 0 is the warm-up.
    pub round: usize,
    pub place: usize,
    pub side: &'a str,
}

impl Notes {
    /// Notes of a session that has begun at `place`.
    pub fn new(place: Place, session: String) -> Self {
        Self { place, session, all: Vec::new() }
    }

    /// Writes numbers of a run.
    ///
    /// # Errors
    /// [`pellucid_lab_measure::error::Error::Io`]
    pub fn write<'w>(
        &mut self,
        turn: Turn<'_>,
        numbers: impl IntoIterator<Item = (&'w str, f64)>,
    ) -> Result<()> {
        for (what, value) in numbers {
            let observation = Observation {
                session: self.session.clone(),
                cell: turn.cell.into(),
                round: turn.round,
                place: turn.place,
                side: turn.side.into(),
                what: what.into(),
                value,
            };
            self.place.observe(observation.clone())?;
            self.all.push(observation);
        }
        Ok(())
    }

    /// The values of the rounds that count, in their order.
    pub fn values(&self, cell: &str, side: &str, what: &str) -> Vec<f64> {
        let wanted = |one: &&Observation| {
            one.round > 0 && (&*one.cell, &*one.side, &*one.what) == (cell, side, what)
        };
        self.all.iter().filter(wanted).map(|one| one.value).collect()
    }

    /// Prints the tables, if nobody asked for records instead.
    ///
    /// # Errors
    /// As [`Place::finish`].
    pub fn finish(self) -> Result<()> {
        self.place.finish().map(drop)
    }
}
