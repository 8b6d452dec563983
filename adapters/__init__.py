"""Our stores, each beside its adapter."""
