"""The source of the skills of one install, named by its reference ``@org/name``."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from prowess.addresses.skill_ref import SkillRef
from prowess.errors import BadReferenceError, InstallError, Issue, NotInstalledError, SourceError
from prowess.installed.scopes import find_copies, find_install, project_scope, user_scope
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import read_lock
from prowess.skills.catalog import Catalog
from prowess.sources.directory import DirectorySource, check_mount

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from prowess.installed.scopes import InstallScope


class InstalledSource:
    """The skills of one install; one in the project counts before one of the user."""

    __slots__ = ("_bases", "_mount_as", "_options", "_preload", "_ref", "_verify")

    def __init__(
        self,
        ref: str | SkillRef,
        *,
        mount_as: str = "",
        preload: bool = False,
        verify: Literal["lock"] | None = None,
        bases: tuple[str | os.PathLike[str] | None, str | os.PathLike[str] | None] = (None, None),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._ref = ref
        self._mount_as = mount_as
        self._preload = preload
        self._verify = verify
        self._bases = bases
        self._options = options

    def __repr__(self) -> str:
        """Show the reference."""
        return f"Source.installed({str(self._ref)!r})"

    def load(self) -> Catalog:
        """Return the skills of the install; raises ``SourceError`` for a bad reference, or without an install."""
        check_mount(self._mount_as)
        if self._verify not in {None, "lock"}:
            raise SourceError(f"verify must be 'lock' or None, not {self._verify!r}")
        user, project = self._bases
        try:
            ref = SkillRef.parse(str(self._ref))
            scope, install_folder = find_install(ref, (project_scope(project), user_scope(user)))
        except BadReferenceError as error:
            raise SourceError(f"parsing skill reference: {error.message}", code=error.code) from None
        except NotInstalledError as error:
            raise SourceError(f"resolving skill reference {ref}: {error.message}", code=error.code) from None
        catalog = Catalog()
        copies = _find_copies(ref, scope)
        for folder in copies or [install_folder]:
            mount_as = self._mount_as
            if mount_as and len(copies) > 1:  # else all skills would be in one virtual folder
                mount_as = f"{mount_as}/{os.path.basename(folder)}"
            catalog |= DirectorySource(folder, mount_as=mount_as, preload=self._preload, options=self._options).load()
        if self._verify == "lock":
            catalog = _drop_changed_skills(catalog, scope)
        return catalog | Catalog(issues=_check_version(ref, scope, install_folder))


def _find_copies(ref: SkillRef, scope: InstallScope) -> list[str]:
    """Return the folders of an install that consists of copies, one for each skill.

    The list is empty for any other install, and where the lock file cannot be read.
    """
    with suppress(InstallError):  # ``_check_version`` reports a bad lock file
        return find_copies(read_lock(scope.lock_folder).get(ref.full_name), scope)
    return []


def _drop_changed_skills(found: Catalog, scope: InstallScope) -> Catalog:
    """Return the catalogue without the skills that are not what the lock file says; issues name them."""
    from prowess.installed.verifier import LockVerifier

    verified, refused = LockVerifier((scope,), DEFAULT_LIMITS).verify_skills(list(found.skills))
    return Catalog(verified, issues=(*found.scan_issues, *refused))


def _check_version(ref: SkillRef, scope: InstallScope, install_folder: str) -> list[Issue]:
    """Return a warning when another version is installed than the reference names. The lock file decides, not we."""
    try:
        entry = read_lock(scope.lock_folder).get(ref.full_name)
    except InstallError as error:
        return [Issue(error.code, "", error.message, error.path, 0, "warning")]
    # A version is a tag or a commit: either name of what is installed fits.
    if not ref.version or entry is None or ref.version in {entry.ref, entry.commit}:
        return []
    message = f"version {entry.ref or entry.commit or 'unknown'} is installed, not {ref.version}"
    return [Issue("version-mismatch", "version", message, install_folder, 0, "warning")]
