//! Vendor, Card, Purchase: the OLTP workload of article 3 (Garrison, "Performance Testing SQL 2008's
//! Transparent Data Encryption").
//!
//! Tables, keys and indexes are the article's; the columns that it does not name are ours, sized
//! like a small shop's. A primary key is SQLite's rowid, which is what "clustered" means there.
//! Each stored procedure is one prepared statement: read a Card record, update a Vendor record,
//! insert a Purchase record, always on random rows, each write in a transaction of its own. The
//! script's loop with its DELAYs is in `hummer`.

use std::hint::black_box;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::random::Random;
use pellucid_lab_report::plan::{Operation, Size};
use rusqlite::{Connection, ErrorCode, Statement};

/// Indexes exist before the rows do, as in the article, so that their pages are as full as those of
/// a database in use.
const SCHEMA: &str = "
    CREATE TABLE Vendor (
        VendorID INTEGER PRIMARY KEY,
        BusinessName TEXT NOT NULL,
        Address1 TEXT NOT NULL,
        City TEXT NOT NULL,
        State TEXT NOT NULL,
        ZipCode TEXT NOT NULL,
        DateCreated TEXT NOT NULL,
        DateLastUpdated TEXT NOT NULL,
        StatusCd INTEGER NOT NULL);
    CREATE INDEX Vendor_BusinessName ON Vendor (BusinessName);
    CREATE TABLE Card (
        CardID INTEGER PRIMARY KEY,
        CardNumber TEXT NOT NULL,
        SecurityCode TEXT NOT NULL,
        SecureString TEXT NOT NULL,
        NameOnCard TEXT NOT NULL,
        DateCreated TEXT NOT NULL,
        StatusCd INTEGER NOT NULL);
    CREATE UNIQUE INDEX Card_CardNumber_SecurityCode ON Card (CardNumber, SecurityCode);
    CREATE INDEX Card_SecurityCode_CardNumber ON Card (SecurityCode, CardNumber);
    CREATE INDEX Card_SecureString ON Card (SecureString);
    CREATE TABLE Purchase (
        PurchaseID INTEGER PRIMARY KEY,
        CardID INTEGER NOT NULL,
        VendorID INTEGER NOT NULL,
        Amount INTEGER NOT NULL,
        Description TEXT NOT NULL,
        DateCreated TEXT NOT NULL);
    CREATE INDEX Purchase_CardID ON Purchase (CardID);
    CREATE INDEX Purchase_VendorID ON Purchase (VendorID);";

const READ_CARD: &str = "SELECT CardID, CardNumber, SecurityCode, SecureString, NameOnCard, \
     DateCreated, StatusCd FROM Card WHERE CardID = ?1";
const CREATE_VENDOR: &str = "INSERT INTO Vendor VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, 1)";
const UPDATE_VENDOR: &str = "UPDATE Vendor SET BusinessName = ?2, Address1 = ?3, City = ?4, \
     State = ?5, ZipCode = ?6, DateLastUpdated = ?7 WHERE VendorID = ?1";
const CREATE_CARD: &str = "INSERT INTO Card VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)";
const CREATE_PURCHASE: &str = "INSERT INTO Purchase (CardID, VendorID, Amount, Description, \
     DateCreated) VALUES (?1, ?2, ?3, ?4, ?5)";

const CITIES: [&str; 8] =
    ["Portland", "Salem", "Eugene", "Bend", "Medford", "Astoria", "Corvallis", "Ashland"];
const WORDS: [&str; 16] = [
    "Cedar", "River", "Granite", "Summit", "Harbor", "Willow", "Copper", "Juniper", "Prairie",
    "Lantern", "Meadow", "Anchor", "Orchard", "Falcon", "Timber", "Beacon",
];

/// A text of a row that every fresh database holds: for telling sealed files from plain ones.
pub const MARKER: &str = "Marker Business 1 of the Lab";

/// Makes the tables and fills them; the same `seed` makes the same rows.
///
/// # Errors
/// [`Error::Sqlite`]
pub fn fill(connection: &mut Connection, size: Size, seed: u64) -> Result<()> {
    let mut fill = || -> rusqlite::Result<()> {
        let random = &mut Random::of(&[seed]);
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        {
            let mut create = transaction.prepare(CREATE_VENDOR)?;
            for id in 1..=size.vendors {
                write_vendor(&mut create, Some(id), random)?;
            }
            let name = "UPDATE Vendor SET BusinessName = ?1 WHERE VendorID = 1";
            transaction.execute(name, [MARKER])?;
            let mut create = transaction.prepare(CREATE_CARD)?;
            for id in 1..=size.cards {
                write_card(&mut create, Some(id), id, random)?;
            }
            let mut create = transaction.prepare(CREATE_PURCHASE)?;
            for _ in 0..size.purchases {
                create_purchase(&mut create, size, random)?;
            }
        }
        transaction.commit()
    };
    fill().map_err(Error::sqlite("filling Vendor, Card, Purchase"))
}

