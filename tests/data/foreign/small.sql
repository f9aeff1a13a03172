CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
INSERT INTO t VALUES (1, 'foreign-plaintext-marker one'), (2, NULL);
