"""What Alembic runs for an upgrade: the connection comes from ``runner.history.upgrade``, in a transaction of its."""

from alembic import context

from runner.history.schema import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
