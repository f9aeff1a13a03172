//! The initialization vector that wxSQLite3 derives of a page's number alone (`sqlite3mcGenerateInitialVector`).

use md5::{Digest, Md5};

/// One step of L'Ecuyer's generator, then the hash of four of its numbers.
pub fn initial_vector(page: u32) -> [u8; 16] {
    let mut number = i64::from(page as i32) + 1;
    let mut seed = [0; 16];
    for four in seed.chunks_exact_mut(4) {
        let quotient = number / 52774;
        number = 40692 * (number - 52774 * quotient) - 3791 * quotient;
        if number < 0 {
            number += 2_147_483_399;
        }
        four.copy_from_slice(&(number as u32).to_le_bytes());
    }
    Md5::digest(seed).into()
}
