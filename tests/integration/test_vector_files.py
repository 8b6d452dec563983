"""The database of the index: whose it is, how each connection is set up, and what its files hold after an erase."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
import structlog

from adapters.memory.engine import BUSY_MS
from adapters.vector import Point, VectorAdapter, options
from orchestrator import AdapterContext, Gate, InvalidRequest, Permanent, Residual, Scrubbed, ScrubReport, Target
from tests.fakes import FakeClock
from tests.integration.vector_harness import ANNA, BERTA, DIMENSIONS, RING, SUBJECT, Shelf, by_key, open_shelf

FACT: Final = Target(kind="fact", id="f-1", version=1)
REAL: Final = 384
COUNT: Final = """
import pathlib, sys
held = b"".join(path.read_bytes() for path in sorted(pathlib.Path(sys.argv[1]).glob("vectors.db*")))
for line in sys.stdin:
    value, width = bytes.fromhex(line), int(sys.argv[2])
    print(sum(value[n:n + width] in held for n in range(0, len(value) - width + 1, 4)))
"""
WRITE: Final = """
import pathlib, sys
from tests.integration.vector_harness import ANNA, open_shelf
from adapters.vector import Point
from orchestrator import Target
folder = pathlib.Path(sys.argv[1])
shelf = open_shelf(folder, f"sqlite:///{folder}/memory.db", f"sqlite:///{folder}/vectors.db")
print("ready", flush=True)
for n in range(100):
    made_from = Target(kind="fact", id=f"other-{n}", version=1)
    shelf.unguarded.put(ANNA, [Point(made_from=made_from, source="s", vector=[n + 1.0, *[1.0] * 31])])
    print(n, flush=True)
