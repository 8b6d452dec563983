"""`expunge bench`: how fast the product is beside scripts that people would write by hand."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from orchestrator.domain.errors import InvalidRequest


def bench(
    subjects: Annotated[
        int, typer.Option(min=1, help="Data subjects, each with three facts and three answers.")
    ] = 5000,
    repeats: Annotated[int, typer.Option(min=1, max=99, help="Runs of each; medians are told.")] = 5,
    tasks: Annotated[int, typer.Option(min=0, help="Subjects of the one-task-per-unit script; 0 leaves it out.")] = 200,
    redis_url: Annotated[str, typer.Option(help="An empty Redis database for the cache: it is flushed.")] = "",
    postgresql_url: Annotated[str, typer.Option(help="A PostgreSQL server where databases may be made.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Compare the engine with scripts written by hand. Figures mean something only beside each other, in one run.

    Example: expunge bench --redis-url redis://127.0.0.1:6379/9 --subjects 1000 --json
    """
    if not redis_url:
        message = "name an empty Redis database for the cache with --redis-url; it is flushed"
        raise InvalidRequest(message, field="redis-url")
    # What measures loads brokers and drivers, which no other command needs.
    from workers.measure import compare  # noqa: PLC0415

    def say(line: str) -> None:
        typer.echo(line, err=True)

    answer = compare(subjects, repeats, tasks, redis_url, postgresql_url, say)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    for name, speed in answer["jobs_per_second"].items():
        said = ", ".join(f"{way} {rate}/s" for way, rate in speed.items())
        typer.echo(f"{name}: {answer['ratio_to_floor'][name]} x the floor ({said})")
