"""Actions that wait for somebody's approval, and the gateway through which an approved one reaches its tool, once."""
