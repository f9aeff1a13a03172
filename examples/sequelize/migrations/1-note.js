const { DataTypes } = require('sequelize');

exports.up = ({ context }) => context.createTable('note', {
  id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true },
  text: { type: DataTypes.TEXT, allowNull: false },
});
exports.down = ({ context }) => context.dropTable('note');
