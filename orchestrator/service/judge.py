"""Holding an adapter's answer against what was written down before: the engine makes the receipt, not the adapter."""

from __future__ import annotations

from orchestrator.domain.codes import ErrorCode, Residual
from orchestrator.domain.contract import MAX_PAGE, Erased, Holding, Revocation, Seen
from orchestrator.domain.errors import BadAnswer, Permanent, Transient
from orchestrator.domain.unit import Claimed, Finished, Outcome, Phase, Receipt
from orchestrator.service.look import Looked


def judge(unit: Claimed, answer: object) -> Finished:
    """Turn one answer into what is stored; raise for one that is no end of the unit.

    `BadAnswer` means that the counts cannot be true, `Transient` with a code that it has to
    be asked again (partial, inconclusive), `Permanent` that a person has to look.
    """
    match unit.phase, answer:
        case Phase.REVOKE, Revocation():
            return _revoked(unit, answer)
        case Phase.FIND, Holding():
            return _found(unit, answer)
        case Phase.ERASE, Erased():
            return _erased(unit, answer)
        case Phase.VERIFY, Seen():
            return _seen(unit, Looked(seen=answer))
        case Phase.VERIFY, Looked():
            return _seen(unit, answer)
        case Phase.CLOSE, Seen():
            return _closed(unit, answer)
        case _:
            raise BadAnswer


def _revoked(unit: Claimed, answer: Revocation) -> Finished:
    count = len(answer.targets)
    _page_of(count)
    if not answer.left <= unit.order.held:
        raise BadAnswer
    outcome = Outcome.REVOKED if count or unit.page else Outcome.NOTHING_FOUND
    # A revoked record still lies in the source: the receipt says so.
    if not 0 <= answer.unprobed <= count:
        raise BadAnswer
    residuals = frozenset({Residual.NOT_PROBEABLE} if answer.unprobed else ())
    receipt = Receipt(outcome=outcome, expected=count, remaining=count, residuals=residuals)
    return Finished(
        claimed=unit,
        receipt=receipt,
        targets=answer.targets,
        tombstones=answer.tombstones,
        fingerprints=answer.fingerprints,
        revision=answer.revision,
        left=answer.left,
        cursor=answer.cursor,
    )


def _found(unit: Claimed, answer: Holding) -> Finished:
    _page_of(len(answer.targets))
    if answer.no_lineage < 0:
        raise BadAnswer
    return Finished(
        claimed=unit,
        receipt=None,
        targets=answer.targets,
        fingerprints=answer.fingerprints,
        no_lineage=answer.no_lineage,
        cursor=answer.cursor,
    )


def _erased(unit: Claimed, answer: Erased) -> Finished:
    if answer.unsupported:
        raise Permanent(code=ErrorCode.UNSUPPORTED)
    expected, scheduled = len(unit.order.targets), len(answer.windows)
    remaining = expected + answer.extra - answer.erased - answer.already_absent
    if min(answer.erased, answer.already_absent, answer.extra) < 0 or remaining < scheduled:
        raise BadAnswer
    if remaining > scheduled:
        raise Transient(code=ErrorCode.PARTIAL)
    outcome = Outcome.SCHEDULED if scheduled else Outcome.ERASED if answer.erased else Outcome.NOTHING_FOUND
    if outcome is Outcome.NOTHING_FOUND and answer.extra:
        raise BadAnswer
    receipt = Receipt(
        outcome=outcome,
        expected=expected,
        erased=answer.erased,
        already_absent=answer.already_absent,
        scheduled=scheduled,
        extra=answer.extra,
        remaining=remaining,
        residuals=answer.residuals,
    )
    return Finished(claimed=unit, receipt=receipt, windows=tuple(answer.windows.items()))


def _seen(unit: Claimed, looked: Looked) -> Finished:
    answer = looked.seen
    if answer.remaining < 0:
        raise BadAnswer
    if answer.inconclusive:
        raise Transient(code=ErrorCode.INCONCLUSIVE)
    if answer.remaining and unit.last_round:
        # Another round would find what the last ones found: a person has to look.
        raise Permanent(code=ErrorCode.STILL_PRESENT)
    outcome = Outcome.PRESENT if answer.remaining else Outcome.ABSENT
    receipt = Receipt(
        outcome=outcome,
        expected=len(unit.order.targets),
        remaining=answer.remaining,
        residuals=looked.residuals,
        reach=looked.reach,
        scrub_run=looked.run,
    )
    return Finished(claimed=unit, receipt=receipt)


def _closed(unit: Claimed, answer: Seen) -> Finished:
    if answer.remaining < 0:
        raise BadAnswer
    if answer.inconclusive:
        raise Transient(code=ErrorCode.INCONCLUSIVE)
    if answer.remaining:
        raise Transient(code=ErrorCode.STILL_PRESENT)
    return Finished(claimed=unit, receipt=Receipt(outcome=Outcome.CLOSED, expected=1))


def _page_of(count: int) -> None:
    if count > MAX_PAGE:
        raise BadAnswer
