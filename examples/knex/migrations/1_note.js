exports.up = (knex) => knex.schema.createTable('note', (table) => {
  table.increments();
  table.text('text').notNullable();
});
exports.down = (knex) => knex.schema.dropTable('note');
