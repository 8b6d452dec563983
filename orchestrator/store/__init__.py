"""The control database: the only SQLAlchemy of the orchestrator."""
