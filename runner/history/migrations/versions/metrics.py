"""The metric of each series: a cell has one for its time, and one for each further metric."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; what is stored is about time."""
    op.add_column("cells", sa.Column("metric", sa.String(), nullable=False, server_default="time"))
