"""Which copies an order names: those that hold something of it, whatever their names and dates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from adapters.backup import Copy, Policy, find
from orchestrator import EraseOrder, Seen, Selector, SelectorKind, Target
from tests.integration.backup_harness import (
    ANNA,
    AT_WORK,
    BERTA,
    EVERYWHERE,
    RENEWED,
    SEAT,
    SUBJECT,
    Stage,
    backups,
    sql,
)

__all__ = ["backups"]


def handles(order: EraseOrder) -> list[str]:
    assert {target.kind for target in order.targets} <= {"backup_copy"}
    return [target.id for target in order.targets]


def source(name: str) -> Selector:
    return Selector(kind=SelectorKind.SOURCE, value=name)


def key(name: str) -> Selector:
    return Selector(kind=SelectorKind.KEY, value=name)


def memory(item: str) -> Selector:
    return Selector(kind=SelectorKind.MEMORY, value=item)


def erased_alike(backups: Stage, order: EraseOrder, copies: Sequence[Copy]) -> None:
    """Hold that find, erase and verify mean the same copies by an order, and that nobody else's row changes."""
    before = [backups.told(copy) for copy in backups_of(backups)]
    found = backups.found(order)
    assert handles(found) == [copy.handle for copy in copies]
    assert backups.look(replace(found, known=order.known)).remaining == len(copies)
    assert (backups.erase(found).erased, backups.erase(found).already_absent) == (len(copies), len(copies))
    assert backups.look(replace(found, known=order.known)) == Seen()
    after = [backups.told(copy) for copy in backups_of(backups)]
    others = [{who: rows for who, rows in told.items() if who != "acme/anna"} for told in before]
    assert [{who: rows for who, rows in told.items() if who != "acme/anna"} for told in after] == others
    assert all(others), "there is somebody else in every copy"


def backups_of(backups: Stage) -> list[Copy]:
    return [copy for copy, _ in backups.backup.copies().copies]


def test_person_is_found_in_every_copy_that_was_taken_since_they_told_something(backups: Stage) -> None:
    first = backups.take()
    erased_alike(backups, backups.revoked(), [first])


def test_copy_in_which_a_person_is_not_is_not_named(backups: Stage) -> None:
    before = backups.take()
    backups.tell(AT_WORK, "colour", "green", "turn-9")
    after = backups.take()
    erased_alike(backups, backups.revoked(SUBJECT, AT_WORK), [after])
    assert [row[4] for row in backups.told(before)["acme/anna"]][:1] == ["passport"]
    assert "acme/anna" in backups.told(after), "what was told in another project stays"


def test_person_of_all_projects_is_found_in_each(backups: Stage) -> None:
    backups.tell(AT_WORK, "colour", "green", "turn-9")
    copy = backups.take()
    erased_alike(backups, backups.revoked(SUBJECT, EVERYWHERE), [copy])
    assert "acme/anna" not in backups.told(copy)


def test_key_is_found_with_all_its_versions_and_other_keys_stay(backups: Stage) -> None:
    backups.tell(ANNA, "seat", SEAT, "turn-7")
    backups.tell(ANNA, "seat", "I sit at the window.", "turn-8")
    copy = backups.take()
    erased_alike(backups, backups.revoked(key("seat")), [copy])
    assert {row[4] for row in backups.told(copy)["acme/anna"] if row[-1] == "live"} == {"passport"}


def test_fact_is_found_by_its_handle(backups: Stage) -> None:
    seat = backups.tell(ANNA, "seat", SEAT, "turn-7")
    copy = backups.take()
    erased_alike(backups, backups.revoked(memory(seat.id)), [copy])


def test_source_is_found_with_what_was_derived_from_it(backups: Stage) -> None:
    backups.tell(ANNA, "seat", SEAT, "turn-7")
    backups.tell(AT_WORK, "summary", SEAT, "summary-1", "turn-7")
    backups.tell(AT_WORK, "colour", "green", "turn-9")
    copy = backups.take()
    erased_alike(backups, backups.revoked(source("turn-7")), [copy])
    assert {row[4] for row in backups.told(copy)["acme/anna"]} >= {"colour", "passport"}
    assert {row[4] for row in backups.told(copy)["acme/anna"]}.isdisjoint({"seat", "summary"})


