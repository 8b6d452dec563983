"""The one task: a hint has come, work off what is due."""

from __future__ import annotations

from celery import Celery

from orchestrator.domain.unit import Phase
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine
from workers.celery_app import TASK


def register(app: Celery, engine: Engine) -> None:
    """Bind the task to the engine of this process."""

    @app.task(name=TASK, shared=False)  # type: ignore[no-untyped-call, untyped-decorator] # Celery's edge
    def run(adapter: str, phase: str) -> None:
        drain(engine, adapter, Phase(phase))
