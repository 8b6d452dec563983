"""Records that stand under a key beside the facts: events of preferences, and candidates. How a job takes them."""
