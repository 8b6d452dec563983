"""The roles of `deploy/compose.yaml` as plain processes: same commands, same environment, same order, same passwords.

What an engine would do is done here by hand: names of services become addresses, secrets become files of this folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from adapters.memory.engine import reading
from adapters.memory.postgresql_rows import bound
from orchestrator import StoreUnreachable
from tests.integration.deploy_harness import DEPLOY, image_environment, read_yaml
from tests.integration.rows_harness import bind, opened
from tests.postgres import Server, server
from tests.servers import redis_binary

COMPOSE = read_yaml((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
ANN = ("--tenant", "acme", "--user", "ann", "--project", "trips")
SCRAM = "local all postgres trust\nlocal all all scram-sha-256\n"


@dataclass
class Host:
    """A server without an engine: starts the services of compose.yaml on folders of its own, and ends them."""

    folder: Path
    postgres: Server
    ports: dict[str, int] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def secrets(self) -> Path:
        return self.folder / "deploy" / "secrets"

    def environment(self, service: str) -> dict[str, str]:
        """Give what a service's process is told, with the places of this host instead of those of a container."""
        said = SERVICES[service]
        own = {k: v for k, v in os.environ.items() if not k.startswith(("EXPUNGE_", "PG"))}
        told = {**(image_environment() if "build" in said else {}), **said.get("environment", {})}
        given = dict(_secrets(said))
        for name, value in told.items():
            match value.split("/"):
                case ["", "run", "secrets", target]:
                    own[name] = str(self.secrets / given[target])
                case _:
                    own[name] = self._here(value)
        own["PATH"] = f"{Path(sys.executable).parent}:{self.postgres.bin_path}:{os.environ['PATH']}"
        if "build" in said:
            own["EXPUNGE_DIR"] = str(self.folder / "state")
        return own

    def _here(self, value: str) -> str:
        value = re.sub(r"@postgres/(\w+)", rf"@/\1?host={self.postgres.pgdata}", value)
        return re.sub(r"redis://(\w+):6379/", lambda m: f"redis://127.0.0.1:{self.ports[m[1]]}/", value)

    def run(self, service: str, *words: str) -> tuple[int, str]:
        """Run a command to its end as `docker compose run` or `exec` would: in the environment of a service."""
        done = subprocess.run(
            words, env=self.environment(service), cwd=self.folder, capture_output=True, timeout=60, check=False
        )
        assert "Traceback" not in done.stderr.decode(), done.stderr.decode()
        return done.returncode, done.stdout.decode()

    def start(self, service: str) -> None:
        """Start a service when what it waits for is there; a one-shot is run to its end."""
        for other, how in SERVICES[service].get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert self.healthy(other), f"{service} waits for {other}"
            else:
                assert self.running[other].returncode == 0, f"{service} waits for the end of {other}"
        command = ["expunge", *SERVICES[service]["command"]]
        if "build" not in SERVICES[service]:
            command = self._as_server(service, SERVICES[service]["command"])
        with (self.folder / f"{service}.log").open("ab") as log:
            self.running[service] = subprocess.Popen(command, env=self.environment(service), stderr=log, stdout=log)
        if SERVICES[service]["restart"] == "no":
            self.running[service].wait(60)

    def _as_server(self, service: str, command: list[str]) -> list[str]:
        folder = self.folder / service
        folder.mkdir()
        self.ports[service] = _free_port()
        here = ["--port", str(self.ports[service]), "--bind", "127.0.0.1", "--dir", str(folder)]
        return [redis_binary(), *command[1:], *here]

    def healthy(self, service: str) -> bool:
        """Make the health check of a service until it passes, ten seconds at most."""
        words: list[str] = SERVICES[service]["healthcheck"]["test"][1:]
        if service == "postgres":
            words = [*words, f"--host={self.postgres.pgdata}"]  # the wheel's server has a socket alone
        elif service in self.ports:
            words = [*words[:1], "-p", str(self.ports[service]), *words[1:]]
        until = time.monotonic() + 10
        while (code := self.run(service, *words)[0]) and time.monotonic() < until:
            time.sleep(0.05)
        return code == 0

    def stop(self, service: str) -> tuple[int, float]:
        """Stop a service as an engine does; give its exit status and how long that took."""
        process, began = self.running.pop(service), time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(float(SERVICES[service].get("stop_grace_period", "10s")[:-1]))
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        return status, time.monotonic() - began


