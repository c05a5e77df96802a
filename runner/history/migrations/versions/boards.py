"""The board of each measurement, for runs that several boards share."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, and the column that refers to it; both databases can add a column with its constraint."""
    op.create_table(
        "boards",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("series_device", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("device_name", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("driver", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_boards"),
        sa.UniqueConstraint(
            "series_device", "device", "host", "driver", name="uq_boards_series_device_device_host_driver"
        ),
    )
    reference = "CONSTRAINT fk_measurements_board_id REFERENCES boards (id)"
    op.execute(f"ALTER TABLE measurements ADD COLUMN board_id INTEGER {reference}")
