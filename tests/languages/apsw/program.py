import sys

import apsw

extension, database = sys.argv[1:]

# Once in a process, before the first database is opened.
loader = apsw.Connection(":memory:")
loader.enable_load_extension(True)
loader.load_extension(extension)
loader.close()

flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
db = apsw.Connection(database, flags=flags)
with db:
    db.execute("CREATE TABLE IF NOT EXISTS note(writer TEXT, sqlite TEXT, text TEXT)")
    for number in range(1000):
        db.execute("INSERT INTO note VALUES('apsw', sqlite_version(), 'a text to be found ' || ?)", (number,))
db.close()

db = apsw.Connection(database, flags=flags)
for row in db.execute("SELECT writer, sqlite, count(*) FROM note GROUP BY writer, sqlite ORDER BY min(rowid)"):
    print(*row)
db.close()
