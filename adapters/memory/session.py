"""Sessions: whose data somebody may reach, as the application's own login says; nothing of a request can say otherwise.

Membership is asked anew for each scope, so whoever has left a project reads and decides nothing in it any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from adapters.memory.adapter import MemoryAdapter
from adapters.memory.candidates import Candidate, Rule
from adapters.memory.facts import Fact
from adapters.memory.forget import Forgotten
from adapters.memory.preferences import Event, Resolution
from adapters.memory.sources import SourceKind
from adapters.memory.statements import Reach, Taken
from orchestrator import Refused, Scope


class NoAccess(Refused):
    """This session has no access to that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """Who is logged in. `is_member` tells whether the person is a member of a project now."""

    tenant: str
    user: str
    is_member: Callable[[str], bool]

    def scope(self, project: str | None = None, *, user: str | None = None) -> Scope:
        """Give the person's scope in a project, or what holds for the person in general.

        `user` is an id that a request names: it may only be the person's own. Raises `NoAccess`, in the same words
        whatever it is that the session does not reach, and `InvalidRequest` for a name that is none.
        """
        scope = Scope(tenant=self.tenant, user=self.user, project=project)
        if user is not None and user != self.user:
            raise NoAccess
        # Only True is a yes: what a forgotten `await` gives is not.
        if project is not None and self.is_member(project) is not True:
            raise NoAccess
        return scope


class SessionMemory:
    """The memory store for one session: every method names a project, or none, and nobody."""

    def __init__(self, adapter: MemoryAdapter, session: Session, rules: Mapping[str, Rule] | None = None) -> None:
        """Bind a session to a store; `rules` are those by which candidates may be accepted."""
        self._adapter, self._session = adapter, session
        self._candidates = adapter.candidates if rules is None else adapter.candidates.under(rules)

    def register_source(
        self,
        source: str,
        *,
        kind: str = SourceKind.USER_MESSAGE,
        derived_from: Collection[str] = (),
        project: str | None = None,
    ) -> int:
        """Accept a source, as `MemoryStore.register_source` does."""
        scope = self._session.scope(project)
        return self._adapter.store.register_source(scope, source, kind=kind, derived_from=derived_from)

    def put(
        self,
        key: str,
        value: str,
        source: str,
        expires: float = math.inf,
        *,
        user_statement: bool = False,
        project: str | None = None,
    ) -> int:
        """Store a new version of a key, confirmed, whatever it was before."""
        scope = self._session.scope(project)
        return self._adapter.store.put(scope, key, value, source, expires, user_statement=user_statement)

    def replace(
        self,
        key: str,
        value: str,
        source: str,
        *,
        expected_version: int,
        expires: float = math.inf,
        user_statement: bool = False,
        project: str | None = None,
    ) -> int:
        """Store a new version of a key, confirmed, if it is still at the version that was read."""
        return self._adapter.store.replace(
            self._session.scope(project),
            key,
            value,
            source,
            expected_version=expected_version,
            expires=expires,
            user_statement=user_statement,
        )

    def current(self, *, project: str | None = None) -> list[Fact]:
        """Give the facts that hold now."""
        return self._adapter.store.current(self._session.scope(project))

    def revision(self, *, project: str | None = None) -> int:
        """Give the revision under which an answer is cached: read it before the facts."""
        return self._adapter.store.revision_for_answers(self._session.scope(project))

    def forget(self, key: str, *, project: str | None = None) -> Forgotten:
        """Revoke a key in this store; copies are reached by a forget request."""
        return self._adapter.store.forget(self._session.scope(project), key)

    def take(
        self,
        key: str,
        value: str,
        source: str,
        *,
        reach: Reach,
        expires: float = math.inf,
        project: str | None = None,
    ) -> Taken:
        """Take a statement as far as it reaches."""
        scope = self._session.scope(project)
        return self._adapter.statements.take(scope, key, value, source, reach=reach, expires=expires)

    def propose(
        self,
        key: str,
        value: str,
        source: str,
        *,
        proposed_by: str,
        expires: float = math.inf,
        project: str | None = None,
    ) -> Candidate:
        """Keep what a program has read out of a source, until it is decided."""
        scope = self._session.scope(project)
        return self._candidates.propose(scope, key, value, source, proposed_by=proposed_by, expires=expires)

    def pending(self, *, limit: int = 100, after: str | None = None, project: str | None = None) -> Sequence[Candidate]:
        """Give the candidates that wait for a decision, in pages."""
        return self._candidates.pending(self._session.scope(project), limit=limit, after=after)

    def accept(
        self,
        candidate: str,
        *,
        source: str | None = None,
        rule: str | None = None,
        expected_version: int,
        project: str | None = None,
    ) -> int:
        """Let a candidate replace the version that was read, by a confirmation or a rule."""
        scope = self._session.scope(project)
        return self._candidates.accept(scope, candidate, source=source, rule=rule, expected_version=expected_version)

    def reject(self, candidate: str, *, project: str | None = None) -> None:
        """Blank a candidate for good."""
        self._candidates.reject(self._session.scope(project), candidate)

    def prefer(
        self, key: str, value: str | None, source: str, *, user_statement: bool = False, project: str | None = None
    ) -> Event:
        """Say what the person prefers, or by None that the preference is gone."""
        scope = self._session.scope(project)
        return self._adapter.preferences.prefer(scope, key, value, source, user_statement=user_statement)

    def resolve(self, key: str, as_of: int | None = None, *, project: str | None = None) -> Resolution:
        """Tell what the person prefers, in a project or in general."""
        return self._adapter.preferences.resolve(self._session.scope(project), key, as_of)
