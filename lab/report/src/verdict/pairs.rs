//! What the observations of an experiment say about the goals for it: one number of one side, beside another's or alone.

use serde::Serialize;

use super::Judgement;
use crate::goals::PairGoal;
use crate::record::{Observation, Session};
use crate::statistics::{Interval, LogMean};

/// What became of one goal in one cell of one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairVerdict {
    pub session: String,
    pub cell: String,
    pub side: String,
    pub base: Option<String>,
    pub what: String,
    /// Of the ratios, or the largest value as its own interval; none if there are too few.
    pub found: Option<Interval>,
    pub at_most: f64,
    pub judgement: Judgement,
}

impl PairVerdict {
    /// A verdict for each goal that is about a side of the session, in each cell of which there is anything, whether or not the
    /// runs of that side are there.
    pub fn of(sessions: &[Session], observations: &[Observation], goals: &[PairGoal]) -> Vec<Self> {
        let mut verdicts = Vec::new();
        for session in sessions {
            let ours: Vec<&Observation> =
                observations.iter().filter(|one| one.session == session.session).collect();
            let mut cells: Vec<&str> = Vec::new();
            for one in &ours {
                if !cells.contains(&one.cell.as_str()) {
                    cells.push(&one.cell);
                }
            }
            for cell in cells {
                let of_cell: Vec<&Observation> =
                    ours.iter().copied().filter(|one| one.cell == cell && one.round > 0).collect();
                let goals = goals.iter().filter(|goal| goal.is_about(session));
                verdicts.extend(goals.map(|goal| {
                    let found = goal.found(&of_cell);
                    Self {
                        session: session.session.clone(),
                        cell: cell.into(),
                        side: goal.side.clone(),
                        base: goal.base.clone(),
                        what: goal.what.clone(),
                        found,
                        at_most: goal.at_most,
                        judgement: found
                            .map_or(Judgement::NotResolved, |found| at_most(&found, goal.at_most)),
                    }
                }));
            }
        }
        verdicts
    }
}

impl PairGoal {
    fn is_about(&self, session: &Session) -> bool {
        self.scenario == session.scenario && session.sides.iter().any(|one| one.side == self.side)
    }

    fn found(&self, observations: &[&Observation]) -> Option<Interval> {
        let values = |side: &str| -> Vec<(usize, f64)> {
            let ours = observations.iter().filter(|one| one.side == side && one.what == self.what);
            ours.map(|one| (one.round, one.value)).collect()
        };
        let side = values(&self.side);
        let Some(base) = &self.base else {
            let most = side.iter().map(|(_, value)| *value).reduce(f64::max)?;
            return Some(Interval { mean: most, low: most, high: most, confidence: 1.0 });
        };
        let base = values(base);
        let ratios: Vec<f64> = side
            .iter()
            .filter_map(|(round, value)| {
                let (_, below) = base.iter().find(|(other, _)| other == round)?;
                Some(value / below)
            })
            .collect();
        LogMean::of(&ratios).map(|mean| mean.interval(1))
    }
}

/// Passed if the whole interval is within, below if none of it is.
fn at_most(found: &Interval, goal: f64) -> Judgement {
    if found.high <= goal {
        Judgement::Passed
    } else if found.low > goal {
        Judgement::Below
    } else {
        Judgement::NotResolved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{session, side};

    fn observation(round: usize, side: &str, value: f64) -> Observation {
        Observation {
            session: "1".into(),
            cell: "cell".into(),
            round,
            place: 0,
            side: side.into(),
            what: "elapsed_s".into(),
            value,
        }
    }

    fn ours_at_most(at_most: f64, base: Option<&str>) -> (Session, PairGoal) {
        let mut session = session("1", Some("tree"));
        session.scenario = "experiment".into();
        session.sides = vec![side("ours", None)];
        let goal = PairGoal {
            scenario: "experiment".into(),
            side: "ours".into(),
            base: base.map(str::to_string),
            what: "elapsed_s".into(),
            at_most,
        };
        (session, goal)
    }

    fn judged(values: [f64; 4], at_most: f64, base: Option<&str>) -> (f64, Judgement) {
        let (session, goal) = ours_at_most(at_most, base);
        let side = goal.side.clone();
        let mut observations = vec![observation(0, &side, 100.0), observation(0, "theirs", 1.0)];
        for (round, value) in (1..).zip(values) {
            observations
                .extend([observation(round, &side, value), observation(round, "theirs", 2.0)]);
        }
        let verdicts = PairVerdict::of(&[session], &observations, &[goal]);
        assert_eq!(verdicts.len(), 1);
        (verdicts[0].found.unwrap().mean, verdicts[0].judgement)
    }

    #[test]
    fn a_goal_whose_runs_are_missing_is_not_reached() {
        let (session, goal) = ours_at_most(1.0, Some("theirs"));
        let one = observation(1, &goal.side, 1.0);
        let other = PairGoal { side: "of another session".into(), ..goal.clone() };
        let verdicts = PairVerdict::of(&[session], &[one], &[goal, other]);
        assert_eq!(verdicts.len(), 1);
        assert_eq!((verdicts[0].found, verdicts[0].judgement), (None, Judgement::NotResolved));
    }

    #[test]
    fn a_ratio_is_judged_by_its_whole_interval_and_without_the_warm_up() {
        let (mean, judgement) = judged([0.99, 1.0, 1.0, 1.01], 0.6, Some("theirs"));
        assert!((mean - 0.5).abs() < 1e-3, "{mean}");
        assert_eq!(judgement, Judgement::Passed);
        assert_eq!(judged([0.99, 1.0, 1.0, 1.01], 0.4, Some("theirs")).1, Judgement::Below);
        assert_eq!(judged([0.8, 1.2, 0.9, 1.1], 0.5, Some("theirs")).1, Judgement::NotResolved);
    }

    #[test]
    fn without_a_base_the_largest_counts() {
        assert_eq!(judged([1.0, 3.0, 2.0, 1.0], 3.0, None), (3.0, Judgement::Passed));
        assert_eq!(judged([1.0, 3.0, 2.0, 1.0], 2.9, None).1, Judgement::Below);
    }
}
