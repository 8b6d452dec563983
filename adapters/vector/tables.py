"""The tables of the index: points, what is left of a point until its erasure was verified, and the shape of it all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import sqlalchemy as sa

from adapters.vector import floats

SCHEMA_VERSION: Final = 1
KIND: Final = "point"
"""What the targets of this store are."""
SCHEMA: Final = "vector_schema"
metadata = sa.MetaData()


class Written(sa.types.UserDefinedType[str]):
    """The column type of pgvector, in and out as text."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """Name the type."""
        return "vector"


class Vector(sa.types.TypeDecorator[bytes]):
    """float32 values, as bytes in this program and in a SQLite file."""

    impl = sa.LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Choose the column's type."""
        return dialect.type_descriptor(sa.LargeBinary() if dialect.name == "sqlite" else Written())

    def process_bind_param(self, value: bytes | None, dialect: sa.Dialect) -> Any:  # noqa: ANN401 - as the column
        """Give what the column keeps."""
        return value if value is None or dialect.name == "sqlite" else floats.written(value)

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> bytes | None:  # noqa: ANN401 - as above
        """Read what the column keeps."""
        return value if value is None or dialect.name == "sqlite" else floats.read(value)


_TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

# Without an origin a point can neither be shown nor followed: only another program can have put it here.
points: Final = sa.Table(
    "vector_points",
    metadata,
    sa.Column("tenant", _TEXT, primary_key=True),
    sa.Column("id", _TEXT, primary_key=True),
    sa.Column("user_id", _TEXT, nullable=False),
    sa.Column("project", _TEXT, nullable=False),
    sa.Column("kind", _TEXT),
    sa.Column("origin", _TEXT),
    sa.Column("version", sa.BigInteger),
    sa.Column("source", _TEXT, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),  # of its scope when it was written
    sa.Column("vector", Vector, nullable=False),
)
# 64 bits of an erased point, meaningless without the keyring.
probes: Final = sa.Table(
    "vector_probes",
    metadata,
    sa.Column("tenant", _TEXT, primary_key=True),
    sa.Column("id", _TEXT, primary_key=True),
    sa.Column("sketch", sa.BigInteger, nullable=False),
)

_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "sqlite": {"text": "TEXT", "vector": "BLOB NOT NULL CHECK (length(vector) = {bytes})"},
    "postgresql": {"text": 'text COLLATE "C"', "vector": "vector({dimensions}) NOT NULL"},
}
_STATEMENTS: Final = (
    """CREATE TABLE vector_points (
        tenant {text} NOT NULL, id {text} NOT NULL, user_id {text} NOT NULL, project {text} NOT NULL,
        kind {text}, origin {text}, version bigint, source {text} NOT NULL, revision bigint NOT NULL,
        vector {vector}, PRIMARY KEY (tenant, id),
        CHECK ((kind IS NULL) = (origin IS NULL) AND (kind IS NULL) = (version IS NULL)))""",
    "CREATE INDEX vector_points_of_user ON vector_points (tenant, user_id, id, project)",
    "CREATE INDEX vector_points_origin ON vector_points (tenant, origin, kind, user_id, version)",
    "CREATE INDEX vector_points_source ON vector_points (tenant, source, user_id, id)",
    """CREATE TABLE vector_probes (
        tenant {text} NOT NULL, id {text} NOT NULL, sketch bigint NOT NULL, PRIMARY KEY (tenant, id))""",
)
_NEAREST: Final = "CREATE INDEX vector_points_nearest ON vector_points USING hnsw (vector vector_cosine_ops)"
_SCHEMA: Final = f"CREATE TABLE {SCHEMA} (version bigint NOT NULL, dimensions bigint NOT NULL)"


def statements(database: str, dimensions: int) -> Iterator[str]:
    """Give the statements that make the tables of an index, and note its shape."""
    types = _TYPES[database]
    vector = types["vector"].format(dimensions=dimensions, bytes=dimensions * floats.WIDTH)
    yield from (statement.format(text=types["text"], vector=vector) for statement in _STATEMENTS)
    if database == "postgresql":
        yield _NEAREST
    yield _SCHEMA
    yield f"INSERT INTO {SCHEMA} VALUES ({SCHEMA_VERSION}, {int(dimensions)})"  # noqa: S608 - numbers of ours
