"""The memory of the console: a page that is loaded again and again leaves nothing behind."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.web.browser import Browser

_ROUNDS = 12
_MAX_BLOCKS_EACH = 5
"""Blocks of memory that a page may leave behind: Python itself remembers some addresses. One kept view has hundreds."""


def test_pages_that_are_loaded_again_and_again_leave_nothing_behind(
    put: Callable[..., Path], browse: Callable[[], Browser]
) -> None:
    for number in range(40):
        put(f"skills/skill-{number}")
    browser = browse()

    def load_pages(number: int) -> None:
        # Another request each time: what somebody typed once must not be remembered for ever.
        pages = ("/", f"/?q=request+{number}", "/skills/skill-1", f"/sees?q=request+{number}", "/agents", "/changes")
        for page in pages:
            assert browser.get(page).status == 200

    for number in range(4):  # what is made once: templates, patterns, the index of the search
        load_pages(number)
    gc.collect()
    before = sys.getallocatedblocks()
    for number in range(_ROUNDS):
        load_pages(100 + number)
    gc.collect()
    assert sys.getallocatedblocks() - before <= _MAX_BLOCKS_EACH * _ROUNDS * 6
