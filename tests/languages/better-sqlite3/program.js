'use strict';
process.env.SQLITE_USE_URI = '1'; // read when the first database is made: names beginning with `file:` are URIs
const Database = require('better-sqlite3');

const [extension, database] = process.argv.slice(2);

// Once in a process, before the first database is opened.
const loader = new Database(':memory:');
loader.loadExtension(extension);
loader.close();

let db = new Database(database);
db.exec('CREATE TABLE IF NOT EXISTS note(writer TEXT, sqlite TEXT, text TEXT)');
const insert = db.prepare("INSERT INTO note VALUES('better-sqlite3', sqlite_version(), 'a text to be found ' || ?)");
db.transaction(() => {
  for (let number = 0; number < 1000; number++) insert.run(number);
})();
db.close();

db = new Database(database);
const select = db.prepare('SELECT writer, sqlite, count(*) FROM note GROUP BY writer, sqlite ORDER BY min(rowid)');
for (const row of select.raw().iterate()) console.log(...row);
db.close();
