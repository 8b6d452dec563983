"""What a row of a file may say, and what is said of one that cannot be followed: its number, and none of its words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.bootstrap import Control
from orchestrator.cli import rows
from tests.integration.commands_harness import CANARY, Run, control, run
from tests.integration.requests_harness import HEADER, Write, file, jobs, outcomes, told, write

__all__ = ["control", "file", "run", "write"]


def test_row_is_known_by_all_that_it_says_and_by_nothing_else(control: Control, file: Run, write: Write) -> None:
    header = "reason,subject,user,tenant,project,reference,key"
    base = {"reason": "operator", "user": "ann", "tenant": "acme", "key": "passport"}
    changes: Sequence[dict[str, str]] = (
        {},
        {"reason": "unlawful"},
        {"user": "Ann"},
        {"tenant": "acme "},
        {"project": "trips"},
        {"reference": "case-9"},
        {"key": "seat"},
        {"key": "", "subject": "true"},
    )
    lines = [",".join({**base, **change}.get(name, "") for name in header.split(",")) for change in changes]
    code, out, _ = file(write(*lines, lines[0], header=header), "--json")
    assert (code, [o for _, o in outcomes(out)]) == (0, [*["accepted"] * 8, "known"])
    assert told(out)[-1]["job"] == told(out)[0]["job"]
    code, out, _ = file(write(*reversed(lines), header=header), "--json")
    assert (code, {o for _, o in outcomes(out)}, len(jobs(control))) == (0, {"known"}, 8)
    # No cell runs into the next.
    code, out, _ = file(
        write("acme,anna,b,c,operator", "acme,ann,ab,c,operator", header="tenant,user,project,key,reason")
    )
    assert (code, len(jobs(control))) == (0, 10)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_bytes_of_a_spreadsheet_are_taken_as_they_are(control: Control, file: Run, tmp_path: Path, end: str) -> None:
    path = tmp_path / "requests.csv"
    lines = ["Tenant, User ,key,reason", 'acme,"zoë, ""Z""",naïve,operator', "acme,bob,,", "acme,bob,a"]
    path.write_bytes(b"\xef\xbb\xbf" + end.join(lines).encode())
    code, out, _ = file(path, "--json")
    assert (code, outcomes(out)) == (1, [(2, "accepted"), (3, "refused"), (4, "refused")])
    assert jobs(control, "user_id, selector_value") == [('zoë, "Z"', "naïve")]
    assert "the line has 3 cells, and the header 4 columns" in out


BAD = [
    (f",{CANARY},,a,,,,operator,,", "tenant must be a non-empty string"),
    ("acme,,,a,,,,operator,,", "user must be a non-empty string"),
    (f"acme,{CANARY},,,,,,operator,,", "name exactly one of key, memory, source, subject"),
    (f"acme,{CANARY},,a,,b,,operator,,", "name exactly one of"),
    (f"acme,{CANARY},,a,,,true,operator,,", "name exactly one of"),
    (f"acme,{CANARY},,,,,{CANARY},operator,,", "subject must be true or false"),
    (f"acme,{CANARY},,a,,,,{CANARY},,", "the reason must be one of: user_request"),
    (f"acme,{CANARY},,a,,,,,,", "the reason must be one of"),
    (f"acme,{CANARY},,a,,,,operator,Case {CANARY},", "the reference must match"),
    (f"acme,{CANARY},,a,,,,operator,case-{CANARY},", "the reference repeats the user's id"),
    (f"acme,{'x' * 513},,a,,,,operator,,", "user must have at most 512 characters"),
    (f"acme,{CANARY},,a,,,,operator,,{'k' * 513}", "idempotency_key must have at most 512 characters"),
    (f"acme,{CANARY}", "the line has 2 cells, and the header 10 columns"),
    (f'acme,"{CANARY},,a,,,,operator,,', "the line is no CSV"),
    (f'acme,"{CANARY}"x,,a,,,,operator,,', "the line is no CSV"),
    (f"acme,{CANARY}\0,,a,,,,operator,,", "NUL"),
]