def _secrets(service: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for secret in service.get("secrets", []):
        yield (secret, secret) if isinstance(secret, str) else (secret["target"], secret["source"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """Give a host on which `secrets.sh` and the database's own beginning are done, and nothing of ours has begun."""
    redis_binary()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        (folder / "deploy").mkdir()
        shutil.copy(DEPLOY / "secrets.sh", folder / "deploy")
        made = subprocess.run(["sh", "deploy/secrets.sh"], cwd=folder, capture_output=True, check=False)
        assert made.returncode == 0, made.stderr
        (folder / "postgres").mkdir()
        running = stack.enter_context(server(folder / "postgres"))
        host = Host(folder, running)
        stack.callback(lambda: [host.stop(service) for service in list(host.running)])
        environment = host.environment("postgres") | {"PGHOST": str(running.pgdata)}
        begun = subprocess.run(
            ["sh", str(DEPLOY / "postgres-init.sh")], env=environment, capture_output=True, check=False
        )
        assert begun.returncode == 0, begun.stderr
        # The image asks for passwords over the network; the wheel's server believes everybody until it is told.
        (Path(running.pgdata) / "pg_hba.conf").write_text(SCRAM)
        with psycopg.connect(running.get_uri(), autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
        yield host


def test_passwords_are_made_once_and_are_closed_to_others(host: Host) -> None:
    files = {path.name: path for path in host.secrets.iterdir()}
    assert {f"./secrets/{name}" for name in files} == {s["file"] for s in COMPOSE["secrets"].values()}
    assert host.secrets.stat().st_mode & 0o777 == 0o700
    # What PostgreSQL's clients read; a file that others may read they do not take.
    assert {n: p.stat().st_mode & 0o077 for n, p in files.items() if n.endswith("_pgpass")} == {
        "control_pgpass": 0,
        "worker_pgpass": 0,
    }
    words = {files[f"{name}_password"].read_text() for name in ("postgres", "control", "stores", "application")}
    assert len(words) == 4
    assert all(len(word) == 48 for word in words)
    before = {name: path.read_bytes() for name, path in files.items()}
    again = subprocess.run(["sh", "secrets.sh"], cwd=host.folder / "deploy", capture_output=True, check=False)
    assert (again.returncode, b"nothing was changed" in again.stderr) == (1, True)
    assert {path.name: path.read_bytes() for path in host.secrets.iterdir()} == before
    assert [path.name for path in (host.folder / "deploy").glob("secrets.*")] == ["secrets.sh"]


def test_no_user_of_the_database_enters_what_is_the_other_one_s(host: Host) -> None:
    for user, database, opens in (
        ("control", "control", True),
        ("stores", "source", True),
        ("stores", "vectors", True),
        ("control", "source", False),
        ("control", "vectors", False),
        ("stores", "control", False),
    ):
        told = {"PGPASSFILE": str(host.secrets / "worker_pgpass")}
        done = subprocess.run(
            ["psql", "--no-psqlrc", "--no-password", f"--host={host.postgres.pgdata}", "-U", user, "-c", "", database],
            env={**host.environment("postgres"), **told},
            capture_output=True,
            check=False,
        )
        assert (done.returncode == 0) is opens, (user, database, done.stderr)


@pytest.mark.req("R6")
def test_application_enters_the_source_when_it_is_granted_and_sees_one_tenant(host: Host) -> None:
    def url(user: str, database: str) -> str:
        word = (host.secrets / f"{user}_password").read_text()
        return f"postgresql+psycopg://{user}:{word}@/{database}?host={host.postgres.pgdata}"

    def sees(database: str = "source") -> bool:
        with opened(url("application", database)) as engine, reading(engine) as connection:
            return bound(connection)

    for database in ("source", "vectors", "control"):
        with pytest.raises(StoreUnreachable):
            sees(database)
    bind(url("stores", "source"), "application")
    assert sees(), "the policies bind it"
    for database in ("vectors", "control"):
        with pytest.raises(StoreUnreachable):
            sees(database)


@pytest.mark.timeout(300)  # a dozen processes, one after the other, on a machine that others use
def test_roles_carry_a_request_to_its_end_and_stop(host: Host) -> None:
    for service in ("broker", "cache", "init"):
        host.start(service)
    state = host.folder / "state"
    assert (host.running["init"].returncode, state.stat().st_mode & 0o777) == (0, 0o700)
    keys = {path.name: path.read_bytes() for path in (state / "keys").iterdir()}
    for service in ("migrate", "dispatcher", "worker"):
        host.start(service)
    # A second start: the schema is there, and `init` changes nothing and says so.
    for service, code in (("init", 2), ("migrate", 0)):
        host.start(service)
        assert host.running[service].returncode == code
    assert {path.name: path.read_bytes() for path in (state / "keys").iterdir()} == keys
    assert host.healthy("dispatcher")

    def put(key: str, value: str) -> None:
        words = ("expunge", "memory", "put", key, value, "--source", f"chat/{key}", *ANN)
        assert host.run("worker", *words)[0] == 0

    put("passport", "P1234567")
    put("city", "Lisbon")
    asked = ("expunge", "request", "--key", "passport", *ANN, "--reason", "user_request", "--wait", "--json")
    code, told = host.run("dispatcher", *asked)
    job = json.loads(told)
    assert (code, job["state"], job["result"]) == (0, "completed", "erased")
    said = json.loads(host.run("dispatcher", "expunge", "receipts", job["id"], "--json")[1])["receipts"]
    assert {r["adapter"] for r in said if r["outcome"] == "absent"} == {"memory", "drafts", "vector", "cache"}
    left = json.loads(host.run("worker", "expunge", "memory", "current", *ANN, "--json")[1])["facts"]
    assert [fact["key"] for fact in left] == ["city"], "the neighbour stays"

    # The image's own check, which a worker passes, and a role without the stores' passwords does not.
    def red(service: str) -> list[str]:
        checks = json.loads(host.run(service, "expunge", "doctor", "--json")[1])["checks"]
        return [check["name"] for check in checks if not check["ok"]]

    assert (red("worker"), red("dispatcher")) == ([], ["adapters"])
    assert list(state.glob("*.db")) == [], "everything lies in the databases of compose.yaml"

    assert host.running["worker"].poll() is host.running["dispatcher"].poll() is None
    for service in ("worker", "dispatcher"):
        status, seconds = host.stop(service)
        assert (service, status, seconds < 25) == (service, 0, True)
    lines = [line for s in ("worker", "dispatcher") for line in (host.folder / f"{s}.log").read_text().splitlines()]
    assert any('"receipt.stored"' in line for line in lines)
    assert not any("P1234567" in line or "ann" in line.split('"') for line in lines)
