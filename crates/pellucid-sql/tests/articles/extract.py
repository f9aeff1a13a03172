#!/usr/bin/env python3
"""Takes the scripts out of the articles they are printed in, word for word.

    extract.py ARTICLES            compares them with the files beside this script
    extract.py ARTICLES --write    writes the files

ARTICLES is the directory of article-0.txt and its like. Exit: 0 the same, 1 different.
"""
import pathlib
import sys

# file, article, beginning of its first line, beginning of its last line (the first one from there on).
# `..end`: within one line of prose, from the first text to this one.
SCRIPTS = [
    ("0-attach.sql", 0, "USE [master];", "ALTER DATABASE awSSD MODIFY FILE (NAME = N'AdventureWorks2012_Log'"),
    ("0-helpfile.sql", 0, "EXEC sp_helpfile", "..;"),
    ("0-keys.sql", 0, "USE master;", "You also get a warning"),
    ("0-backup-keys.sql", 0, "BACKUP CERTIFICATE TestCert", "  ENCRYPTION BY PASSWORD = 'p@ssw0rd';"),
    ("0-generate.sql", 0, "DECLARE @sql NVARCHAR(MAX) = N'';", "SELECT CONVERT(XML, @sql);"),
    ("0-backups.sql", 0, "BACKUP DATABASE awHDD TO DISK = 'D:\\backup\\test01", " NAME = 'test20-TRIPLE_DES_3KEY-SSD-to-HDD-NO"),
    ("0-durations.sql", 0, ";WITH x AS", "ORDER BY name;"),
    ("1-backup.sql", 1, "USE master;", "I was wondering"),
    ("1-create.sql", 1, "CREATE DATABASE TestDBonLocal", "..FILEGROWTH = 32 MB)"),
    ("2-keys.sql", 2, "USE master;", "After the above T-SQL"),
    ("2-checkdb.sql", 2, "SET STATISTICS TIME ON;\nDBCC", "SET STATISTICS TIME OFF;"),
    ("2-backup.sql", 2, "SET STATISTICS TIME ON;\nBACKUP", "SET STATISTICS TIME OFF;"),
    ("2-restore.sql", 2, "SET STATISTICS TIME ON;\nUSE [master]\nRESTORE", "SET STATISTICS TIME OFF;"),
    ("2-rebuild.sql", 2, "SET STATISTICS TIME ON;\nUSE [WideWorldImporters]\nGO\nPrint '--- Normal DB ---'\nALTER", "SET STATISTICS TIME OFF;"),
    ("2-statistics.sql", 2, "SET STATISTICS TIME ON;\nUSE [WideWorldImporters]\nGO\nPrint '--- Normal DB ---'\nUPDATE", "SET STATISTICS TIME OFF;"),
]
# Last lines that are prose and not part of the script.
PROSE = ("You also get", "I was wondering", "After the above")


def extract(text, first, last):
    if last.startswith(".."):
        start = text.index(first)
        return text[start : text.index(last[2:], start)] + last[2:] + "\n"
    start = text.index("\n" + first) + 1
    lines = text[start:].split("\n")
    skip = first.count("\n")
    end = next(at for at, line in enumerate(lines) if at > skip and line.startswith(last))
    taken = lines[:end] if last.startswith(PROSE) else lines[: end + 1]
    return "\n".join(taken).rstrip("\n") + "\n"


def main(arguments):
    if not arguments or arguments[1:] not in ([], ["--write"]):
        sys.exit(__doc__)
    articles, here, different = pathlib.Path(arguments[0]), pathlib.Path(__file__).parent, 0
    for name, article, first, last in SCRIPTS:
        text = "\n" + (articles / f"article-{article}.txt").read_bytes().decode().replace("\r\n", "\n")
        script = extract(text, first, last).encode()
        if arguments[1:]:
            (here / name).write_bytes(script)
        elif (here / name).read_bytes() != script:
            print(f"{name}: differs from what article {article} prints")
            different = 1
    sys.exit(different)


main(sys.argv[1:])
