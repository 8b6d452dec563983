"""Everything that differs between two deployments: expunge.toml, with EXPUNGE_* above it. Read once, in `bootstrap`."""

from __future__ import annotations

import difflib
import itertools
import os
import tempfile
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StrictBool,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from orchestrator.domain.errors import InvalidRequest
from orchestrator.durations import Budget, Duration
from orchestrator.state_directory import databases

FILE: Final = "expunge.toml"
BROKERS: Final = ("filesystem", "redis", "rediss", "amqp", "amqps")
DEFAULT_DIR: Final = ".expunge"
OTHER_VARIABLES: Final = frozenset({"EXPUNGE_REQUIRE_SERVICES", "EXPUNGE_DIR"})


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class EngineSettings(_Section):
    """How the engine works off units; the order of its time budgets is checked."""

    # A larger batch costs less a unit; after a kill it repeats more calls.
    batch: int = Field(100, ge=1, le=500, description="units in one claim")
    cap: int = Field(2, ge=1, le=64, description="running batches for each adapter")
    max_attempts: int = Field(5, ge=1, le=100, description="failures in a row before a unit is parked")
    backoff_base: Duration = Field(timedelta(seconds=2), description="first pause after a failure, doubled each time")
    backoff_cap: Duration = Field(timedelta(minutes=15), description="longest pause after a failure")
    breaker_pause: Duration = Field(timedelta(seconds=30), description="how long a store that is down is left alone")
    call_timeout: Budget = Field(timedelta(seconds=30), description="longest wait for one answer of a store")
    unit_budget: Budget = Field(timedelta(minutes=2), description="longest time for one call of an adapter")
    soft_time_limit: Budget = Field(timedelta(minutes=3), description="Celery's soft limit")
    time_limit: Budget = Field(timedelta(minutes=4), description="Celery's hard limit")
    visibility_timeout: Budget = Field(timedelta(minutes=15), description="redelivery of unanswered messages, Redis")
    lease: Budget = Field(timedelta(seconds=15), description="how long a worker owns a unit without renewing")
    dispatch_interval: Budget = Field(timedelta(milliseconds=200), description="pause between two announcements")
    control_scrub: Budget = Field(timedelta(hours=1), description="pause between two scrubs of the control database")
    quiet_time: Duration = Field(timedelta(0), description="longest time a producer can be in flight")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        names = ["call_timeout", "unit_budget", "soft_time_limit", "time_limit", "visibility_timeout"]
        for shorter, longer in (*itertools.pairwise(names), ("lease", "unit_budget")):
            if not getattr(self, shorter) < getattr(self, longer):
                message = f"engine.{shorter} must be shorter than engine.{longer}"
                raise ValueError(message)
        return self


class DeadlineSettings(_Section):
    """By when a request has to be verified."""

    regime: Literal["gdpr", "ccpa", "custom"] = Field("gdpr", description="gdpr: one month; ccpa: 45 days")
    days: int | None = Field(None, ge=1, le=3650, description="days of the custom regime")
    warn: Duration = Field(timedelta(days=7), description="how long before it a job is called urgent")

    @model_validator(mode="after")
    def _days_with_custom(self) -> Self:
        if (self.regime == "custom") != (self.days is not None):
            message = "deadline.days goes with deadline.regime = custom, and only with it"
            raise ValueError(message)
        return self


class ExpirySettings(_Section):
    """How long what has expired may lie in a store: no read gives it out from its end on, whatever stands here."""

    every: Budget = Field(timedelta(hours=1), description="pause between two looks for what has expired")


class ReportSettings(_Section):
    """What stands in every report: places that no adapter reaches."""

    not_covered: list[Annotated[str, Field(min_length=1)]] = Field([], description="a JSON array as a variable")


class KeySettings(_Section):
    """Where the keys are: `file:path` or `env:NAME`, never the key itself."""

    tombstone: str = Field("file:keys/tombstone.json", pattern=r"^(file|env):.+")
    reference: str = Field("file:keys/reference.key", pattern=r"^(file|env):.+")


def _yes_or_no(value: object) -> object:
    # An environment variable can only be a text.
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


class StoreSettings(_Section):
    """What the engine reads of an adapter's section; all else in it is the adapter's own."""

    required: Annotated[StrictBool, BeforeValidator(_yes_or_no)] = Field(True, description="true or false")
    require: Literal["logical", "physical"] = Field("logical", description="logical or physical")


class Settings(BaseSettings):
    """Everything that differs between two deployments. Relative paths are below the state directory."""

    model_config = SettingsConfigDict(
        env_prefix="EXPUNGE_", env_nested_delimiter="__", frozen=True, extra="forbid", hide_input_in_errors=True
    )

    written: ClassVar[dict[str, Any]] = {}  # what the file says

    state_dir: Path = Field(description="databases, spool, keys, logs; mode 0700")
    database_url: SecretStr = Field(SecretStr("sqlite:///orchestrator.db"), description="control database")
    broker_url: SecretStr = Field(SecretStr("filesystem://"), description="filesystem://, redis:// or amqp://")
    log_format: Literal["json", "console"] = Field("json", description="form of the log lines")
    crash_at: str | None = Field(None, description="tests only: kill the process at this crash point")
    engine: EngineSettings = EngineSettings()
    deadline: DeadlineSettings = DeadlineSettings()
    expiry: ExpirySettings = ExpirySettings()
    report: ReportSettings = ReportSettings()
    keys: KeySettings = KeySettings()
    adapters: dict[str, dict[str, Any]] = Field(default_factory=dict, description="enabled adapters with their options")

    @field_validator("broker_url")
    @classmethod
    def _known_broker(cls, url: SecretStr) -> SecretStr:
        if urlsplit(url.get_secret_value()).scheme not in BROKERS:
            message = f"must begin with one of: {', '.join(f'{name}://' for name in BROKERS)}"
            raise ValueError(message)
        try:
            _ = urlsplit(url.get_secret_value()).port
        except ValueError:
            message = "its port is no number from 0 to 65535"
            raise ValueError(message) from None
        return url

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, cls.written)


