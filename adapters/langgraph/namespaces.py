"""Listing the namespaces that hold something: by their labels, from the front or from the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from langgraph.store.base import ListNamespacesOp, MatchCondition

from adapters.langgraph.names import Namespace, check_labels
from adapters.langgraph.pages import check_number, check_page
from orchestrator import InvalidRequest

_ANY: Final = "*"


def check_list(op: ListNamespacesOp) -> None:
    """Raise `InvalidRequest` for what no listing can mean."""
    check_page(op.limit, op.offset)
    if op.max_depth is not None:
        check_number("max_depth", op.max_depth, least=1)
    for condition in op.match_conditions or ():
        check_labels("path", condition.path)
        if condition.match_type not in {"prefix", "suffix"}:
            message = "match_type must be prefix or suffix"
            raise InvalidRequest(message, field="match_type")


def list_namespaces(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """Give one page of the namespaces that meet all conditions, each once, cut to `max_depth` labels, in order."""
    conditions = op.match_conditions or ()
    met = {namespace[: op.max_depth] for namespace in namespaces if all(_meets(namespace, c) for c in conditions)}
    return sorted(met)[op.offset : op.offset + op.limit]


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in {_ANY, label} for label, wanted in zip(labels, path, strict=True))
