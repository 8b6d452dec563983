"""Preferences: a log of what users said that they prefer, and what holds of each key."""

from adapters.memory.preferences.event import Event, EventNotFound, Operation
from adapters.memory.preferences.log import PreferenceLog
from adapters.memory.preferences.resolve import Resolution, State
from adapters.memory.preferences.state import Applying, Current

__all__ = ["Applying", "Current", "Event", "EventNotFound", "Operation", "PreferenceLog", "Resolution", "State"]
