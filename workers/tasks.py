"""The one task: a hint has come, work off what is due."""

from __future__ import annotations

from collections.abc import Callable

from celery import Celery

from orchestrator.domain.unit import Phase
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine
from workers.celery_app import TASK


def register(app: Celery, engine: Callable[[], Engine]) -> None:
    """Bind the task to the engine of the process that runs it."""

    @app.task(name=TASK, shared=False)  # type: ignore[no-untyped-call, untyped-decorator] # Celery's edge
    def run(adapter: str, phase: str) -> None:
        drain(engine(), adapter, Phase(phase))
