CREATE TABLE people(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, born REAL, photo BLOB);
INSERT INTO people(name, born, photo) VALUES ('foreign-plaintext-marker Ada', 1815.9, x'00ff10'), ('Zoë Ünlü', NULL, NULL), ('', -0.5, zeroblob(3));
CREATE TABLE notes(who INTEGER REFERENCES people(id), at TEXT, text TEXT, PRIMARY KEY(who, at)) WITHOUT ROWID;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
  INSERT INTO notes SELECT i % 3 + 1, printf('2026-%03d', i), 'note ' || i || ' ' || printf('%.*c', i * 7 % 60, 'x') FROM n;
CREATE INDEX notes_by_text ON notes(text COLLATE NOCASE);
CREATE VIEW told AS SELECT name, count(*) AS notes FROM people JOIN notes ON who = id GROUP BY id;
CREATE TRIGGER gone AFTER DELETE ON people BEGIN DELETE FROM notes WHERE who = OLD.id; END;
DELETE FROM people WHERE name = '';
PRAGMA user_version = 77;
PRAGMA application_id = 1234567;