def test_copy_from_before_a_correction_is_found_though_the_request_names_the_correction(backups: Stage) -> None:
    """The copy has never heard of the id that is asked for: the source names the whole chain."""
    chain = backups.remember(ANNA, SEAT, "turn-7")
    before = backups.take()
    newest = backups.correct(ANNA, chain, RENEWED, "turn-8")
    after = backups.take()
    assert newest != chain
    erased_alike(backups, backups.revoked(memory(str(newest))), [before, after])
    assert not [row for copy in (before, after) for row in backups.told(copy)["acme/anna"] if row[1] in {chain, newest}]


def test_chain_that_one_version_names_goes_as_a_whole(backups: Stage) -> None:
    chain = backups.remember(ANNA, SEAT, "turn-7")
    newest = backups.correct(ANNA, chain, RENEWED, "turn-8")
    copy = backups.take()
    erased_alike(backups, backups.revoked(source("turn-8")), [copy])
    assert not [row for row in backups.told(copy)["acme/anna"] if row[1] in {chain, newest}]


def test_copy_may_hold_what_the_source_holds_no_more(backups: Stage) -> None:
    """Nothing is known of it then but what the request says: a source, what was derived from it, whole chains."""
    backups.tell(AT_WORK, "summary", SEAT, "summary-1", *told(backups, "turn-7"))
    backups.tell(AT_WORK, "colour", "green", "turn-9")
    chain = backups.remember(ANNA, SEAT, "turn-5")
    newest = backups.correct(ANNA, chain, RENEWED, "turn-6", "turn-7")
    copy = backups.take()
    erased_alike(backups, backups.order(source("turn-7")), [copy])
    rows = backups.told(copy)["acme/anna"]
    assert {row[4] for row in rows if row[-1] == "live"} == {"passport", "colour"}
    assert not [row for row in rows if row[1] in {chain, newest}]


def told(backups: Stage, name: str) -> tuple[str]:
    """Let a message come from which nothing is kept."""
    backups.memory.store.register_source(ANNA, name)
    return (name,)


def test_record_of_another_tenant_is_not_named_though_an_order_knows_its_id(backups: Stage) -> None:
    copy = backups.take()
    foreign = backups.rows(copy, "SELECT memory_id FROM memory_tenants WHERE tenant = 'other'")[0][0]
    (fact,) = (row[0] for row in backups.rows(copy, "SELECT fact_id FROM facts WHERE tenant = 'other'"))
    known = (Target(kind="memory", id=str(foreign), version=foreign), Target(kind="fact", id=fact, version=1))
    order = replace(backups.order(key("nothing")), known=known)
    found = backups.found(order)
    assert handles(found) == []
    assert backups.look(order) == Seen()
    before = backups.told(copy)
    named = Target(kind="backup_copy", id=copy.handle, derived_of=f"memory:{foreign}@{foreign}")
    assert backups.erase(replace(order, targets=(named,))).already_absent == 1
    assert backups.told(copy) == before


@pytest.mark.parametrize("value", ["0", "007", "9" * 19, "9" * 512, "\u0663", "1 OR 1=1"])
def test_id_that_is_none_names_no_chain(backups: Stage, value: str) -> None:
    backups.take()
    assert handles(backups.found(backups.order(memory(value)))) == []


def test_what_has_expired_is_found_by_what_the_source_named_and_by_nothing_else(backups: Stage) -> None:
    seat = backups.tell(ANNA, "seat", SEAT, "turn-7")
    chain = backups.remember(ANNA, SEAT, "turn-7")
    copy = backups.take()
    order = backups.order(Selector(kind=SelectorKind.EXPIRED), EVERYWHERE)
    assert handles(backups.found(order)) == []
    known = (seat, Target(kind="memory", id=str(chain), version=chain))
    with sql(backups.folder / "memory.db") as live:  # what a revoke of this job writes down
        live.executemany(
            "INSERT INTO revocation_targets VALUES (?, ?, ?, ?, ?)",
            [(str(order.job), n, target.kind, target.id, target.version) for n, target in enumerate(known, 1)],
        )
    erased_alike(backups, replace(order, known=known), [copy])
    assert len(backups.told(copy)["acme/anna"]) == 2, "what lives is the person's still"


def test_what_was_told_again_after_the_request_is_not_named(backups: Stage) -> None:
    """A copy that was taken later knows up to where the job reaches."""
    order = backups.revoked(SUBJECT, EVERYWHERE)
    (done,) = backups.memory.erase([replace(order, targets=order.known)])
    assert done.erased == len(order.known)
    backups.tell(ANNA, "seat", SEAT, "turn-9")
    fresh = backups.take()
    assert handles(backups.found(order)) == []
    assert not backups.look(order).remaining
    with sql(backups.folder / "memory.db") as live:
        live.execute("DELETE FROM source_revocations")
    assert handles(backups.found(order)) == [], "where the source does not tell, the copy does"
    assert not backups.look(order).remaining
    assert [row[4] for row in backups.told(fresh)["acme/anna"]] == ["seat"]


