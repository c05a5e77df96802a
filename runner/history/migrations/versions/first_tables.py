"""The first tables: runs, cells, builds, measurements, changes and accepted levels."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "builds",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_builds"),
        sa.UniqueConstraint("release", "digest", name="uq_builds_release_digest"),
    )
    op.create_table(
        "cells",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("cell", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cells"),
        sa.UniqueConstraint("cell", name="uq_cells_cell"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("device_name", sa.String(), nullable=False),
        sa.Column("series_device", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("driver", sa.String(), nullable=False),
        sa.Column("harness", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("cells", sa.Integer(), nullable=False),
        sa.Column("changes", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("run", name="uq_runs_run"),
    )
    op.create_table(
        "changes",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("cell_id", sa.Integer(), nullable=False),
        sa.Column("before", sa.String(), nullable=False),
        sa.Column("against", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("ratio", sa.Double(), nullable=True),
        sa.Column("ratio_low", sa.Double(), nullable=True),
        sa.Column("ratio_high", sa.Double(), nullable=True),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("confirmed_in", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.id"], name="fk_changes_cell_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_changes_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "position", name="pk_changes"),
    )
    op.create_table(
        "levels",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("cell_id", sa.Integer(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.id"], name="fk_levels_cell_id"),
        sa.PrimaryKeyConstraint("id", name="pk_levels"),
        sa.UniqueConstraint("cell_id", "device", "run", "at", name="uq_levels_cell_id_device_run_at"),
    )
    op.create_table(
        "measurements",
        sa.Column("cell_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("build_id", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("seconds_low", sa.Double(), nullable=True),
        sa.Column("seconds_high", sa.Double(), nullable=True),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("base_id", sa.Integer(), nullable=True),
        sa.Column("base_build_id", sa.Integer(), nullable=True),
        sa.Column("ratio", sa.Double(), nullable=True),
        sa.Column("ratio_low", sa.Double(), nullable=True),
        sa.Column("ratio_high", sa.Double(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["base_build_id"], ["builds.id"], name="fk_measurements_base_build_id"),
        sa.ForeignKeyConstraint(["base_id"], ["cells.id"], name="fk_measurements_base_id"),
        sa.ForeignKeyConstraint(["build_id"], ["builds.id"], name="fk_measurements_build_id"),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.id"], name="fk_measurements_cell_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_measurements_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("cell_id", "run_id", name="pk_measurements"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_measurements_run_id", "measurements", ["run_id"], unique=False)
