"""Holding a JSON document against its schema in docs/json, by the keywords that these use."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

FOLDER = Path(__file__).parents[2] / "docs" / "json"
SCHEMAS = {path.name.removesuffix(".schema.json"): json.loads(path.read_text()) for path in FOLDER.iterdir()}
NAMES = sorted(SCHEMAS.keys() - {"common"})
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "null": type(None),
    "boolean": bool,
}
FORMATS: Mapping[str, Callable[[str], object]] = {"date-time": datetime.fromisoformat, "uuid": UUID}
KNOWN = {"$schema", "title", "description", "$ref", "anyOf", "type", "enum", "format", "minimum"}
KNOWN |= {"properties", "required", "additionalProperties", "items", "$defs"}


def misfits(value: Any, schema: Mapping[str, Any], at: str = "$") -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Say where a value does not fit a schema; a keyword that is not checked here may not stand in one."""
    assert schema.keys() <= KNOWN, at
    if "$ref" in schema:
        name, _, place = schema["$ref"].partition(".schema.json#/$defs/")
        yield from misfits(value, SCHEMAS[name]["$defs"][place], at)
    elif "anyOf" in schema:
        if all(list(misfits(value, each, at)) for each in schema["anyOf"]):
            yield f"{at} fits none"
    elif not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        yield f"{at} is no {schema['type']}"
    else:
        yield from _inside(value, schema, at)


def _inside(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is none of its words"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{at} is too small"
    if "format" in schema:
        try:
            FORMATS[schema["format"]](value)
        except ValueError:
            yield f"{at} is no {schema['format']}"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from misfits(item, schema["items"], f"{at}[{number}]")
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema["additionalProperties"]
        yield from (f"{at}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            if name not in known and rest is False:
                yield f"{at}.{name} is not known"
            else:
                yield from misfits(inner, known.get(name, rest), f"{at}.{name}")


def changed(document: Any, schema: Mapping[str, Any]) -> Iterator[Any]:  # noqa: ANN401 - any JSON
    """Give the document once for each field that its schema names, without it and with another name for it."""
    for path in fields(document, schema):
        for name in (None, "renamed"):
            made = copy.deepcopy(document)
            place = made
            for step in path[:-1]:
                place = place[step]
            taken = place.pop(path[-1])
            if name is not None:
                place[name] = taken
            yield made


def fields(value: Any, schema: Mapping[str, Any], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Give the path to each field of a document that its schema names."""
    if "$ref" in schema:
        name, _, place = schema["$ref"].partition(".schema.json#/$defs/")
        yield from fields(value, SCHEMAS[name]["$defs"][place], path)
    for each in schema.get("anyOf", ()):
        if not list(misfits(value, each)):
            yield from fields(value, each, path)
    if isinstance(value, dict):
        for name in value.keys() & schema.get("properties", {}).keys():
            yield (*path, name)
            yield from fields(value[name], schema["properties"][name], (*path, name))
    if isinstance(value, list) and "items" in schema:
        for number, inner in enumerate(value):
            yield from fields(inner, schema["items"], (*path, number))
