import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade():
    op.create_table("note", sa.Column("id", sa.Integer, primary_key=True), sa.Column("text", sa.Text, nullable=False))
