"""Frozen classes and named tuples that are made without importing ``dataclasses`` and ``typing``.

A short program imports the package and scans once (the bench row "import and first scan"). The two modules of the
standard library, with what they load, would cost as much as everything else on that path. A module on the path imports
``dataclass``, ``field``, ``replace`` and ``NamedTuple`` from here, and writes what it would write with the standard
library. Type checkers see the names of the standard library. At run time the classes do what its classes do, and
``dataclasses.fields``, ``asdict`` and ``replace`` work on them; tests/test_records.py compares the two.
"""
# ruff: noqa: ANN401 - the fields of a record hold values of any type

from __future__ import annotations

from collections import namedtuple
from operator import attrgetter

TYPE_CHECKING = False  # Type checkers take a variable of this name for true. The one in typing would load typing.

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass, field, replace
    from typing import Any, NamedTuple, Never

    Options = dict[str, dict[str, Any]]
    """How ``dataclasses.field`` would be called for each field of a record."""

__all__ = ["NamedTuple", "dataclass", "field", "replace"]

# -- frozen classes with slots -----------------------------------------------------------------------------------------


class _Field:
    """A field that is more than a default: how ``dataclasses.field`` would be called for it."""

    __slots__ = ("options",)

    def __init__(self, **options: Any) -> None:
        self.options = options


class _Factory:
    """The default, in a signature, of a field whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Description:
    """``__dataclass_fields__`` or ``__dataclass_params__`` of a record, made when somebody asks for it.

    ``dataclasses.fields``, ``asdict``, ``replace`` and ``is_dataclass`` ask for it, so their module is loaded already:
    a real data class with the same fields is made, and its description becomes the record's.
    """

    __slots__ = ("_name", "_options")

    def __init__(self, name: str, options: Options) -> None:
        self._name = name
        self._options = options

    def __get__(self, _: object, owner: Any) -> Any:
        from dataclasses import field, make_dataclass

        record = next(base for base in owner.__mro__ if base.__dict__.get(self._name) is self)
        rows = [(name, record.__annotations__[name], field(**given)) for name, given in self._options.items()]
        twin = make_dataclass(record.__name__, rows, frozen=True, slots=True)
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(record, name, getattr(twin, name))
        return getattr(record, self._name)


def _dataclass(*, frozen: bool, slots: bool) -> Callable[[type], type]:
    """Return the decorator ``dataclasses.dataclass(frozen=True, slots=True)``; records are of no other kind."""
    if not (frozen and slots):
        raise TypeError("a record is frozen and has slots")
    return _make_record


def _make_record(cls: type) -> type:
    options = {name: _field_options(cls, name) for name in cls.__annotations__}
    names = tuple(options)
    left_out = {*options, "__dict__", "__weakref__"}
    # A class cannot get slots once it is made, so it is made again, as the standard library does it.
    body = {
        **_METHODS,
        **{name: value for name, value in cls.__dict__.items() if name not in left_out},
        "__slots__": names,
        "__match_args__": names,
        "__qualname__": cls.__qualname__,
        "__dataclass_fields__": _Description("__dataclass_fields__", options),
        "__dataclass_params__": _Description("__dataclass_params__", options),
        "_shown_fields": tuple(name for name in names if options[name].get("repr", True)),
        "_compared_values": property(attrgetter(*(name for name in names if options[name].get("compare", True)))),
    }
    record: Any = type(cls)(cls.__name__, cls.__bases__, body)
    record.__init__ = _make_init(record, options)
    return record  # type: ignore[no-any-return]


def _field_options(cls: type, name: str) -> dict[str, Any]:
    if name not in cls.__dict__:
        return {}
    default = cls.__dict__[name]
    return default.options if isinstance(default, _Field) else {"default": default}


def _make_init(record: Any, options: Options) -> Any:
    """Return an ``__init__`` with the record's signature; it writes into the slots, past ``__setattr__``."""
    factories = {name: given["default_factory"] for name, given in options.items() if "default_factory" in given}
    lines = [f"def __init__(self, {', '.join(options)}):"]
    lines += [f" if {name} is factory: {name} = factories[{name!r}]()" for name in factories]
    # A loop and not a line for each field: the text must be compiled, and Limits has more than a hundred fields.
    lines += [f" for put, value in zip(puts, ({', '.join(options)},)):", "  put(self, value)"]
    if hasattr(record, "__post_init__"):
        lines += [" self.__post_init__()"]
    puts = [record.__dict__[name].__set__ for name in options]
    space: dict[str, Any] = {"puts": puts, "factory": _FACTORY, "factories": factories}
    exec("\n".join(lines), space)  # noqa: S102 - it holds the names of fields alone, as in collections.namedtuple
    init = space["__init__"]
    init.__defaults__ = tuple(given.get("default", _FACTORY) for given in options.values() if given.keys() & _DEFAULTS)
    init.__annotations__ = {**record.__annotations__, "return": None}
    init.__qualname__ = f"{record.__qualname__}.__init__"
    init.__module__ = record.__module__
    return init


_DEFAULTS = {"default", "default_factory"}


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown_fields)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: Any) -> Any:
    return self._compared_values == other._compared_values if type(other) is type(self) else NotImplemented  # noqa: SLF001


def _hash(self: Any) -> int:
    return hash(self._compared_values)


def _refuse_assignment(_: object, name: str, _value: object) -> Never:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: object, name: str) -> Never:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _replace(record: Any, /, **changes: Any) -> Any:
    """Return a copy of a record in which the named fields have other values."""
    return type(record)(**{name: getattr(record, name) for name in record.__match_args__} | changes)


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__match_args__]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


_METHODS = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__replace__": _replace,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}

# -- named tuples ------------------------------------------------------------------------------------------------------


class _NamedTupleMaker(type):
    """Turns a class with annotations into a named tuple that has the methods of the class."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, body)
        annotations = body.get("__annotations__", {})
        defaults = [body[field] for field in annotations if field in body]
        made: Any = namedtuple(name, annotations, defaults=defaults, module=body["__module__"])  # type: ignore[misc]  # noqa: PYI024
        # As text: typing's own compiles each annotation, which costs more than the tuple.
        made.__annotations__ = made.__new__.__annotations__ = annotations
        for key, value in body.items():
            if key not in _SET_ALREADY and key not in annotations:
                setattr(made, key, value)
        return made


_SET_ALREADY = frozenset(("__annotations__", "__module__"))


class _NamedTuple(metaclass=_NamedTupleMaker):
    """A base that turns the fields of a class into those of a named tuple, as ``typing.NamedTuple`` does."""


if not TYPE_CHECKING:
    dataclass, field, replace, NamedTuple = _dataclass, _Field, _replace, _NamedTuple