/// Purchases in the database, after SQLite's own check of it.
///
/// # Errors
/// [`Error::Invalid`] if the check finds something.
pub fn check(connection: &Connection) -> Result<u64> {
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    let verdict = text("PRAGMA quick_check(1)").map_err(Error::sqlite("quick_check"))?;
    if verdict != "ok" {
        return Err(Error::invalid(format!("quick_check: {verdict}")));
    }
    connection
        .query_row("SELECT count(*) FROM Purchase", [], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
        .map_err(Error::sqlite("counting purchases"))
}

/// One client: its prepared statements and its own sequence of random rows.
#[derive(Debug)]
pub struct Client<'connection> {
    connection: &'connection Connection,
    create_vendor: Statement<'connection>,
    create_card: Statement<'connection>,
    begin: Statement<'connection>,
    commit: Statement<'connection>,
    read: Statement<'connection>,
    update: Statement<'connection>,
    insert: Statement<'connection>,
    size: Size,
    random: Random,
    /// Times that the write lock was not to be had within the busy timeout.
    pub busy: u64,
}

impl<'connection> Client<'connection> {
    /// A worker at `connection`, with its statements prepared.
    ///
    /// # Errors
    /// [`Error::Sqlite`]
    pub fn new(connection: &'connection Connection, size: Size, random: Random) -> Result<Self> {
        let prepare = |sql| connection.prepare(sql).map_err(Error::sqlite(sql));
        Ok(Self {
            connection,
            create_vendor: prepare(CREATE_VENDOR)?,
            create_card: prepare(CREATE_CARD)?,
            begin: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            read: prepare(READ_CARD)?,
            update: prepare(UPDATE_VENDOR)?,
            insert: prepare(CREATE_PURCHASE)?,
            size,
            random,
            busy: 0,
        })
    }

    /// Does one operation to its end.
    ///
    /// # Errors
    /// [`Error::Sqlite`] for anything but a late lock, [`Error::Invalid`] if a row is missing.
    pub fn perform(&mut self, operation: Operation) -> Result<()> {
        match operation {
            Operation::Read => self.read_card(),
            Operation::Update => self.transaction(|client| {
                let id = client.random.id(client.size.vendors);
                write_vendor(&mut client.update, Some(id), &mut client.random)
            }),
            Operation::Insert => self.transaction(|client| {
                create_purchase(&mut client.insert, client.size, &mut client.random)
            }),
        }
    }

    /// A new Vendor with the next number; up to it, every Vendor is there to be chosen.
    ///
    /// # Errors
    /// As [`Client::perform`].
    pub fn create_vendor(&mut self) -> Result<()> {
        self.transaction(|client| {
            write_vendor(&mut client.create_vendor, None, &mut client.random)
        })?;
        self.size.vendors = self.last_id();
        Ok(())
    }

    /// The same for a Card; no other has been made of this `number`.
    ///
    /// # Errors
    /// As [`Client::perform`].
    pub fn create_card(&mut self, number: u64) -> Result<()> {
        self.transaction(|client| {
            write_card(&mut client.create_card, None, number, &mut client.random)
        })?;
        self.size.cards = self.last_id();
        Ok(())
    }

    fn last_id(&self) -> u64 {
        self.connection.last_insert_rowid().unsigned_abs()
    }

    fn read_card(&mut self) -> Result<()> {
        let id = self.random.id(self.size.cards);
        let row = self.read.query_row([sql(id)], |row| {
            for column in 0..7 {
                black_box(row.get_ref(column)?);
            }
            Ok(())
        });
        row.map_err(Error::sqlite("reading a card"))
    }

    fn transaction(&mut self, work: impl Fn(&mut Self) -> rusqlite::Result<usize>) -> Result<()> {
        while let Err(error) = self.begin.execute([]) {
            if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) {
                return Err(Error::sqlite("BEGIN IMMEDIATE")(error));
            }
            self.busy += 1;
        }
        let rows = work(self).map_err(Error::sqlite("writing a row"))?;
        self.commit.execute([]).map_err(Error::sqlite("COMMIT"))?;
        if rows == 1 {
            Ok(())
        } else {
            Err(Error::invalid(format!("a write changed {rows} rows instead of 1")))
        }
    }
}

/// The procedures for a Vendor take the whole row, so the index on BusinessName changes too. Without an id it gets the next.
fn write_vendor(
    statement: &mut Statement<'_>,
    id: Option<u64>,
    random: &mut Random,
) -> rusqlite::Result<usize> {
    let business = format!("{} {}", two_words(random), random.below(10_000));
    let address = format!("{} {} Street", random.id(9999), WORDS[random.below(16) as usize]);
    let city = CITIES[random.below(8) as usize];
    let zip = format!("97{:03}", random.below(1000));
    statement.execute((id.map(sql), business, address, city, "OR", zip, date(random)))
}

