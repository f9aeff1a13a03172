import sys

import pysqlite3 as sqlite3

extension, database = sys.argv[1:]

# Once in a process, before the first database is opened.
loader = sqlite3.connect(":memory:")
loader.enable_load_extension(True)
loader.load_extension(extension)
loader.close()

db = sqlite3.connect(database, uri=True)
with db:
    db.execute("CREATE TABLE IF NOT EXISTS note(writer TEXT, sqlite TEXT, text TEXT)")
    insert = "INSERT INTO note VALUES('pysqlite3', sqlite_version(), 'a text to be found ' || ?)"
    db.executemany(insert, ((number,) for number in range(1000)))
db.close()

db = sqlite3.connect(database, uri=True)
for row in db.execute("SELECT writer, sqlite, count(*) FROM note GROUP BY writer, sqlite ORDER BY min(rowid)"):
    print(*row)
db.close()
