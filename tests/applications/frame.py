"""Writes a thousand rows by pandas, through SQLAlchemy, and reads them back; says how many there are."""

import sys

import pandas
import sqlalchemy

engine = sqlalchemy.create_engine(f"sqlite:///{sys.argv[1]}")
rows = pandas.DataFrame({"number": range(1000), "text": "a text to be found"})
rows.to_sql("frame", engine, index=False, if_exists="replace")
with engine.begin() as connection:
    connection.execute(sqlalchemy.text("UPDATE frame SET number = number + 1"))
assert pandas.read_sql("SELECT sum(number) AS total FROM frame", engine)["total"][0] == 500500
with engine.connect() as connection:
    print(connection.execute(sqlalchemy.text("SELECT count(*) FROM frame")).scalar())
