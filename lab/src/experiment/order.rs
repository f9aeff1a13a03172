//! The order of an experiment's runs: every round has every cell once, and every cell all sides one behind the other.

use crate::blocks::shuffled;
use crate::random::Random;

/// One cell on one side.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// From 1; 0 is the warm-up.
    pub round: usize,
    pub cell: usize,
    /// From 0: the place of the side within its cell, which was drawn.
    pub place: usize,
    pub side: usize,
}

/// All runs; cells and sides of a round in an order that is drawn from the seed.
pub fn runs(cells: usize, sides: usize, rounds: usize, seed: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    for round in 0..=rounds {
        let order = |count, of: u64| shuffled(count, &mut Random::of(&[seed, round as u64, of]));
        for cell in order(cells, 0) {
            let sides = order(sides, cell as u64 + 1).into_iter().enumerate();
            runs.extend(sides.map(|(place, side)| Run { round, cell, place, side }));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_cell_on_all_sides() {
        let all = runs(4, 2, 2, 1);
        assert_eq!(all.len(), 3 * 4 * 2);
        for round in 0..3 {
            let of_round = all.iter().filter(|run| run.round == round);
            let mut found: Vec<_> = of_round.map(|run| (run.cell, run.side)).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), 8);
        }
        let order = |seed| -> Vec<_> {
            runs(4, 2, 2, seed).iter().map(|run| (run.cell, run.side)).collect()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn the_sides_of_a_cell_follow_each_other() {
        for pair in runs(5, 2, 3, 7).chunks(2) {
            assert_eq!((pair[0].round, pair[0].cell), (pair[1].round, pair[1].cell));
            assert_eq!((pair[0].place, pair[1].place), (0, 1));
        }
    }
}
