package main

import (
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/mattn/go-sqlite3"
)

func main() {
	extension, database := os.Args[1], os.Args[2]

	// Once in a process, before the first database is opened. Open alone connects to nothing; Ping does.
	sql.Register("pellucid", &sqlite3.SQLiteDriver{Extensions: []string{extension}})
	loader, err := sql.Open("pellucid", ":memory:")
	must(err)
	must(loader.Ping())
	must(loader.Close())

	db, err := sql.Open("sqlite3", database)
	must(err)
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS note(writer TEXT, sqlite TEXT, text TEXT)")
	must(err)
	tx, err := db.Begin()
	must(err)
	for number := range 1000 {
		_, err = tx.Exec("INSERT INTO note VALUES('go-sqlite3', sqlite_version(), 'a text to be found ' || ?)", number)
		must(err)
	}
	must(tx.Commit())
	must(db.Close())

	db, err = sql.Open("sqlite3", database)
	must(err)
	rows, err := db.Query("SELECT writer, sqlite, count(*) FROM note GROUP BY writer, sqlite ORDER BY min(rowid)")
	must(err)
	for rows.Next() {
		var writer, version string
		var count int
		must(rows.Scan(&writer, &version, &count))
		fmt.Println(writer, version, count)
	}
	must(rows.Err())
	must(db.Close())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
