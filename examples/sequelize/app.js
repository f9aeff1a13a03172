'use strict';
// Sequelize over an encrypted database: EXTENSION=$(pellucid extension) node app.js app.db 100
// Takes keys (`pellucid init`). Sequelize makes a folder `file:` of a URI: let it have a plain name, and the environment say what
// a URI would. Of a pool it knows nothing on SQLite: one connection reads, and each transaction has its own.
process.env.PELLUCID_ENCRYPT_NEW = 1; // a new database is sealed
process.env.PELLUCID_REQUIRE = 1; // and a plain one is an error
process.env.UV_THREADPOOL_SIZE = 24; // a connection that waits for the lock holds a thread
const { promisify } = require('node:util');
const { DataTypes, Sequelize, Transaction } = require('sequelize');
const sqlite3 = require('sqlite3');
const { SequelizeStorage, Umzug } = require('umzug');

const [storage, writes] = [process.argv[2], Number(process.argv[3])];
const text = (number) => `buy bread, ${number}`;

async function main() {
  // Once in a process, before the first database is opened.
  const loader = new sqlite3.Database(':memory:');
  await promisify(loader.loadExtension).call(loader, process.env.EXTENSION);

  const sequelize = new Sequelize({
    dialect: 'sqlite',
    storage,
    logging: false,
    transactionType: Transaction.TYPES.IMMEDIATE,
    retry: { match: [/SQLITE_BUSY/], max: 100 },
  });
  await sequelize.query('PRAGMA journal_mode = WAL');
  await new Umzug({
    migrations: { glob: 'migrations/*.js' },
    context: sequelize.getQueryInterface(),
    storage: new SequelizeStorage({ sequelize }),
  }).up();
  const Note = sequelize.define('note', { text: DataTypes.TEXT }, { freezeTableName: true, timestamps: false });
  if (await Note.count() === 0) await Note.bulkCreate(Array.from({ length: 1000 }, (_, number) => ({ text: text(number) })));
  console.log('rows', await Note.count());

  let number = 0;
  await Promise.all(Array.from({ length: 20 }, async () => {
    while (number < writes) {
      const next = { text: text(number++) };
      const { id } = await sequelize.transaction((transaction) => Note.create(next, { transaction }));
      const note = await Note.findByPk(id);
      console.log('stored', note.id, note.text);
    }
  }));
  await sequelize.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
