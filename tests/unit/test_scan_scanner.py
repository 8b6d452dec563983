"""A scan of files: what is there is found wherever it lies, and what cannot be looked at is never clean."""

from __future__ import annotations

import json
import random
import sqlite3
import tracemalloc
import unicodedata
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from orchestrator import Fingerprint, Keyring
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.report import Doubt, Report, Verdict
from orchestrator.scan.scanner import scan

BY = Fingerprinter.of(Keyring(current="tk-1", keys={"tk-1": bytes(range(32))}))
VALUE = "P1234567, the passport of Ada Lovelace"
OTHER = "Berta takes the aisle seat in row 12"
MARKER = b"a live record that was planted"
CONTROL = BY.of_bytes(MARKER).rows
WANTED = {"job-1": BY.of_text(VALUE).rows, "job-2": BY.of_text(OTHER).rows}
NOISE = random.Random(3).randbytes(200_000)  # noqa: S311 - an example, not a secret


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "control").write_bytes(b"..." + MARKER + b"...")
    return tmp_path


def look(
    folder: Path, chunk: int = 4096, told: Callable[[int, int], None] | None = None
) -> tuple[Report, dict[str, Verdict]]:
    report = scan([folder], WANTED, by=BY, control=CONTROL, chunk=chunk, told=told)
    return report, {str(file.path.relative_to(folder)): file.verdict for file in report.files}


def seen(value: bytes, wanted: tuple[Fingerprint, ...]) -> int:
    macs = {row.mac for row in wanted}
    return sum(BY.mac(value[place : place + 16]).hex() in macs for place in range(len(value) - 15))


@pytest.mark.parametrize(
    "stored",
    [
        VALUE.encode(),
        VALUE.encode("utf-16-le"),
        VALUE.encode("utf-16-be"),
        json.dumps({"value": f'he said "{VALUE}"'}).encode(),
        VALUE.encode()[5:28],
    ],
    ids=["utf-8", "utf-16-le", "utf-16-be", "json", "a run of 23 bytes"],
)
def test_value_is_found_and_its_neighbour_is_clean(folder: Path, stored: bytes) -> None:
    (folder / "a").write_bytes(NOISE + stored + NOISE)
    (folder / "b").write_bytes(NOISE)
    report, verdicts = look(folder)
    assert verdicts == {"a": Verdict.FOUND, "b": Verdict.CLEAN, "control": Verdict.CLEAN}
    assert report.hits == {"job-1": seen(stored, WANTED["job-1"])}
    assert report.control_found
    assert (report.verdict, report.of("job-1"), report.of("job-2")) == (Verdict.FOUND, Verdict.FOUND, Verdict.CLEAN)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_text_is_found_in_json_in_either_normal_form(folder: Path, form: str, *, ascii_only: bool) -> None:
    text = 'Zo\u00eb: "\u4e2d\u6587 caf\u00e9" \\ at nine'
    stored = json.dumps([unicodedata.normalize(form, text)], ensure_ascii=ascii_only)  # type: ignore[arg-type]  # a parameter is a plain text
    (folder / "a").write_text(stored)
    report = scan([folder], {"job": BY.of_text(text).rows}, by=BY, control=CONTROL)
    assert report.of("job") is Verdict.FOUND


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 80), st.integers(1, 70), st.integers(0, 40))
def test_value_is_counted_whole_at_every_offset_and_across_every_border(
    folder: Path, before: int, chunk: int, after: int
) -> None:
    (folder / "a").write_bytes(NOISE[:before] + VALUE.encode() + NOISE[:after])
    assert look(folder, chunk)[0].hits == {"job-1": seen(VALUE.encode(), WANTED["job-1"])}


@pytest.mark.parametrize("size", [0, 1, 15])
def test_file_that_is_too_small_for_a_window_is_clean(folder: Path, size: int) -> None:
    (folder / "a").write_bytes(VALUE.encode()[:size])
    report, verdicts = look(folder)
    assert verdicts["a"] is Verdict.CLEAN
    assert [file.size for file in report.files] == [size, 6 + len(MARKER)]


@pytest.mark.parametrize("length", [15, 16, 17])
def test_value_of_about_sixteen_bytes_is_found_or_named_as_not_probeable(folder: Path, length: int) -> None:
    prints = BY.of_text(VALUE[:length])
    (folder / "a").write_text(f"xx{VALUE[:length]}xx")
    report = scan([folder], {"job": prints.rows}, by=BY, control=CONTROL)
    assert ("utf_8" in prints.not_probeable, report.hits) == (
        (True, {}) if length == 15 else (False, {"job": length - 15})
    )


