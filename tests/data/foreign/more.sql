INSERT INTO people(name) VALUES ('of the log');
UPDATE notes SET text = text || ' changed in the log' WHERE who = 1;
