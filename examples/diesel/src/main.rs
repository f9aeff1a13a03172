//! Diesel over an encrypted database: `cargo build && pellucid run --encrypt-new -- target/debug/example app.db 100`
//!
//! Nothing here knows of Pellucid: Diesel links the system's SQLite (package `libsqlite3-dev`), and `pellucid run` brings
//! Pellucid into it. Not so where a crate of the program turns on the feature `bundled` of `libsqlite3-sys`: Diesel itself
//! loads no extensions.

use std::error::Error;
use std::thread;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Error as PoolError, Pool};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!();

table! {
    note {
        id -> Integer,
        text -> Text,
    }
}

#[derive(Debug)]
struct Pragmas;

impl CustomizeConnection<SqliteConnection, PoolError> for Pragmas {
    fn on_acquire(&self, connection: &mut SqliteConnection) -> Result<(), PoolError> {
        connection
            .batch_execute("PRAGMA busy_timeout = 60000; PRAGMA journal_mode = WAL")
            .map_err(PoolError::QueryError)
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().collect();
    let writes: usize = arguments[2].parse()?;
    let manager = ConnectionManager::<SqliteConnection>::new(&arguments[1]);
    let pool =
        Pool::builder().max_size(20).connection_customizer(Box::new(Pragmas)).build(manager)?;
    let bread = |number| note::text.eq(format!("buy bread, {number}"));

    pool.get()?.run_pending_migrations(MIGRATIONS)?;
    if note::table.count().first::<i64>(&mut pool.get()?)? == 0 {
        let notes: Vec<_> = (0..1000).map(bread).collect();
        diesel::insert_into(note::table).values(notes).execute(&mut pool.get()?)?;
    }
    println!("rows {}", note::table.count().first::<i64>(&mut pool.get()?)?);

    let write = |number: usize| -> Result<(i32, String), Box<dyn Error + Send + Sync>> {
        let mut connection = pool.get()?;
        let insert = diesel::insert_into(note::table).values(bread(number));
        let id: i32 = insert.returning(note::id).get_result(&mut connection)?;
        Ok(note::table.find(id).first(&mut connection)?)
    };
    thread::scope(|threads| {
        for writer in 0..20 {
            threads.spawn(move || {
                for (id, text) in (writer..writes).step_by(20).map(|number| write(number).unwrap())
                {
                    println!("stored {id} {text}");
                }
            });
        }
    });
    Ok(())
}
