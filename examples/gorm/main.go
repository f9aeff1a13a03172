// GORM over an encrypted database: EXTENSION=$(pellucid extension) go run . app.db 100
// Takes keys (`pellucid init`) and cgo; `encrypt_new=1` seals a new database. Drivers in pure Go (glebarez/sqlite, ncruces) load
// no extensions: they cannot open it. Neither can a program that is linked with -extldflags -static.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"

	"github.com/mattn/go-sqlite3"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

type Note struct {
	ID   int
	Text string `gorm:"not null"`
}

func main() {
	writes, err := strconv.Atoi(os.Args[2])
	check(err)
	// The extension once in a process, before the first database is opened.
	sql.Register("pellucid", &sqlite3.SQLiteDriver{Extensions: []string{os.Getenv("EXTENSION")}})
	_, err = gorm.Open(sqlite.Dialector{DriverName: "pellucid", DSN: ":memory:"})
	check(err)

	db, err := gorm.Open(sqlite.Open("file:" + os.Args[1] + "?vfs=pellucid&encrypt_new=1&_journal_mode=WAL&_busy_timeout=60000"))
	check(err)
	pool, err := db.DB()
	check(err)
	pool.SetMaxOpenConns(20)

	check(db.AutoMigrate(&Note{}))
	if db.Limit(1).Find(&Note{}).RowsAffected == 0 {
		notes := make([]Note, 1000)
		for number := range notes {
			notes[number].Text = fmt.Sprintf("buy bread, %d", number)
		}
		check(db.Create(&notes).Error)
	}
	var rows int64
	check(db.Model(&Note{}).Count(&rows).Error)
	fmt.Println("rows", rows)

	var writers sync.WaitGroup
	for writer := range 20 {
		writers.Go(func() {
			for number := writer; number < writes; number += 20 {
				note, read := Note{Text: fmt.Sprintf("buy bread, %d", number)}, Note{}
				check(db.Create(&note).Error)
				check(db.First(&read, note.ID).Error)
				fmt.Println("stored", read.ID, read.Text)
			}
		})
	}
	writers.Wait()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
