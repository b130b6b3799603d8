"""Records are what the standard library's data classes and named tuples are, and load neither of its modules."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import typing
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

import prowess
from prowess import records

if TYPE_CHECKING:
    from collections.abc import Mapping


@records.dataclass(frozen=True, slots=True)
class Record:
    """A point with a name."""

    name: str
    x: int = 1
    tags: Mapping[str, int] = records.field(default_factory=dict)
    line: int = records.field(default=0, repr=False, compare=False)

    @property
    def label(self) -> str:
        return f"{self.name}@{self.x}"

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(self.x)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """A point with a name."""

    name: str
    x: int = 1
    tags: Mapping[str, int] = dataclasses.field(default_factory=dict)
    line: int = dataclasses.field(default=0, repr=False, compare=False)

    @property
    def label(self) -> str:
        return f"{self.name}@{self.x}"

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(self.x)


@records.dataclass(frozen=True, slots=True)
class Pair:
    """Two values that can be hashed."""

    left: int
    right: str = "r"


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPair:
    """Two values that can be hashed."""

    left: int
    right: str = "r"


class Row(records.NamedTuple):
    """A row of a table."""

    name: str
    size: int = 3

    @property
    def double(self) -> int:
        return 2 * self.size


class StandardRow(typing.NamedTuple):
    """A row of a table."""

    name: str
    size: int = 3

    @property
    def double(self) -> int:
        return 2 * self.size


def outcome(work: Any) -> object:  # noqa: ANN401 - a call
    """What a call returns as text, or the error that it raises, without the names of the classes."""
    try:
        result = repr(work())
    except Exception as error:  # noqa: BLE001 - compared with the other class's
        result = f"{type(error).__name__}: {error}"
    return result.replace("Standard", "").replace("Record", "")


CALLS: dict[str, Any] = {
    "the usual values": lambda cls: cls("a"),
    "values by position": lambda cls: cls("a", 2, {"b": 3}, 4),
    "values by name": lambda cls: cls(line=4, tags={}, x=2, name="a"),
    "a value too few": lambda cls: cls(),
    "a value too many": lambda cls: cls("a", 2, {}, 4, 5),
    "a field that it lacks": lambda cls: cls("a", y=1),
    "a value that the check refuses": lambda cls: cls("a", -1),
    "a factory makes a value for each": lambda cls: cls("a").tags is cls("a").tags,
    "equal values": lambda cls: cls("a") == cls("a", line=7),
    "other values": lambda cls: cls("a") == cls("a", 2),
    "something else": lambda cls: cls("a") == "a",
    "a hash of values that have none": lambda cls: hash(cls("a")),
    "a pattern": lambda cls: cls.__match_args__,
    "slots": lambda cls: cls.__slots__,
    "no dictionary": lambda cls: cls("a").__dict__,
    "a pickle": lambda cls: pickle.loads(pickle.dumps(cls("a", 2, {"b": 3}, 4))).line,  # noqa: S301 - its own
    "a copy": lambda cls: (copy.copy(cls("a", 2)), copy.deepcopy(cls("a", 2, {"b": 3}))),
    "the fields": lambda cls: [(f.name, f.type, f.compare, f.repr, f.init) for f in dataclasses.fields(cls)],
    "the fields of an object": lambda cls: [f.name for f in dataclasses.fields(cls("a"))],
    "a dictionary": lambda cls: dataclasses.asdict(cls("a", 2, {"b": 3})),
    "a tuple": lambda cls: dataclasses.astuple(cls("a", 2, {"b": 3})),
    "a changed copy": lambda cls: dataclasses.replace(cls("a", line=5), x=9).line,
    "a changed copy that the check refuses": lambda cls: dataclasses.replace(cls("a"), x=-9),
    "a copy with a field that it lacks": lambda cls: dataclasses.replace(cls("a"), y=-9),
    "is a data class": lambda cls: (dataclasses.is_dataclass(cls), dataclasses.is_dataclass(cls("a"))),
    "the signature": inspect.signature,
    "the annotations": lambda cls: cls.__annotations__,
    "the documentation": lambda cls: cls.__doc__,
    "the parameters": lambda cls: cls.__dataclass_params__.frozen,
    "a property": lambda cls: cls("a").label,
    "setting a field": lambda cls: setattr(cls("a"), "x", 1),
    "deleting a field": lambda cls: delattr(cls("a"), "x"),
    "the qualified name": lambda cls: cls.__qualname__,
    "the module": lambda cls: cls.__module__,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_record_does_what_a_data_class_does(name: str) -> None:
    assert outcome(lambda: CALLS[name](Record)) == outcome(lambda: CALLS[name](Standard))


def test_a_record_of_values_that_have_a_hash_has_the_hash_of_a_data_class() -> None:
    assert hash(Pair(1, "b")) == hash(StandardPair(1, "b"))
    assert {Pair(1): "found"}[Pair(1, "r")] == "found"


def test_a_data_class_may_extend_a_record() -> None:
    @dataclasses.dataclass(frozen=True)
    class Extended(Pair):
        last: int = 0

    assert repr(Extended(1, last=5)).endswith("Extended(left=1, right='r', last=5)")


def test_a_changed_copy_made_without_the_standard_library_is_the_same() -> None:
    record = Record("a", line=5)
    assert records.replace(record, x=3) == dataclasses.replace(record, x=3)
    assert records.replace(record, x=3).line == 5


def test_a_class_that_is_not_frozen_is_no_record() -> None:
    with pytest.raises(TypeError, match="frozen"):
        typing.cast("Any", records).dataclass(frozen=False, slots=True)


ROWS: dict[str, Any] = {
    "the usual values": lambda cls: cls("a"),
    "values by name": lambda cls: cls(size=2, name="a"),
    "a value too few": lambda cls: cls(),
    "the fields": lambda cls: (cls._fields, cls._field_defaults),
    "a changed copy": lambda cls: cls("a")._replace(size=5),
    "a dictionary": lambda cls: cls("a")._asdict(),
    "made from a sequence": lambda cls: cls._make(["a", 4]),
    "a property": lambda cls: cls("a", 4).double,
    "the signature": lambda cls: [str(p).split(":")[0] for p in inspect.signature(cls).parameters.values()],
    "its type hints": typing.get_type_hints,
    "a pickle": lambda cls: pickle.loads(pickle.dumps(cls("a", 4))),  # noqa: S301 - its own
    "equal to a tuple": lambda cls: cls("a", 4) == ("a", 4),
    "the documentation": lambda cls: cls.__doc__,
    "the module and name": lambda cls: (cls.__module__, cls.__qualname__, cls.__name__),
    "setting a field": lambda cls: setattr(cls("a"), "size", 1),
    "no dictionary of its own": lambda cls: setattr(cls("a"), "other", 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_named_tuple_is_the_one_of_the_standard_library(name: str) -> None:
    assert outcome(lambda: ROWS[name](Row)) == outcome(lambda: ROWS[name](StandardRow))


def test_records_are_made_without_dataclasses_and_typing() -> None:
    code = (
        "import sys, prowess.records as r\n"
        "made = r.dataclass(frozen=True, slots=True)(type('P', (), {'__annotations__': {'x': 'int'}, 'x': 1}))\n"
        "assert (made(2), hash(made()), made() == made()) and repr(made(3)) == 'P(x=3)'\n"
        "print(sorted({'dataclasses', 'typing', 'inspect'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["Grants", "IndexSearch", "Inventory", "Issue", "Limits", "Shadowed"])
def test_frameworks_can_evaluate_the_annotations_of_a_result(name: str) -> None:
    result = getattr(prowess, name)
    assert set(typing.get_type_hints(result)) >= {field.name for field in dataclasses.fields(result)}


def test_a_result_with_issues_has_a_schema() -> None:
    assert "severity" in pydantic.TypeAdapter(prowess.Issue).json_schema()["properties"]
    assert pydantic.TypeAdapter(prowess.Inventory).json_schema()
