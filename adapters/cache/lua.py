"""The scripts: what must happen together runs inside the server."""

from __future__ import annotations

from typing import Final

FILL: Final = """
-- KEYS: entry, fence, fence of the user in general, set of entry keys, set of scopes
-- ARGV: revision, ttl in ms, scope, answer, made_from
-- A job of all projects raises the second fence: it cannot know of a project that nothing was ever filled in.
for n = 2, 3 do
  if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[n]) or '0') then
    return 0
  end
end
-- Into the sets first: a script that fails is not taken back, and what no set names would not be found.
redis.call('SADD', KEYS[4], KEYS[1])
redis.call('SADD', KEYS[5], ARGV[3])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'answer', ARGV[4], 'scope', ARGV[3], 'made_from', ARGV[5], 'revision', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
-- Entries expire without leaving the set: each fill looks at two members, which keeps the dead ones few.
for _, key in ipairs(redis.call('SRANDMEMBER', KEYS[4], 2)) do
  if redis.call('EXISTS', key) == 0 then
    redis.call('SREM', KEYS[4], key)
  end
end
return 1
"""
"""Compare with the fences, enter into the sets, write and expire, with nothing of anybody else's in between."""

RAISE: Final = """
-- KEYS: fences; ARGV: revision
for _, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or '0') < tonumber(ARGV[1]) then
    redis.call('SET', key, ARGV[1])
  end
end
return #KEYS
"""
"""Raise fences; a fence never sinks."""

REMOVE: Final = """
-- KEYS: set of entry keys, entries
local gone = {}
for i = 2, #KEYS do
  gone[i - 1] = redis.call('UNLINK', KEYS[i])
  redis.call('SREM', KEYS[1], KEYS[i])
end
return gone
"""
"""Unlink entries and take them off the set in one step, so that no fill comes between; 1 for each that was there."""
