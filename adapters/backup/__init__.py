"""Backups of the source database: a folder of copies with a manifest, and the adapter that reaches into them."""

from adapters.backup.adapter import BackupAdapter
from adapters.backup.manifest import Copy, Policy

__all__ = ["BackupAdapter", "Copy", "Policy"]
