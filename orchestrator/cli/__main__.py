"""`python -m orchestrator.cli`: what `expunge` runs."""

from orchestrator.cli import main

main()
