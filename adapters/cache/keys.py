"""How the cache names its keys: by keyed handles, so that no key holds a person, a scope or a question.

    {prefix}:{<subject>}:keys           set: keys of this subject's entries
    {prefix}:{<subject>}:scopes         set: handles of the scopes that were ever filled
    {prefix}:{<subject>}:rev:<scope>    number: fills made under an older revision are refused
    {prefix}:{<subject>}:a:<answer>     hash: answer, scope, made_from, revision

A subject is the handle of its tenant and then its own: whether a key is another user's of the same tenant can be
told, whose it is cannot. The braces put all keys of a subject into one slot of a cluster, so that a script may touch
them together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator import Gate, Scope

_TENANT_DIGITS = 16
_HANDLE_DIGITS = 32


@dataclass(frozen=True, kw_only=True)
class SubjectKeys:
    """Every key of one user of one tenant begins with `base`, every key of that tenant with `tenant`."""

    tenant: str
    base: str

    @property
    def members(self) -> str:
        """Name the set of entry keys."""
        return f"{self.base}keys"

    @property
    def scopes(self) -> str:
        """Name the set of scope handles."""
        return f"{self.base}scopes"

    def fence(self, scope: str) -> str:
        """Name the revision fence of a scope, given its handle."""
        return f"{self.base}rev:{scope}"

    @property
    def entries(self) -> str:
        """Give what every entry key begins with."""
        return f"{self.base}a:"

    def keeps_books(self, key: str) -> bool:
        """Tell whether a key of this subject is one of ours that holds no answer."""
        return key in {self.members, self.scopes} or key.startswith(self.fence(""))


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The names of one cache: its prefix, and the gate that makes the handles."""

    gate: Gate
    prefix: str

    def subject(self, scope: Scope) -> SubjectKeys:
        """Give the keys of the user of a scope, whatever the project."""
        tenant = f"{self.prefix}:{{{self.gate.handle(scope.tenant, 'cache-tenant')[:_TENANT_DIGITS]}"
        handle = self.gate.handle(scope.tenant, "cache", scope.user)
        return SubjectKeys(tenant=tenant, base=f"{tenant}{handle}}}:")

    def scope(self, scope: Scope) -> str:
        """Give the handle of exactly this scope."""
        return self.gate.handle(scope.tenant, "cache-scope", scope.canonical())

    def entry(self, scope: Scope, question: str) -> str:
        """Name the entry of a question in a scope."""
        handle = self.gate.handle(scope.tenant, "cache-answer", scope.canonical(), question)
        return f"{self.subject(scope).entries}{handle}"

    def base_of(self, key: str) -> str:
        """Cut a key to what tells its subject: all bases of a cache have one length."""
        return key[: len(self.prefix) + len(":{}:") + _TENANT_DIGITS + _HANDLE_DIGITS]

    def pattern(self) -> str:
        """Give the glob pattern of all keys of this cache, with the prefix taken literally."""
        return re.sub(r"([\\*?\[\]^-])", r"\\\1", self.prefix) + ":*"