def test_bad_rows_are_named_by_number_and_stop_no_other(control: Control, file: Run, write: Write) -> None:
    good = [f"acme,user-{n},,a,,,,operator,," for n in range(len(BAD) + 1)]
    mixed = [line for pair in zip(good, (row for row, _ in BAD), strict=False) for line in pair]
    path = write(*mixed, good[-1])
    path.write_bytes(path.read_bytes() + f"acme,{CANARY}\xff,,a,,,,operator,,\n".encode("latin-1"))
    code, out, error = file(path, "--json")
    assert code == 1
    refused = [line for line in told(out) if line["outcome"] == "refused"]
    assert [line["row"] for line in refused] == [*range(3, 3 + 2 * len(BAD), 2), 3 + 2 * len(BAD)]
    for line, said in zip(refused, [*(why for _, why in BAD), "no text in UTF-8"], strict=True):
        assert (said in line["why"], line["job"], line["state"]) == (True, None, None), line
    assert f"accepted {len(good)}, known 0, refused {len(BAD) + 1}" in error
    assert len(jobs(control)) == len(good)
    assert file(path)[1].splitlines()[1] == "row 3: refused: tenant must be a non-empty string"


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (f"acme,{CANARY},,a,,,,operator,,", "column 1 is none of these"),
        (f"tenant,user,reason,key,{CANARY}", "column 5 is none of these"),
        ("tenant;user;reason;key", "with commas between them"),
        ("tenant,user,reason,key,user", "column 5 is there twice"),
        ("user,key", "it lacks tenant, reason"),
        ("tenant,user,reason", "it lacks one of key memory source subject"),
        ('tenant,user,reason,"key', "a quote is open"),
    ],
)
def test_header_that_cannot_be_followed_refuses_before_anything_is_filed(
    control: Control, file: Run, write: Write, header: str, why: str
) -> None:
    code, out, error = file(write("acme,ann,operator,a", header=header))
    assert (code, out, why in error, len(error.splitlines()), jobs(control)) == (2, "", True, 1, []), error


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        (b"", "a.csv", "the first line must name"),
        (b"\n\n", "a.csv", "the first line must name"),
        ("tenant,user,reason,key\n".encode("utf-16"), "a.csv", "no text in UTF-8"),
        (HEADER.encode() + b"\n \n", "a.csv", "no request in the file"),
        (b"\n", "a.jsonl", "no request in the file"),
    ],
)
def test_file_without_a_request_is_refused(
    control: Control, file: Run, tmp_path: Path, content: bytes, name: str, why: str
) -> None:
    (tmp_path / name).write_bytes(content)
    code, out, error = file(tmp_path / name)
    assert (code, out, why in error, jobs(control)) == (2, "", True, []), error


def test_file_that_cannot_be_read_is_one_line(file: Run, tmp_path: Path) -> None:
    for path, why in ((tmp_path / "nothing.csv", "No such file"), (tmp_path, "Is a directory")):
        code, _, error = file(path)
        assert (code, why in error, len(error.splitlines())) == (2, True, 1), error


def test_objects_of_json_lines_are_rows(control: Control, file: Run, tmp_path: Path) -> None:
    good = {"tenant": "acme", "user": "ann", "reason": "operator"}
    lines: list[object] = [
        {**good, "key": "passport"},
        {**good, "subject": True, "project": None},
        {**good, "subject": "true", "project": ""},
        {**good, "key": 7},
        {**good, CANARY: "x"},
        [CANARY],
        {**good, "key": "a\0"},
    ]
    raw = [*map(json.dumps, lines), '{"user": "a", "user": "b"}', "{", "[" * 100_000, '{"tenant": "\\ud800"}']
    (tmp_path / "r.jsonl").write_text("\n".join(raw))
    code, out, _ = file(tmp_path / "r.jsonl", "--json")
    assert (code, [o for _, o in outcomes(out)]) == (1, ["accepted", "accepted", "known", *["refused"] * 8])
    assert [line["why"] for line in told(out)[3:]] == [
        "the value of key must be a text",
        f"the line must be a JSON object with keys out of: {', '.join(rows.COLUMNS)}",
        f"the line must be a JSON object with keys out of: {', '.join(rows.COLUMNS)}",
        "key must not hold a NUL character, which PostgreSQL cannot store",
        "a key of the object is there twice",
        "the line is no JSON",
        "the line is no JSON",
        "tenant must be valid Unicode",
    ]
    assert jobs(control, "selector_kind, selector_value") == [("key", "passport"), ("subject", None)]
