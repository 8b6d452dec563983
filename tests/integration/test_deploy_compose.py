"""`deploy/compose.yaml`: each key is one that Compose knows, each name leads somewhere; each rule is broken here."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.integration.deploy_harness import DEPLOY, ROOT, read_yaml

TEXT = (DEPLOY / "compose.yaml").read_text()
COMPOSE = read_yaml(TEXT)
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
DURATION = re.compile(r"\d+(ms|s|m|h)")
IMAGE = re.compile(r"[a-z0-9]+([._/-][a-z0-9]+)*:(?P<tag>[A-Za-z0-9._-]+)")
RESTART = {"no", "always", "on-failure", "unless-stopped"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


def texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def duration(value: object) -> bool:
    return isinstance(value, str) and DURATION.fullmatch(value) is not None


def pinned(value: object) -> bool:
    found = IMAGE.fullmatch(str(value))
    return found is not None and re.search(r"\d+\.\d+", found["tag"]) is not None


def checked(value: object) -> bool:
    """Tell whether a health check has a command and all of its times, or says that there is none."""
    if value == {"disable": True}:
        return True
    times = ("interval", "timeout", "start_period")
    return (
        isinstance(value, dict)
        and value.keys() == {"test", "retries", *times}
        and texts(value["test"])
        and value["test"][0] == "CMD"
        and isinstance(value["retries"], int)
        and all(duration(value[name]) for name in times)
    )


# What Compose takes under a service, as far as it is used here.
SERVICE: dict[str, Callable[[Any], bool]] = {
    "image": pinned,
    "build": lambda v: v.keys() == {"context", "dockerfile"} and (DEPLOY / v["context"] / v["dockerfile"]).is_file(),
    "command": texts,
    "user": lambda v: isinstance(v, str),
    "init": lambda v: isinstance(v, bool),
    "read_only": lambda v: isinstance(v, bool),
    "tmpfs": texts,
    "cap_drop": texts,
    "security_opt": texts,
    "restart": RESTART.__contains__,
    "stop_grace_period": duration,
    "env_file": lambda v: [sorted(file) for file in v] == [["path", "required"]],
    "environment": lambda v: all(isinstance(text, str) for text in v.values()),
    "volumes": texts,
    "networks": texts,
    "secrets": lambda v: all(isinstance(s, str) or s.keys() == {"source", "target"} for s in v),
    "healthcheck": checked,
    "depends_on": lambda v: all(d.keys() == {"condition"} and d["condition"] in CONDITIONS for d in v.values()),
    "profiles": texts,
}


def problems(compose: dict[str, Any]) -> Iterator[str]:
    """Name everything that is wrong with a composition."""
    if unknown := compose.keys() - {"name", "x-expunge", "services", "networks", "volumes", "secrets"}:
        yield f"unknown: {sorted(unknown)}"
    services = compose["services"]
    for name, service in services.items():
        yield from (f"{name}.{k}" for k, v in service.items() if k not in SERVICE or not SERVICE[k](v))
        yield from (f"{name}: {told}" for told in (*_closed(service), *_environment(service)))
        for other, how in service.get("depends_on", {}).items():
            yield from _depends(name, services.get(other), other, how["condition"])
    for kind, names in _used(services.values()).items():
        if names != compose[kind].keys():
            yield f"{kind}: used {sorted(names)}, declared {sorted(compose[kind])}"
    if any(network != {"internal": True} for network in compose["networks"].values()):
        yield "a network leads out of the server"
    if any(s.keys() != {"file"} or not s["file"].startswith("./secrets/") for s in compose["secrets"].values()):
        yield "a secret is no file of the folder that secrets.sh makes"


def _used(services: Iterable[dict[str, Any]]) -> dict[str, set[str]]:
    """Give the networks, volumes and secrets that services name."""
    found: dict[str, set[str]] = {"networks": set(), "volumes": set(), "secrets": set()}
    for service in services:
        found["networks"] |= set(service["networks"])
        found["secrets"] |= {secret for secret, _ in _secrets(service)}
        found["volumes"] |= {source for source in _mounted(service) if not source.startswith(".")}
    return found


def _mounted(service: dict[str, Any]) -> list[str]:
    return [volume.split(":")[0] for volume in service.get("volumes", [])]


def _closed(service: dict[str, Any]) -> Iterator[str]:
    if "healthcheck" not in service and "build" not in service:
        yield "nobody looks whether it is well"  # our own image has a check in its Dockerfile
    if service.get("read_only") is not True:
        yield "its root file system can be written to"
    if any("/" in target for _, target in _secrets(service)):
        yield "a secret is mounted elsewhere than below /run/secrets"
    for source in _mounted(service):
        if source.startswith(".") and not (DEPLOY / source).is_file():
            yield f"there is no {source}"


def _secrets(service: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for secret in service.get("secrets", []):
        yield (secret, secret) if isinstance(secret, str) else (secret["source"], secret["target"])


def _environment(service: dict[str, Any]) -> Iterator[str]:
    given = {f"/run/secrets/{target}" for _, target in _secrets(service)}
    for key, value in service.get("environment", {}).items():
        words = str(value)
        if re.search(r"://[^/]*:[^/]*@", words) or (re.search(r"PASSWORD|SECRET|TOKEN", key) and "/run/" not in words):
            yield f"{key} holds a secret"
        if words.startswith("/run/secrets/") and words not in given:
            yield f"{key} names a secret that is not given to it"


def _depends(name: str, other: dict[str, Any] | None, named: str, condition: str) -> Iterator[str]:
    if other is None:
        yield f"{name}: there is no service {named}"
    elif condition == "service_completed_successfully" and other.get("restart") != "no":
        yield f"{name}: {named} never ends"
    elif condition == "service_healthy" and other.get("healthcheck", {"disable": True}) == {"disable": True}:
        yield f"{name}: nobody tells whether {named} is well"


def test_nothing_is_wrong_with_it() -> None:
    assert list(problems(COMPOSE)) == []


def test_image_of_every_role_is_that_of_this_release() -> None:
    ours = {name: s for name, s in COMPOSE["services"].items() if "build" in s}
    assert ours.keys() == {"init", "migrate", "dispatcher", "worker"}
    assert {service["image"] for service in ours.values()} == {f"expunge:{VERSION}"}


def test_workers_alone_have_the_passwords_of_the_stores() -> None:
    holders = {name for name, s in COMPOSE["services"].items() if "worker_pgpass" in dict(_secrets(s))}
    assert holders == {"worker"}
    near = {name for name, s in COMPOSE["services"].items() if "stores" in s["networks"]}
    assert near == {"postgres", "cache", "worker"}
    # The same words for all roles: none may open another store than the worker does.
    roles = [s["environment"] for s in COMPOSE["services"].values() if "build" in s]
    assert all(role == roles[0] for role in roles)


def test_cache_and_broker_keep_nothing_on_a_disk_and_evict_nothing() -> None:
    for name in ("cache", "broker"):
        words = COMPOSE["services"][name]["command"]
        told = dict(zip(words[1::2], words[2::2], strict=True))
        assert told == {"--save": "", "--appendonly": "no", "--maxmemory-policy": "noeviction"}


Change = Callable[[dict[str, Any]], object]
FAULTS: dict[str, Change] = {
    "unknown key": lambda c: c["services"]["worker"].update(comand=["worker"]),
    "unknown section": lambda c: c.update(service={}),
    "moving tag": lambda c: c["services"]["cache"].update(image="redis:latest"),
    "tag of a major version": lambda c: c["services"]["cache"].update(image="redis:7"),
    "no tag": lambda c: c["services"]["cache"].update(image="redis"),
    "no such Dockerfile": lambda c: c["services"]["worker"]["build"].update(dockerfile="deploy/None"),
    "number for a text": lambda c: c["services"]["worker"]["environment"].update(EXPUNGE_ENGINE__CAP=2),
    "unknown restart": lambda c: c["services"]["worker"].update(restart="sometimes"),
    "time without a unit": lambda c: c["services"]["worker"].update(stop_grace_period="40"),
    "volume that nobody declares": lambda c: c["services"]["worker"].update(volumes=["other:/var/lib/expunge"]),
    "volume that nobody uses": lambda c: c["volumes"].update(other={}),
    "file that is not there": lambda c: c["services"]["postgres"]["volumes"].append("./none.sh:/none.sh"),
    "secret that nobody declares": lambda c: c["services"]["worker"].update(secrets=["other"]),
    "secret that nobody uses": lambda c: c["secrets"].update(other={"file": "./secrets/other"}),
    "secret written down": lambda c: c["secrets"]["control_pgpass"].update(file="./control_pgpass"),
    "secret of another service": lambda c: c["services"]["worker"].update(secrets=[]),
    "secret of another place": lambda c: c["services"]["postgres"]["secrets"].append(
        {"source": "control_pgpass", "target": "/etc/pgpass"}
    ),
    "password in a URL": lambda c: c["services"]["worker"]["environment"].update(X="redis://:word@cache:6379/0"),
    "password in the environment": lambda c: c["services"]["postgres"]["environment"].update(POSTGRES_PASSWORD="word"),
    "network that nobody declares": lambda c: c["services"]["worker"]["networks"].append("other"),
    "network that leads out": lambda c: c["networks"].update(control={}),
    "service that is not there": lambda c: c["services"]["worker"]["depends_on"].update(
        other={"condition": "service_healthy"}
    ),
    "condition that nobody knows": lambda c: c["services"]["worker"]["depends_on"].update(cache={"condition": "well"}),
    "waits for what never ends": lambda c: c["services"]["migrate"].update(restart="always"),
    "waits for what nobody looks at": lambda c: c["services"]["broker"].update(healthcheck={"disable": True}),
    "no health check": lambda c: c["services"]["cache"].pop("healthcheck"),
    "check that no shell runs": lambda c: c["services"]["cache"]["healthcheck"].update(test=["redis-cli", "ping"]),
    "root that can be written to": lambda c: c["services"]["worker"].update(read_only=False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_told(fault: str) -> None:
    broken = json.loads(json.dumps(COMPOSE))
    FAULTS[fault](broken)
    assert broken != COMPOSE
    assert list(problems(broken)) != []


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",  # said twice
        "a:\n   b: 1",  # three blanks
        "a: no",  # a truth value in some versions of YAML
        "a: 0755",  # an octal number in some, a text in others
        "a: 22:22",  # a number to the base of 60 in some
        "a: two words",
        "a: 'single'",
        "a: b # told on the same line",
        "a:\n  - word",
        "a:\n\tb: 1",
        "a: |\n  text",
        'a: "b"\n  c: 1',
        "a: &x\n  b: 1\nc:\n  d: 1\n  <<: *x",  # what is shared has to come first
    ],
)
def test_reader_refuses_what_could_be_read_in_two_ways(text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d is none that we read"):
        read_yaml(text)


def test_reader_gives_what_yaml_says() -> None:
    text = 'a: &x\n  b: ["1", "2"]\n  c: word\n# why\nd:\n  <<: *x\n  c: true\n  e:\n    - "f"\n    - "g"\n  h: 3\n'
    shared = {"b": ["1", "2"], "c": "word"}
    assert read_yaml(text) == {"a": shared, "d": {**shared, "c": True, "e": ["f", "g"], "h": 3}}