def state_dir(given: Path | None) -> Path:
    """Choose the state directory: the one given, else EXPUNGE_DIR, else .expunge here."""
    return given or Path(os.environ.get("EXPUNGE_DIR", DEFAULT_DIR))


def environment(**more: str) -> dict[str, str]:
    """Give the environment of a process that we start: our own, and more."""
    return {**os.environ, **more}


def keep_temporary_files_in(folder: Path) -> None:
    """Have this process and those that it starts write temporary files into a folder of ours."""
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None


def read(state_dir: Path, *, template: str | None = None) -> Settings:
    """Read the configuration of a state directory; anything wrong raises `InvalidRequest` naming the key.

    `template` stands for the file where there is none yet.
    """
    path = state_dir / FILE
    _check_variables()
    try:
        content = template if template is not None and not path.exists() else path.read_text()
        told = tomllib.loads(content)
    except (FileNotFoundError, NotADirectoryError):
        message = f"{path} is missing: run `expunge init --dir {state_dir}` first"
        raise InvalidRequest(message, field="dir") from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise InvalidRequest(message, field="dir") from None
    except UnicodeDecodeError:
        message = f"{path} is not valid TOML: it is no text in UTF-8"
        raise InvalidRequest(message, field=FILE) from None
    except tomllib.TOMLDecodeError as error:
        message = f"{path} is not valid TOML: {error}"
        raise InvalidRequest(message, field=FILE) from None

    class Configured(Settings):
        written = told

    try:
        return Configured(state_dir=state_dir.resolve())
    except ValueError as error:
        raise InvalidRequest(_explain(error), field=FILE) from None


def store(name: str, section: Mapping[str, object]) -> StoreSettings:
    """Read the engine's part of an adapter's section; a wrong value raises `InvalidRequest` naming key and choice."""
    known = StoreSettings.model_fields
    try:
        return StoreSettings.model_validate({key: section[key] for key in known if key in section})
    except ValidationError as error:
        key = str(error.errors(include_input=False, include_url=False)[0]["loc"][0])
        message = f"adapters.{name}.{key}: not supported, set it to: {known[key].description}"
        raise InvalidRequest(message, field=f"adapters.{name}.{key}") from None


def resolve_secret(named: str, state_dir: Path) -> str:
    """Read a secret that is named as `file:path` or `env:NAME`; a missing one raises `InvalidRequest`."""
    kind, _, where = named.partition(":")
    if kind == "env":
        value = os.environ.get(where)
        if value is None:
            message = f"the environment variable {where} that a key is named by is not set: set it to the key"
            raise InvalidRequest(message, field="keys")
        return value
    try:
        return (state_dir / where).read_text()
    except (OSError, UnicodeDecodeError) as error:
        # A new key would make all that was forgotten unknown: where anything was stored, only the old one helps.
        used = databases(state_dir)
        advice = (
            "restore it from your copy; a new key cannot replace it" if used else "run `expunge init` or restore it"
        )
        why = getattr(error, "strerror", None) or "no text"
        message = f"the key file {where} cannot be read ({why}): {advice}"
        raise InvalidRequest(message, field="keys") from None


def inside(url: str, state_dir: Path) -> str:
    """Put a relative SQLite path below the state directory; leave every other URL alone."""
    prefix = "sqlite:///"
    if url.startswith(prefix) and not url.startswith("sqlite:////"):
        return f"{prefix}{state_dir.resolve() / url.removeprefix(prefix)}"
    return url


def names() -> list[str]:
    """Name every key of the configuration as `section.key`."""
    found = []
    for name, info in Settings.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, _Section):
            found += [f"{name}.{key}" for key in inner.model_fields]
        else:
            found.append(name)
    return found


def _check_variables() -> None:
    """Refuse an EXPUNGE_* variable that no key answers to: pydantic would pass it over in silence."""
    # The state directory is where the file lies that the rest is read from: EXPUNGE_DIR chooses it.
    known = {f"EXPUNGE_{name.upper().replace('.', '__')}" for name in names() if name != "state_dir"} | OTHER_VARIABLES
    for variable in sorted(os.environ):
        if variable.startswith("EXPUNGE_") and variable not in known and not variable.startswith("EXPUNGE_ADAPTERS__"):
            near = difflib.get_close_matches(variable, known, n=1)
            message = f"unknown variable {variable}" + (f"; did you mean {near[0]}?" if near else "")
            raise InvalidRequest(message, field=variable)


def _explain(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return 'EXPUNGE_REPORT__NOT_COVERED and EXPUNGE_ADAPTERS take JSON, such as ["one", "two"]'
    first = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or FILE
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, names(), n=1, cutoff=0.5)
        return f"unknown key {key}" + (f"; did you mean {near[0]}?" if near else f"; known keys: {', '.join(names())}")
    return f"{key}: {first['msg'].removeprefix('Value error, ')}"
