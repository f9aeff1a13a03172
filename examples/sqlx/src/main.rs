//! sqlx over an encrypted database: `EXTENSION=$(pellucid extension) PELLUCID_ENCRYPT_NEW=1 cargo run -- app.db 100`
//!
//! Takes keys (`pellucid init`) and sqlx's feature `sqlite-load-extension`, which `sqlite` has. sqlx knows no parameter of a URI
//! but SQLite's own: the environment says that a new database is sealed. The macro `query!` opens DATABASE_URL while it compiles,
//! without Pellucid: give it a plain database with the same schema, or `cargo sqlx prepare`.

use std::error::Error;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};
use sqlx::{ConnectOptions, QueryBuilder};

fn text(number: u64) -> String {
    format!("buy bread, {number}")
}

async fn write(pool: SqlitePool, numbers: impl Iterator<Item = u64>) -> sqlx::Result<()> {
    for number in numbers {
        let written = sqlx::query("INSERT INTO note(text) VALUES(?)")
            .bind(text(number))
            .execute(&pool)
            .await?;
        let select = sqlx::query_as("SELECT id, text FROM note WHERE id = ?")
            .bind(written.last_insert_rowid());
        let (id, text): (i64, String) = select.fetch_one(&pool).await?;
        println!("stored {id} {text}");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let writes: u64 = arguments[2].parse()?;

    // Once in a process, before the first database is opened.
    // SAFETY: the library is Pellucid's.
    let loader = unsafe { SqliteConnectOptions::new().extension(std::env::var("EXTENSION")?) };
    loader.filename(":memory:").connect().await?;

    let options = SqliteConnectOptions::new()
        .filename(&arguments[1])
        .vfs("pellucid")
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(60));
    let pool = SqlitePoolOptions::new().max_connections(20).connect_with(options).await?;
    sqlx::migrate!().run(&pool).await?;
    let count = || sqlx::query_scalar::<_, i64>("SELECT count(*) FROM note").fetch_one(&pool);
    if count().await? == 0 {
        let mut insert = QueryBuilder::new("INSERT INTO note(text) ");
        insert.push_values(0..1000, |mut row, number| {
            row.push_bind(text(number));
        });
        insert.build().execute(&pool).await?;
    }
    println!("rows {}", count().await?);

    let writers =
        (0..20).map(|writer| tokio::spawn(write(pool.clone(), (writer..writes).step_by(20))));
    for writer in writers.collect::<Vec<_>>() {
        writer.await??;
    }
    Ok(())
}