def test_bytes_that_two_jobs_wait_for_are_told_to_both(folder: Path) -> None:
    (folder / "a").write_text(VALUE)
    wanted = {"one": WANTED["job-1"], "two": BY.of_text(f"This is {VALUE}").rows, "none": ()}
    report = scan([folder], wanted, by=BY, control=CONTROL)
    assert [report.of(owner) for owner in wanted] == [Verdict.FOUND, Verdict.FOUND, Verdict.CLEAN]
    assert report.files[0].hits["one"] == len(BY.of_bytes(VALUE.encode()).rows)


def test_control_may_hold_the_bytes_of_a_job(folder: Path) -> None:
    report = scan([folder], {"job": CONTROL}, by=BY, control=CONTROL)
    assert (report.of("job"), report.control_found) == (Verdict.FOUND, True)


@pytest.mark.parametrize(
    "control", [(), BY.of_text(OTHER).rows, (*CONTROL, *BY.of_bytes(b"not in any file").rows, *WANTED["job-2"][:1])]
)
def test_scan_that_does_not_see_all_of_its_control_calls_nothing_clean(
    folder: Path, control: tuple[Fingerprint, ...]
) -> None:
    (folder / "a").write_text(VALUE)
    report = scan([folder], WANTED, by=BY, control=control)
    assert not report.control_found
    assert [(file.verdict, file.doubt) for file in report.files] == [
        (Verdict.FOUND, Doubt.NO_CONTROL),
        (Verdict.INCONCLUSIVE, Doubt.NO_CONTROL),
    ]
    assert (report.of("job-1"), report.of("job-2")) == (Verdict.FOUND, Verdict.INCONCLUSIVE)


def test_scan_of_nothing_is_clean_only_beside_a_control(tmp_path: Path) -> None:
    assert scan([], WANTED, by=BY, control=CONTROL).verdict is Verdict.INCONCLUSIVE
    assert Report(files=(), control_found=True).verdict is Verdict.CLEAN
    (tmp_path / "empty").mkdir()
    assert scan([tmp_path / "empty"], WANTED, by=BY, control=CONTROL).files == ()


def test_scan_under_another_key_sees_no_control(folder: Path) -> None:
    (folder / "a").write_text(VALUE)
    report = scan([folder], WANTED, by=Fingerprinter.of(Keyring.create()), control=CONTROL)
    assert (report.control_found, report.of("job-1")) == (False, Verdict.INCONCLUSIVE)


def test_deleted_rows_of_a_database_are_found_until_it_is_vacuumed(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "a.db", isolation_level=None)) as connection:
        connection.executescript("PRAGMA secure_delete = 0; CREATE TABLE facts (said TEXT)")
        connection.executemany("INSERT INTO facts VALUES (?)", [(f"{VALUE} in line {n}",) for n in range(300)])
        connection.execute("DELETE FROM facts")
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (0,)
        assert look(folder)[0].of("job-1") is Verdict.FOUND
        connection.execute("VACUUM")
        assert look(folder)[0].of("job-1") is Verdict.CLEAN


def test_progress_is_told_from_nothing_to_all(folder: Path) -> None:
    (folder / "a").write_bytes(NOISE)
    told: list[tuple[int, int]] = []
    look(folder, 65_536, lambda done, whole: told.append((done, whole)))
    assert told[-1] == (200_006 + len(MARKER),) * 2
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("full", [False, True], ids=["noise", "one value over and over"])
def test_memory_does_not_grow_with_the_file(folder: Path, *, full: bool) -> None:
    block = (b"12345" * 210_000 if full else NOISE * 6)[: 2**20]
    with (folder / "big").open("wb") as file:
        for _ in range(1 if full else 64):
            file.write(block)
    wanted = {"job": BY.of_bytes(b"12345" * 12).rows, **WANTED}
    tracemalloc.start()
    try:
        report = scan([folder], wanted, by=BY, control=CONTROL)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.of("job") is (Verdict.FOUND if full else Verdict.CLEAN)
    assert peak < (32 if full else 4) * 2**20, peak


def test_neither_report_nor_log_holds_a_value(folder: Path) -> None:
    (folder / "a").write_text(VALUE)
    with capture_logs() as logs:
        report, _ = look(folder)
    assert report.verdict is Verdict.FOUND
    for part in (VALUE, "P1234567", "Lovelace", MARKER.decode(), VALUE.encode().hex()):
        assert part not in repr((report, logs))
