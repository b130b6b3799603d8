"""The strings that parameters and fields accept, as types.

They are in a module of their own because making them loads ``typing``, which a scan does without: other modules import
them for type checkers alone.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "info"]
OnBadBytes: TypeAlias = Literal["strict", "replace", "bytes"]
"""What becomes of a body that is not UTF-8: an error, U+FFFD for each bad byte, or the bytes as they are."""
Mode: TypeAlias = Literal["strict", "lenient"]
FollowLinks: TypeAlias = bool | Literal["never"]
"""Which links to folders a scan follows: those of installers, every one, or none."""
OnDuplicate: TypeAlias = Literal["first", "last", "error"]
DialectName: TypeAlias = Literal["load_skill", "skill__activate", "read_skill", "skill_load", "use_skill", "prowess"]
OpenMethod: TypeAlias = Literal["openat2", "components", "portable"]
"""How a file is opened so that no link on the way to it is followed."""
SearchMode: TypeAlias = Literal["words", "words+meaning"]
"""What a search went by."""
Semantic: TypeAlias = Literal["auto"] | bool
"""Whether a search goes by meaning too: where it is prepared for that, always, or never."""
