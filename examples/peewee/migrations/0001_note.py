from peewee import TextField


def up(migrator, db):
    class Note(db.Model):
        text = TextField()

    db.create_tables([Note])
