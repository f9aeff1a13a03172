//! A database in the shape of WideWorldImporters, filled: the five tables that article 2 names, whose schema is there.
//!
//! The names are those that `pellucid sql` gives to the tables of a schema. Of WideWorldImporters only the names and most
//! columns are taken, not its numbers of rows: there, three of the five tables are too small for a clock of milliseconds.

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::random::Random;
use rusqlite::Connection;

use super::purchase::two_words;
use super::whole::MARKER;

/// Of an order line with its share of everything else, indexes included.
const BYTES_PER_LINE: u64 = 305;

const LINE: &str =
    "INSERT INTO \"Sales.OrderLines\" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?5, ?7, ?8, ?7)";
const TRANSACTION: &str = "INSERT INTO \"Warehouse.StockItemTransactions\" \
     VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL, ?6, ?7, ?8, ?6)";
const PURCHASE: &str =
    "INSERT INTO \"Purchasing.PurchaseOrderLines\" VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const ITEM: &str = "INSERT INTO \"Warehouse.StockItems\" VALUES (?1, ?2, ?3)";
const PERSON: &str = "INSERT INTO \"Application.People\" VALUES (?1, ?2, ?3)";

/// How many rows each table gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Of order lines, and of stock item transactions.
    pub lines: u64,
    pub purchases: u64,
    pub items: u64,
    pub people: u64,
}

impl Rows {
    /// Of a database of about `bytes`.
    pub fn of(bytes: u64) -> Self {
        let lines = (bytes / BYTES_PER_LINE).max(100);
        Self { lines, purchases: lines / 5, items: lines / 50, people: lines / 100 }
    }
}

/// Fills the five tables until the database, with its indexes, has about `bytes`; gives the number of order lines.
///
/// # Errors
/// [`Error::Sqlite`]
pub fn fill(connection: &mut Connection, bytes: u64, seed: u64) -> Result<u64> {
    let rows = Rows::of(bytes);
    let mut fill = || -> rusqlite::Result<()> {
        let random = &mut Random::of(&[seed]);
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare(ITEM)?;
            for id in 1..=rows.items {
                let price = random.below(100_000) as f64 / 100.0;
                insert.execute((id as i64, format!("{} {id:08}", two_words(random)), price))?;
            }
            let mut insert = transaction.prepare(PERSON)?;
            for id in 1..=rows.people {
                let name = two_words(random);
                insert.execute((id as i64, &name, format!("{id}@{}.example", name.len())))?;
            }
            let mut insert = transaction.prepare(LINE)?;
            for id in 1..=rows.lines {
                let text = if id == 1 { MARKER.into() } else { description(random) };
                let (item, quantity) = (random.id(rows.items), random.id(100));
                let price = random.below(100_000) as f64 / 100.0;
                let (when, by) = (moment(random), random.id(rows.people));
                let (id, order, item) = (id as i64, (id / 3) as i64, item as i64);
                insert.execute((id, order, item, text, quantity as i64, price, when, by as i64))?;
            }
            let mut insert = transaction.prepare(TRANSACTION)?;
            for id in 1..=rows.lines {
                let (item, kind) = (random.id(rows.items), random.id(12));
                let (customer, invoice) = (random.id(1000), random.id(rows.lines));
                let quantity = -(random.id(10_000) as f64) / 8.0;
                let (when, by) = (moment(random), random.id(rows.people));
                let [id, item, kind, customer, invoice, by] =
                    [id, item, kind, customer, invoice, by].map(|number| number as i64);
                insert.execute((id, item, kind, customer, invoice, when, quantity, by))?;
            }
            let mut insert = transaction.prepare(PURCHASE)?;
            for id in 1..=rows.purchases {
                let (item, outers) = (random.id(rows.items), random.id(100));
                let text = description(random);
                let [id, order, item, outers] = [id, id / 4, item, outers].map(|n| n as i64);
                insert.execute((id, order, item, outers, text, moment(random)))?;
            }
        }
        transaction.commit()
    };
    fill().map_err(Error::sqlite("filling WideWorldImporters"))?;
    Ok(rows.lines)
}

/// Four words.
fn description(random: &mut Random) -> String {
    format!("{} {}", two_words(random), two_words(random))
}

/// As DATETIME2(7) is stored.
fn moment(random: &mut Random) -> String {
    let [month, day] = [random.id(12), random.id(28)];
    let [hour, minute, second] = [random.below(24), random.below(60), random.below(60)];
    format!("2016-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.0000000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_rows_also_when_it_is_tiny() {
        let rows = Rows::of(0);
        assert_eq!(rows, Rows { lines: 100, purchases: 20, items: 2, people: 1 });
        assert!(Rows::of(3_435_973_836).lines > 10_000_000);
    }

    #[test]
    fn a_moment_has_the_length_that_is_stored() {
        let moment = moment(&mut Random::of(&[1]));
        assert_eq!((moment.len(), &moment[..5], &moment[19..]), (27, "2016-", ".0000000"));
    }
}
