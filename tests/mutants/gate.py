"""One rule of the gate changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change, together

MUTATIONS: Final = (
    change(
        "ancestry is ignored",
        "orchestrator/gate/decide.py",
        """        for source in (origin.id, *origin.ancestors):
            wanted""",
        """        for source in (origin.id,):
            wanted""",
        "tests/unit/test_gate_source.py::test_what_was_derived_from_a_forgotten_source_is_refused",
        "tests/integration/test_memory_suppression.py::test_a_revoked_source_and_what_derives_from_it_recreate_nothing",
    ),
    change(
        "a cut-off is exclusive",
        "orchestrator/gate/decide.py",
        "origin.position <= tombstone.cut_off",
        "origin.position < tombstone.cut_off",
        "tests/unit/test_gate_key.py::test_a_forgotten_key_is_refused_up_to_the_cut_off[10-key_tombstoned]",
        "tests/unit/test_gate_subject.py::test_a_forgotten_subject_is_refused_up_to_the_cut_off_and_may_return_after_it[user-10-subject_tombstoned]",
    ),
    change(
        "a confirmation from before the erasure admits a text",
        "orchestrator/gate/decide.py",
        "not origin.ancestors and origin.position > tombstone.cut_off",
        "not origin.ancestors",
        "tests/unit/test_gate_text.py::test_only_a_fresh_confirmation_lets_a_forgotten_text_pass[at-the-cut-off]",
        "tests/unit/test_gate_text.py::test_only_a_fresh_confirmation_lets_a_forgotten_text_pass[older]",
    ),
    change(
        "what was derived confirms a text",
        "orchestrator/gate/decide.py",
        "write.confirmed and not origin.ancestors and",
        "write.confirmed and",
        "tests/unit/test_gate_text.py::test_only_a_fresh_confirmation_lets_a_forgotten_text_pass[derived]",
    ),
    change(
        "a tombstone under an unknown key is passed over",
        "orchestrator/gate/decide.py",
        """            return Refusal.KEYRING_INCOMPLETE
        if write.origin""",
        """            pass
        if write.origin""",
        "tests/unit/test_gate_rotation.py::test_a_tombstone_under_an_unknown_key_refuses_every_write",
    ),
    change(
        "a source that was never accepted may write",
        "orchestrator/gate/decide.py",
        "            return Refusal.UNKNOWN_SOURCE\n",
        "            return None\n",
        "tests/unit/test_gate_decide.py::test_a_source_that_was_never_registered_is_refused_without_any_tombstone",
    ),
    change(
        "a confirmation is not used up",
        "adapters/memory/gate.py",
        """    if fresh:
        use(connection, said)""",
        """    if False:
        use(connection, said)""",
        "tests/integration/test_memory_suppression.py::test_only_a_fresh_statement_of_the_user_brings_a_text_back_and_once",
    ),
    together(
        "the gate is asked outside of the transaction that writes",
        (
            (
                "adapters/memory/store.py",
                "from adapters.memory.forget import Forgotten, forget\n",
                """from adapters.memory.forget import Forgotten, forget
from adapters.memory.gate import pass_gate
""",
            ),
            (
                "adapters/memory/store.py",
                """        facts.check(key, value, source, expires)
        with counted(self.refused), writing(""",
                """        with counted(self.refused), reading(self._engine, [scope.tenant]) as connection:
            pass_gate(connection, self._gate, scope, key, value, source, user_statement=user_statement)
        with counted(self.refused), writing(""",
            ),
            ("adapters/memory/facts.py", "pass_gate(connection, gate, scope, key, value, source,", "dict("),
        ),
        "tests/integration/test_memory_suppression.py::test_an_extraction_that_waits_for_the_revocation_is_blocked",
    ),
)
