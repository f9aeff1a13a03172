'use strict';
// Knex over an encrypted database: EXTENSION=$(pellucid extension) node app.js app.db 100
// Takes keys (`pellucid init`); `encrypt_new=1` seals a new database. The driver is sqlite3, which works on threads;
// better-sqlite3, Knex's other one, has only the program's own: for that, keep the pool at one connection.
process.env.UV_THREADPOOL_SIZE = 24; // a connection that waits for the lock holds a thread
const { promisify } = require('node:util');
const sqlite3 = require('sqlite3');
const knexfile = {
  client: 'sqlite3',
  connection: {
    filename: `file:${process.argv[2]}?vfs=pellucid&encrypt_new=1`,
    flags: ['OPEN_URI', 'OPEN_CREATE', 'OPEN_READWRITE'],
  },
  pool: {
    min: 1,
    max: 20,
    afterCreate(connection, done) {
      connection.exec('PRAGMA busy_timeout = 60000; PRAGMA journal_mode = WAL', done);
    },
  },
  useNullAsDefault: true,
};
const writes = Number(process.argv[3]);
const text = (number) => `buy bread, ${number}`;

async function main() {
  // Once in a process, before the first database is opened.
  const loader = new sqlite3.Database(':memory:');
  await promisify(loader.loadExtension).call(loader, process.env.EXTENSION);

  const knex = require('knex')(knexfile);
  await knex.migrate.latest();
  const count = async () => (await knex('note').count({ rows: '*' }).first()).rows;
  if (await count() === 0) {
    await knex.batchInsert('note', Array.from({ length: 1000 }, (_, number) => ({ text: text(number) })), 100);
  }
  console.log('rows', await count());

  let number = 0;
  await Promise.all(Array.from({ length: 20 }, async () => {
    while (number < writes) {
      const [{ id }] = await knex('note').insert({ text: text(number++) }).returning('id');
      const note = await knex('note').where({ id }).first();
      console.log('stored', note.id, note.text);
    }
  }));
  await knex.destroy();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