@pytest.mark.parametrize("kind", ["fact", "memory", "event", "candidate"])
def test_reach_of_a_job_is_what_the_source_says_where_a_copy_says_less(backups: Stage, kind: str) -> None:
    """A source that was put back revokes anew for a job, and reaches further than a copy of the time between knows."""
    order = backups.revoked(SUBJECT, EVERYWHERE)
    backups.memory.erase([replace(order, targets=order.known)])
    store = backups.memory
    store.store.register_source(ANNA, "turn-9")
    match kind:
        case "fact":
            backups.tell(ANNA, "seat", SEAT, "turn-9")
        case "memory":
            backups.remember(ANNA, SEAT, "turn-9")
        case "event":
            store.preferences.prefer(ANNA, "seat", SEAT, "turn-9", user_statement=True)
        case _:
            store.candidates.propose(ANNA, "seat", SEAT, "turn-9", proposed_by="summariser")
    fresh = backups.take()
    assert handles(backups.found(order)) == []
    with sql(backups.folder / "memory.db") as live:
        live.execute("UPDATE source_revocations SET cut_off = cut_off + 1 WHERE job = ?", (str(order.job),))
    erased_alike(backups, replace(order, known=()), [fresh])


def test_what_a_hold_covers_is_left_in_the_copies(backups: Stage) -> None:
    seat = backups.tell(ANNA, "seat", SEAT, "turn-7")
    chain = backups.remember(ANNA, SEAT, "turn-7")
    copy, held = backups.take(), frozenset({seat.id, str(chain)})
    order = replace(backups.revoked(SUBJECT, ANNA, held=held), held=held)
    found = backups.found(order)
    assert backups.erase(found).erased == 1
    stays = {row[6] if len(row) > 10 else row[1] for row in backups.told(copy)["acme/anna"]}
    assert stays == {seat.id, chain}
    assert handles(backups.found(order)) == [], "nothing is left that may go"
    assert backups.look(replace(found, held=frozenset())).remaining == 1, "and it is not forgotten"
    assert backups.erase(replace(found, held=frozenset())).erased == 1


def test_copy_that_cannot_be_edited_is_found_as_well(backups: Stage) -> None:
    copies = [backups.take(), backups.take(Policy.WINDOW, days=30)]
    assert handles(backups.found(backups.revoked())) == [copy.handle for copy in copies]


def test_pages_go_on_where_the_last_one_ended(backups: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "MAX_PAGE", 2)
    copies = [backups.take() for _ in range(5)]
    order, seen = backups.revoked(), list[str]()
    sizes = []
    while True:
        (holding,) = backups.backup.find([order])
        seen += [target.id for target in holding.targets]
        sizes.append(len(holding.targets))
        if holding.cursor is None:
            break
        order = replace(order, cursor=holding.cursor)
    assert seen == [copy.handle for copy in copies]
    assert sizes == [2, 2, 1]


def test_orders_of_a_batch_are_answered_each_in_its_place(backups: Stage) -> None:
    copy = backups.take()
    nobody = backups.order(SUBJECT, replace(ANNA, user="nobody"))
    orders = [backups.revoked(), nobody, backups.revoked(SUBJECT, BERTA)]
    found = backups.backup.find(orders)
    assert [[target.id for target in holding.targets] for holding in found] == [[copy.handle], [], [copy.handle]]
    assert found[0].targets[0].derived_of != found[2].targets[0].derived_of, "each names a record of its own"


def test_looking_changes_nothing_in_the_folder(backups: Stage) -> None:
    backups.take()
    order = backups.revoked()

    def seen() -> list[tuple[str, int, int]]:
        paths = sorted(backups.copies_folder.rglob("*"))
        return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]

    before = seen()
    assert backups.look(backups.found(order)).remaining == 1
    assert seen() == before


def test_without_a_folder_there_is_no_copy_and_none_is_made(backups: Stage) -> None:
    order = backups.revoked()
    found = backups.found(order)
    assert handles(found) == []
    assert backups.look(order) == Seen()
    assert not backups.copies_folder.exists()
