"""Run by Alembic, over the connection that revisions.py hands in: locked, in a transaction, and committed there.

Batch mode, because SQLite alters a table by copying it.
"""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes["metadata"],
    render_as_batch=True,
)
context.run_migrations()
