"""Celery as it was measured to lose nothing that SQL does not repair: a message is a hint, SQL is the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery import Celery

from orchestrator.domain.unit import Phase
from orchestrator.settings import Settings
from workers.folder_broker import TRANSPORT

TASK = "expunge.run"


def queue(adapter: str) -> str:
    """Name the queue of an adapter: a slow store delays nobody else's hints."""
    return f"expunge.{adapter}"


def build(settings: Settings) -> Celery:
    """Make the Celery app of a deployment; nothing is registered at import."""
    engine, url = settings.engine, settings.broker_url.get_secret_value()
    app = Celery("expunge", broker=url)  # type: ignore[no-untyped-call] # Celery's edge
    common = {
        "task_ignore_result": True,  # SQL is the result store
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,  # the attempts counter in SQL ends a task that kills its own process
        "worker_prefetch_multiplier": 1,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # A broker that refuses one operation (a queue whose leader is moving, a full disk) gets a new connection;
        # by default the worker would end there, and with status 0.
        "broker_channel_error_retry": True,
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2},
        "task_soft_time_limit": engine.soft_time_limit.total_seconds(),
        "task_time_limit": engine.time_limit.total_seconds(),
        # An idle worker stops at once: it holds no delayed message, because delays are kept in SQL.
        "worker_soft_shutdown_timeout": 20,
        "worker_timer_precision": 0.2,  # how long a worker that is to stop waits for its timer, in seconds
        "worker_max_tasks_per_child": 1000,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
    }
    app.conf.update({**common, **_of_broker(url, settings)})
    return app


class CeleryBroker:
    """`domain.ports.Broker` over Celery: names of adapter and phase, no personal data."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def announce(self, adapter: str, phase: Phase) -> None:
        """Send one hint to the adapter's queue."""
        hint = (adapter, phase.value)
        self._app.send_task(TASK, args=hint, queue=queue(adapter))  # type: ignore[no-untyped-call] # Celery's edge


def _of_broker(url: str, settings: Settings) -> dict[str, Any]:
    match urlsplit(url).scheme:
        case "filesystem":
            return _filesystem(settings.state_dir)
        case "redis" | "rediss":
            transport = {
                "visibility_timeout": settings.engine.visibility_timeout.total_seconds(),
                "unacked_restore_interval": 10,
                "unacked_restore_throttle": 1,
                "socket_timeout": 30,  # a shorter one breaks the client's blocking pop
                "socket_connect_timeout": 5,
                "socket_keepalive": True,
                "health_check_interval": 25,
                "retry_on_timeout": True,
            }
            return {
                "broker_transport_options": transport,
                "worker_cancel_long_running_tasks_on_connection_loss": False,
            }
        case _:
            return {
                # Our queues are none of the default one's: what they are has its own settings.
                "task_create_missing_queue_type": "quorum",
                "task_create_missing_queue_exchange_type": "topic",
                "task_default_queue_type": "quorum",
                "task_default_exchange_type": "topic",
                "broker_transport_options": {"confirm_publish": True},
                "worker_detect_quorum_queues": True,
                "worker_cancel_long_running_tasks_on_connection_loss": True,
                "broker_heartbeat": 30,
            }


def _filesystem(state_dir: Path) -> dict[str, Any]:
    folders = {name: state_dir / "broker" / name for name in ("messages", "control")}
    for folder in folders.values():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "broker_transport": TRANSPORT,
        "broker_transport_options": {
            "data_folder_in": str(folders["messages"]),
            "data_folder_out": str(folders["messages"]),
            "control_folder": str(folders["control"]),
            "polling_interval": 0.05,
        },
        "worker_prefetch_multiplier": 8,
        "worker_enable_remote_control": False,  # its files never expire on this broker
    }