fn write_card(
    statement: &mut Statement<'_>,
    id: Option<u64>,
    number: u64,
    random: &mut Random,
) -> rusqlite::Result<usize> {
    statement.execute((
        id.map(sql),
        card_number(number),
        format!("{:03}", random.below(1000)),
        secure_string(random),
        two_words(random),
        date(random),
    ))
}

fn create_purchase(
    statement: &mut Statement<'_>,
    size: Size,
    random: &mut Random,
) -> rusqlite::Result<usize> {
    let (card, vendor) = (sql(random.id(size.cards)), sql(random.id(size.vendors)));
    let amount_cents = sql(random.below(50_000));
    statement.execute((card, vendor, amount_cents, two_words(random), date(random)))
}

/// SQLite's integers have a sign; no number here comes near it.
fn sql(number: u64) -> i64 {
    number as i64
}

/// Sixteen digits, each number once: the factor shares no divisor with 10^15.
fn card_number(id: u64) -> String {
    let scattered = u128::from(id) * 618_033_988_749_897 % 1_000_000_000_000_000;
    format!("4{scattered:015}")
}

fn secure_string(random: &mut Random) -> String {
    format!("{:016x}-{:016x}", random.draw(), random.draw())
}

/// Draws a name of two words.
pub fn two_words(random: &mut Random) -> String {
    let word = |random: &mut Random| WORDS[random.below(16) as usize];
    format!("{} {}", word(random), word(random))
}

/// Draws a moment of 2008.
pub fn date(random: &mut Random) -> String {
    format!(
        "2008-{:02}-{:02} {:02}:{:02}:{:02}",
        random.id(12),
        random.id(28),
        random.below(24),
        random.below(60),
        random.below(60)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { vendors: 20, cards: 300, purchases: 500 };

    fn database(seed: u64) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        fill(&mut connection, SIZE, seed).unwrap();
        connection
    }

    fn dump(connection: &Connection) -> String {
        let sql = "SELECT group_concat(CardNumber || SecurityCode || SecureString) || (SELECT \
             group_concat(CardID || '/' || VendorID || Description) FROM Purchase) || (SELECT \
             group_concat(BusinessName || Address1) FROM Vendor) FROM Card";
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn the_same_seed_makes_the_same_rows_and_another_others() {
        assert_eq!(dump(&database(3)), dump(&database(3)));
        assert_ne!(dump(&database(3)), dump(&database(4)));
        assert_eq!(dump(&database(3)).matches(MARKER).count(), 1);
    }

    #[test]
    fn indexes_are_the_articles() {
        let connection = database(1);
        let mut list = connection
            .prepare(
                "SELECT m.tbl_name, l.\"unique\", group_concat(i.name) FROM sqlite_master m \
                 JOIN pragma_index_list(m.tbl_name) l ON l.name = m.name \
                 JOIN pragma_index_info(m.name) i GROUP BY m.name ORDER BY m.name",
            )
            .unwrap();
        let found: Vec<(String, bool, String)> = list
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap()
            .map(std::result::Result::unwrap)
            .collect();
        let found: Vec<_> = found.iter().map(|(a, b, c)| (a.as_str(), *b, c.as_str())).collect();
        let expected = [
            ("Card", true, "CardNumber,SecurityCode"),
            ("Card", false, "SecureString"),
            ("Card", false, "SecurityCode,CardNumber"),
            ("Purchase", false, "CardID"),
            ("Purchase", false, "VendorID"),
            ("Vendor", false, "BusinessName"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn each_operation_does_what_its_name_says() {
        let connection = database(5);
        let mut client = Client::new(&connection, SIZE, Random::of(&[9])).unwrap();
        let before = dump(&connection);
        (0..50).for_each(|_| client.perform(Operation::Read).unwrap());
        assert_eq!(before, dump(&connection));
        (0..50).for_each(|_| client.perform(Operation::Update).unwrap());
        assert_ne!(before, dump(&connection));
        assert_eq!(check(&connection).unwrap(), 500);
        (0..50).for_each(|_| client.perform(Operation::Insert).unwrap());
        assert_eq!(check(&connection).unwrap(), 550);
        assert_eq!(client.busy, 0);
    }

    #[test]
    fn a_missing_row_makes_the_run_invalid() {
        let connection = database(6);
        connection.execute_batch("DELETE FROM Vendor; DELETE FROM Card").unwrap();
        let mut client = Client::new(&connection, SIZE, Random::of(&[9])).unwrap();
        assert!(client.perform(Operation::Update).is_err());
        assert!(client.perform(Operation::Read).is_err());
    }
}
