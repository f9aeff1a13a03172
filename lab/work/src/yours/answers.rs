//! Whether all sides answer alike: a sealed database that answers differently is a defect, and its times mean nothing.
//!
//! Some statements answer differently each time (`random()`, `datetime('now')`). So what differs is executed again, and
//! it counts only if the base agrees with itself before and after the other side, every time.

use pellucid_lab_measure::error::{Error, Result};

use crate::scenario::statements::Done;

/// How often. What a coin decides agrees and differs so once in four times: all five once in a thousand.
const TIMES: usize = 5;

/// The answers of a round.
#[derive(Debug)]
pub struct Answers {
    names: Vec<String>,
    /// The first is the base.
    sides: Vec<String>,
    of_round: Vec<Option<Vec<Answer>>>,
    /// Statements that do not answer alike twice.
    is_fickle: Vec<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    rows: u64,
    changed_rows: u64,
    hash: u64,
}

fn answers(statements: &[Done]) -> Vec<Answer> {
    let of = |one: &Done| Answer { rows: one.rows, changed_rows: one.changed_rows, hash: one.hash };
    statements.iter().map(of).collect()
}

impl Answers {
    /// Nothing answered yet, of statements and sides with these names.
    pub fn new(names: &[String], sides: &[String]) -> Self {
        Self {
            names: names.to_vec(),
            sides: sides.to_vec(),
            of_round: vec![None; sides.len()],
            is_fickle: vec![false; names.len()],
        }
    }

    /// Takes what a side answered; once all of a round are there they are compared. `again` executes the SQL on a side
    /// once more.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a side answers differently; what `again` says.
    pub fn take(
        &mut self,
        side: usize,
        statements: &[Done],
        mut again: impl FnMut(usize) -> Result<Vec<Done>>,
    ) -> Result<()> {
        self.of_round[side] = Some(answers(statements));
        if self.of_round.iter().any(Option::is_none) {
            return Ok(());
        }
        let round: Vec<Vec<Answer>> = self.of_round.iter_mut().filter_map(Option::take).collect();
        for side in 1..round.len() {
            if round[side].len() != round[0].len() {
                let (name, base) = (&self.sides[side], &self.sides[0]);
                return Err(Error::invalid(format!("{name} and {base}: not as many statements")));
            }
            self.compare(side, [&round[0], &round[side]], &mut again)?;
        }
        Ok(())
    }

    fn compare(
        &mut self,
        side: usize,
        [base, other]: [&[Answer]; 2],
        again: &mut impl FnMut(usize) -> Result<Vec<Done>>,
    ) -> Result<()> {
        let mut suspects: Vec<usize> = (0..base.len())
            .filter(|&place| base[place] != other[place] && !self.is_fickle[place])
            .collect();
        let mut shown = None;
        for _ in 0..TIMES {
            if suspects.is_empty() {
                return Ok(());
            }
            let [before, between, after] =
                [answers(&again(0)?), answers(&again(side)?), answers(&again(0)?)];
            suspects.retain(|&place| {
                let differs = before[place] == after[place] && before[place] != between[place];
                if !differs {
                    self.is_fickle[place] = true;
                    let name = &self.names[place];
                    eprintln!("lab: `{name}` does not answer alike twice: not compared");
                }
                differs
            });
            shown = suspects.first().map(|&place| (place, before[place], between[place]));
        }
        let Some((place, base, other)) = shown else { return Ok(()) };
        let told = |one: Answer| format!("{} rows, {} changed", one.rows, one.changed_rows);
        let values = if told(base) == told(other) { ", with other values" } else { "" };
        Err(Error::invalid(format!(
            "`{}`: {} answers otherwise than {}: {} instead of {}{values}. Where a statement asks for the file \
             itself (PRAGMA page_count, dbstat) it differs rightly: leave it out. Any other is a defect of Pellucid: \
             please report it",
            self.names[place],
            self.sides[side],
            self.sides[0],
            told(other),
            told(base),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::temporary::Temporary;

    fn done(hashes: &[u64]) -> Vec<Done> {
        let one = |hash: &u64| Done {
            text: String::new(),
            wall_s: 1.0,
            cpu_s: None,
            rows: 1,
            changed_rows: 0,
            hash: *hash,
            first: None,
            temporary: Temporary::default(),
        };
        hashes.iter().map(one).collect()
    }

    fn compared() -> Answers {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        Answers::new(&words(&["1: A", "2: B"]), &words(&["plain", "sealed"]))
    }

    #[test]
    fn sides_that_agree_are_not_asked_again() {
        let mut answers = compared();
        let nobody = |_: usize| -> Result<Vec<Done>> { panic!("asked again") };
        for _ in 0..3 {
            answers.take(1, &done(&[7, 8]), nobody).unwrap();
            answers.take(0, &done(&[7, 8]), nobody).unwrap();
        }
    }

    #[test]
    fn a_side_that_answers_differently_every_time_is_found() {
        let mut answers = compared();
        let mut asked = 0;
        let mut again = |side: usize| {
            asked += 1;
            Ok(done(&[7, if side == 0 { 8 } else { 9 }]))
        };
        answers.take(0, &done(&[7, 8]), &mut again).unwrap();
        let error = answers.take(1, &done(&[7, 9]), &mut again).unwrap_err().to_string();
        assert!(error.contains("`2: B`: sealed answers otherwise than plain"), "{error}");
        assert!(error.contains("other values") && error.contains("defect"), "{error}");
        assert_eq!(asked, 3 * TIMES);
    }

    #[test]
    fn what_never_answers_alike_is_left_out_and_the_rest_is_not() {
        let mut answers = compared();
        let mut turn = 0;
        answers.take(0, &done(&[7, 100]), |_| Ok(Vec::new())).unwrap();
        let fickle = |_: usize| {
            turn += 1;
            Ok(done(&[7, turn]))
        };
        answers.take(1, &done(&[7, 101]), fickle).unwrap();
        // From then on it may differ, and the other one may not.
        answers.take(0, &done(&[7, 1]), |_| Ok(Vec::new())).unwrap();
        answers.take(1, &done(&[7, 2]), |_| Ok(Vec::new())).unwrap();
        answers.take(0, &done(&[7, 1]), |_| Ok(Vec::new())).unwrap();
        let other = |side: usize| Ok(done(&[7 + side as u64, 2]));
        let error = answers.take(1, &done(&[8, 2]), other).unwrap_err().to_string();
        assert!(error.contains("`1: A`"), "{error}");
    }

    #[test]
    fn what_changes_with_the_time_is_no_defect() {
        let mut answers = compared();
        answers.take(1, &done(&[7, 100]), |_| Ok(Vec::new())).unwrap();
        // The next second began between the two: asked again, both say the same.
        answers.take(0, &done(&[7, 101]), |_| Ok(done(&[7, 101]))).unwrap();
    }
}