sys.stdin.read()
print(len(shelf.ids()), flush=True)
"""


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Shelf]:
    """Give an index of vectors as long as real ones."""
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/memory.db", f"sqlite:///{tmp_path}/vectors.db", dimensions=REAL)
    with closing(shelf.memory), closing(shelf.adapter):
        yield shelf


def hits(folder: Path, values: Sequence[bytes], width: int = 16) -> list[int]:
    """Count the runs of bytes of each value that lie in the raw files, in a process without locks on them."""
    lines = "\n".join(value.hex() for value in values)
    command = [sys.executable, "-c", COUNT, str(folder), str(width)]
    done = subprocess.run(command, input=lines, capture_output=True, check=True, text=True)
    return [int(line) for line in done.stdout.split()]


def filled(shelf: Shelf) -> list[bytes]:
    """Enter three hundred points, of a hundred facts three each, and give their vectors."""
    vectors = np.random.default_rng(5).normal(size=(300, REAL)).astype("<f4")
    points = [
        Point(made_from=replace(FACT, id=f"f-{n % 100}"), source="s", vector=vector.tolist(), part=n)
        for n, vector in enumerate(vectors)
    ]
    for point in points:  # one at a time, as applications do: the file is not written in one go
        shelf.unguarded.put(ANNA, [point])
    return [vector.tobytes() for vector in vectors]


@pytest.mark.case(103)
def test_one_in_a_hundred_leaves_no_byte_of_its_vector_in_the_live_files(large: Shelf, tmp_path: Path) -> None:
    vectors = filled(large)
    going, staying = vectors[::100], [v for n, v in enumerate(vectors) if n % 100]
    windows = REAL - 3
    assert hits(tmp_path, going) == [windows] * 3, "the positive control: the scan sees what is there"
    order = large.order(by_key(), known=(replace(FACT, id="f-0"),))
    order = replace(order, targets=large.found(order))
    assert large.erase(order).erased == 3
    assert large.adapter.scrub() == ScrubReport(outcome=Scrubbed.CLEAN, residuals=frozenset({Residual.FILE_SYSTEM}))
    assert hits(tmp_path, going) == [0] * 3
    assert hits(tmp_path, staying[::30]) == [windows] * 10
    assert large.seen(order).remaining == 0


def test_without_the_settings_and_the_scrub_the_same_delete_leaves_them(large: Shelf, tmp_path: Path) -> None:
    """The negative control."""
    vectors = filled(large)
    with closing(sqlite3.connect(tmp_path / "vectors.db", isolation_level=None)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("DELETE FROM vector_points WHERE origin = 'f-0'")
        assert other.execute("SELECT count(*) FROM vector_points").fetchone() == (297,)
    assert all(found > REAL / 2 for found in hits(tmp_path, vectors[::100]))


def test_no_sketch_is_left_in_the_files_either(large: Shelf, tmp_path: Path) -> None:
    filled(large)
    order = large.order(by_key(), known=(replace(FACT, id="f-0"),))
    order = replace(order, targets=large.found(order))
    large.erase(order)
    kept = [int(row[0]).to_bytes(8, "big", signed=True) for row in large.rows("SELECT sketch FROM vector_probes")]
    assert hits(tmp_path, kept, 8) == [1] * 3
    assert large.seen(order).remaining == 0
    assert large.adapter.scrub().outcome is Scrubbed.CLEAN
    assert hits(tmp_path, kept, 8) == [0] * 3


def test_two_processes_write_and_erase_in_one_file(tmp_path: Path) -> None:
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/memory.db", f"sqlite:///{tmp_path}/vectors.db")
    with closing(shelf.memory), closing(shelf.adapter):
        mine = [
            shelf.unguarded.put(BERTA, [Point(made_from=FACT, source="s", vector=[1.0] * DIMENSIONS, part=n)]).ids[0]
            for n in range(100)
        ]
        command = [sys.executable, "-c", WRITE, str(tmp_path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            for n, id_ in enumerate(mine):
                order = shelf.order(SUBJECT, BERTA, targets=(Target(kind="point", id=id_),))
                assert shelf.erase(order).erased == 1
                if n % 10 == 0:
                    assert other.stdout.readline()
                    assert shelf.unguarded.search(ANNA, [1.0] * DIMENSIONS).hits, "what the other wrote is seen at once"
            told = other.communicate("", timeout=60)[0].split()
        assert other.returncode == 0
        assert told[-1] == "100", "and it sees at once what was erased here"
        assert shelf.seen(shelf.order(SUBJECT, BERTA)).remaining == 0
        assert len(shelf.found(shelf.order(SUBJECT))) == 100


def test_every_connection_proves_its_settings(tmp_path: Path) -> None:
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/memory.db", f"sqlite:///{tmp_path}/vectors.db")
    with closing(shelf.memory), closing(shelf.adapter):
        shelf.points()
        expected = {"secure_delete": 1, "journal_mode": "wal", "synchronous": 2, "busy_timeout": BUSY_MS}
        engine = shelf.adapter._engine
        with closing(engine.raw_connection()) as first, closing(engine.raw_connection()) as second:
            assert first.driver_connection is not second.driver_connection
            for connection in (first, second):
                cursor = connection.cursor()
                assert {name: cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in expected} == expected


def opening(folder: Path, url: str, dimensions: int = DIMENSIONS) -> None:
    shelf = open_shelf(folder, f"sqlite:///{folder}/memory.db", url, dimensions=dimensions)
    with closing(shelf.memory), closing(shelf.adapter):
        shelf.points()


def test_file_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "vectors.db"
    for statement in ("CREATE TABLE theirs (a)", "PRAGMA user_version = 7"):
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(statement)
        before = file.read_bytes()
        with pytest.raises(Permanent, match="something else"):
            opening(tmp_path, f"sqlite:///{file}")
        assert file.read_bytes() == before
        file.unlink()


def test_memory_store_and_index_do_not_take_each_other_s_file(tmp_path: Path) -> None:
    opening(tmp_path, f"sqlite:///{tmp_path}/vectors.db")
    with pytest.raises(Permanent):
        open_shelf(tmp_path, f"sqlite:///{tmp_path}/vectors.db", "sqlite:///none").memory.store.current(ANNA)
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/memory.db", "sqlite:///none")
    assert shelf.memory.store.current(ANNA) == []
    shelf.memory.close()
    with pytest.raises(Permanent):
        opening(tmp_path, f"sqlite:///{tmp_path}/memory.db")


def test_index_of_other_dimensions_or_another_version_is_refused(tmp_path: Path, postgres_url: str) -> None:
    for url in (f"sqlite:///{tmp_path}/vectors.db", postgres_url):
        opening(tmp_path, url)
        opening(tmp_path, url)
        with pytest.raises(Permanent, match=f"{DIMENSIONS} numbers: set the option dimensions"):
            opening(tmp_path, url, DIMENSIONS + 1)
        with sa.create_engine(url, poolclass=sa.NullPool).begin() as connection:
            connection.exec_driver_sql("UPDATE vector_schema SET version = 2")
        with pytest.raises(Permanent, match="another version"):
            opening(tmp_path, url)


def test_server_without_pgvector_is_refused_by_name(tmp_path: Path, postgres_url: str) -> None:
    plain = postgres_url.replace("+psycopg", "")
    with closing(psycopg.connect(plain, autocommit=True)) as connection:
        name = sa.make_url(postgres_url).database
        connection.execute(f"ALTER DATABASE \"{name}\" SET extension_control_path = '/nonexistent'".encode())
    with pytest.raises(Permanent, match="install its extension `vector`"):
        opening(tmp_path, postgres_url)


def test_postgresql_says_what_stays_in_its_files(tmp_path: Path, postgres_url: str) -> None:
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/memory.db", postgres_url)
    with closing(shelf.memory), closing(shelf.adapter):
        report = shelf.adapter.scrub()
        assert report.outcome is Scrubbed.UNSUPPORTED
        stays = {Residual.DEAD_TUPLES, Residual.WRITE_AHEAD_LOG, Residual.WAL_ARCHIVE, Residual.PLANNER_SAMPLES}
        assert report.residuals == stays
        shelf.adapter.plant(b"m" * 32)
        shelf.adapter.uproot(b"m" * 32)
        assert shelf.rows("SELECT to_regclass('scan_markers')") == [(None,)]


def test_adapters_on_one_file_name_the_same_files_and_say_nothing_of_the_place(tmp_path: Path) -> None:
    urls = (f"sqlite:///{tmp_path}/vectors.db", f"sqlite:///{tmp_path}/vectors.db", f"sqlite:///{tmp_path}/other.db")
    groups = []
    for url in urls:
        shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/memory.db", url)
        groups.append(shelf.adapter.file_group)
        assert shelf.memory.file_group != shelf.adapter.file_group
    assert groups[0] == groups[1] != groups[2]
    assert tmp_path.name not in groups[0]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"dimensions": 0}, "dimensions"),
        ({"dimensions": 2_001}, "dimensions"),
        ({"dimensions": "many"}, "dimensions"),
        ({"uri": "sqlite:///v.db"}, "uri"),
        ({"url": 7}, "url"),
    ],
)
def test_wrong_option_is_refused_by_name_with_what_is_allowed(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequest, match=r"allowed: url, dimensions") as caught:
        options.read(given)
    assert caught.value.facts["field"] == f"adapters.vector.{field}"


def test_numpy_and_the_driver_of_postgresql_load_only_where_they_are_used() -> None:
    script = """
import sys
import adapters.vector
from adapters.vector import adapter, engine, erase, find, floats, nearest, physical, probe, verify
print(sorted({"numpy", "psycopg"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"


def test_nothing_is_opened_before_the_first_call_and_the_file_lies_in_the_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, state = tmp_path / "elsewhere", tmp_path / "state"
    elsewhere.mkdir()
    state.mkdir()
    monkeypatch.chdir(elsewhere)
    log = structlog.get_logger()
    context = AdapterContext(clock=FakeClock(), gate=Gate(RING), log=log, state_dir=state)
    with closing(VectorAdapter(context)) as adapter:
        assert list(tmp_path.rglob("*.db")) == []
        assert adapter.find([]) == []
        assert list(tmp_path.rglob("*.db")) == [state / "vectors.db"]
        with sqlite3.connect(state / "vectors.db") as connection:
            assert connection.execute("SELECT dimensions FROM vector_schema").fetchall() == [(REAL,)]
        connection.close()
    with pytest.raises(InvalidRequest, match="SQLite file or a PostgreSQL") as caught:
        VectorAdapter(context, url="mysql://user:P1234567@host/db")
    assert "P1234567" not in str(caught.value)
