"""Search: the index of a library, the ranking of its skills for a request, by words and by meaning."""

from prowess.on_demand import make_submodule_getter

TYPE_CHECKING = False

if not TYPE_CHECKING:  # type checkers know the submodules, and should say when one is missing
    __getattr__ = make_submodule_getter(__name__)
