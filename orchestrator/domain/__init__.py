"""Pure rules and types: the standard library only."""
