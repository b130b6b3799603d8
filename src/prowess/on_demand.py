"""Modules that are loaded when something in them is first used.

A scan needs a small part of the package, and loading the rest takes longer than scanning a hundred skills (the bench
row "import and first scan"). A module on that path names what only later steps need like this::

    if TYPE_CHECKING:
        from prowess.skills import resources
    else:
        resources = OnDemand("prowess.skills.resources")

Type checkers and the linter of the layers see an ordinary import. ``make_submodule_getter`` keeps the modules of a room
reachable from the room (``prowess.spec.render``), whatever of them was loaded.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


class OnDemand:
    """Stands for a module and has its attributes; the module is loaded when the first of them is asked for."""

    __slots__ = ("_module", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the module has
        if self._module is None:
            from importlib import import_module

            self._module = import_module(self._name)
        return getattr(self._module, attribute)


def make_submodule_getter(package: str) -> Callable[[str], ModuleType]:
    """Return the ``__getattr__`` of a package: it loads the submodule of that name, or raises ``AttributeError``."""

    def get_submodule(name: str) -> ModuleType:
        from importlib import import_module

        try:
            return import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":  # the submodule is there, and something that it needs is not
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    return get_submodule
