"""Skills: one skill with its fields, instructions and files, and the catalogue of many."""

from prowess.on_demand import make_submodule_getter

TYPE_CHECKING = False

if not TYPE_CHECKING:  # type checkers know the submodules, and should say when one is missing
    __getattr__ = make_submodule_getter(__name__)
