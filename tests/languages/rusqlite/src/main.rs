use rusqlite::{Connection, LoadExtensionGuard, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let (extension, database) = (&arguments[1], &arguments[2]);

    // Once in a process, before the first database is opened.
    let loader = Connection::open_in_memory()?;
    // SAFETY: nothing runs SQL of others while loading is enabled, and the library is Pellucid's.
    unsafe {
        let _enabled = LoadExtensionGuard::new(&loader)?;
        loader.load_extension(extension, None::<&str>)?;
    }

    let mut db = Connection::open(database)?;
    let transaction = db.transaction()?;
    transaction.execute("CREATE TABLE IF NOT EXISTS note(writer TEXT, sqlite TEXT, text TEXT)", [])?;
    for number in 0..1000 {
        let insert = "INSERT INTO note VALUES('rusqlite', sqlite_version(), 'a text to be found ' || ?)";
        transaction.execute(insert, [number])?;
    }
    transaction.commit()?;
    drop(db);

    let db = Connection::open(database)?;
    let mut select = db.prepare("SELECT writer, sqlite, count(*) FROM note GROUP BY writer, sqlite ORDER BY min(rowid)")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        println!("{} {} {}", row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?);
    }
    Ok(())
}
