"""The programs that show and judge the pages of the console: Chromium, axe-core and a validator of HTML.

Each is installed where it is not yet there, into ``.browser`` of the checkout, which git ignores. Nothing is installed
into the system, and nobody has to be root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from filelock import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playwright.sync_api import Browser, Playwright

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".browser"
AXE_PACKAGE = "axe-core@4.14.0"
VALIDATOR_PACKAGE = "vnu-jar@26.9.27"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
DEBIAN_PACKAGES = ("chromium", "fonts-dejavu-core")
_INSTALL_SECONDS = 900
_START_SECONDS = 60


class NotInstalledError(Exception):
    """A program cannot be installed here, or does not start; the message says why."""


class Chromium(NamedTuple):
    """A Chromium that starts on this machine."""

    path: Path
    environment: Mapping[str, str]
    """The environment variables that it needs, beside those of this process."""

    def launch(self, playwright: Playwright) -> Browser:
        """Return a started browser of Playwright, without a window. Only loopback and ``evil.example`` have an address.

        ``evil.example`` leads to loopback, as the name of an attacker may.
        """
        rules = "MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
        return playwright.chromium.launch(
            executable_path=str(self.path),
            env={**os.environ, **self.environment},
            args=[f"--host-resolver-rules={rules}"],
        )


# -- Chromium ----------------------------------------------------------------------------------------------------------


def install_chromium() -> Chromium:
    """Return the Chromium of this machine, or else the one of Debian or Playwright, which is installed.

    Raises ``NotInstalledError`` where none of them can be had, with the reason for each.
    """
    problems = []
    for name, find in (
        ("on PATH", _find_installed),
        ("from Debian", _unpack_from_debian),
        ("from Playwright", _fetch_from_playwright),
    ):
        try:
            chromium = find()
            _run(str(chromium.path), "--version", seconds=_START_SECONDS, environment=chromium.environment)
        except NotInstalledError as error:
            problems.append(f"{name}: {error}")
        else:
            return chromium
    raise NotInstalledError("; ".join(problems))


def _find_installed() -> Chromium:
    for name in CHROMIUM_NAMES:
        if path := shutil.which(name):
            return Chromium(Path(path), {})
    raise NotInstalledError("there is none")


def _unpack_from_debian() -> Chromium:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NotInstalledError("there is no apt-get here")
    folder = FOLDER / "chromium"
    _install_once(folder, " ".join(DEBIAN_PACKAGES), _download_from_debian)
    libraries = {str(path.parent) for path in (folder / "usr" / "lib").rglob("*.so*")}
    # Chromium finds the libraries of its own folder itself. The fonts lie where a user's own data would.
    own = str(folder / "usr" / "lib" / "chromium")
    environment = {
        "LD_LIBRARY_PATH": ":".join(sorted(libraries - {own})),
        "XDG_DATA_HOME": str(folder / "usr" / "share"),
    }
    return Chromium(Path(own, "chromium"), environment)


def _download_from_debian(folder: Path) -> None:
    """Download Debian's Chromium with everything that it needs and the system lacks, and unpack all of it."""
    packed = folder / "packed"
    (packed / "partial").mkdir(parents=True)
    # Only the files are wanted, so the lock of the system's packages, which only root may take, is not needed.
    options = ("--download-only", "--no-install-recommends", "-o", "Debug::NoLocking=1")
    _run("apt-get", "install", "--yes", *options, "-o", f"Dir::Cache::archives={packed}", *DEBIAN_PACKAGES)
    for archive in sorted(packed.glob("*.deb")):
        _run("dpkg-deb", "--extract", str(archive), str(folder))
    shutil.rmtree(packed)


def _fetch_from_playwright() -> Chromium:
    from playwright._impl._driver import compute_driver_executable

    folder = FOLDER / "playwright"
    words = [*map(str, compute_driver_executable()), "install", "--only-shell", "chromium"]
    place = {"PLAYWRIGHT_BROWSERS_PATH": str(folder)}
    _install_once(folder, "chromium", lambda _: _run(*words, environment=place))
    for path in folder.rglob("*headless_shell"):
        return Chromium(path, {})
    raise NotInstalledError("it has no headless shell for this system")


# -- axe-core and the validator ----------------------------------------------------------------------------------------


def read_axe() -> str:
    """Return the program of axe-core, which finds what people with a disability cannot use, as JavaScript."""
    return (_install_from_npm(AXE_PACKAGE) / "axe.min.js").read_text(encoding="utf-8")


def validate_pages(folder: Path) -> list[str]:
    """Return the errors that the validator of the W3C finds in the pages of a folder.

    Raises ``NotInstalledError`` where there is no Java, or the validator cannot be installed.
    """
    if shutil.which("java") is None:
        raise NotInstalledError("there is no java here")
    jar = _install_from_npm(VALIDATOR_PACKAGE) / "build" / "dist" / "vnu.jar"
    words = ("java", "-jar", str(jar), "--stdout", "--exit-zero-always", "--format", "json", str(folder))
    messages = json.loads(_run(*words))["messages"]
    return [
        f"{Path(one['url']).name}:{one.get('lastLine')}: {one['message']} {one.get('extract', '')!r}"
        for one in messages
        if one["type"] != "info"
    ]


def _install_from_npm(package: str) -> Path:
    if shutil.which("npm") is None:
        raise NotInstalledError("there is no npm here")
    name = package.partition("@")[0]
    folder = FOLDER / name
    # What their scripts build or move is found without: nothing of theirs has to run to be installed.
    words = (
        "npm",
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--prefix",
        str(folder),
    )
    _install_once(folder, package, lambda _: _run(*words, package))
    return folder / "node_modules" / name


# -- for all of them ---------------------------------------------------------------------------------------------------


def _install_once(folder: Path, version: str, install: Callable[[Path], object]) -> None:
    """Have ``install`` fill a folder, unless it did so for this version before."""
    FOLDER.mkdir(exist_ok=True)
    with FileLock(f"{folder}.lock"):
        ready = folder / "ready"
        if ready.is_file() and ready.read_text(encoding="utf-8") == version:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        install(folder)
        ready.write_text(version, encoding="utf-8")


def _run(*words: str, seconds: int = _INSTALL_SECONDS, environment: Mapping[str, str] | None = None) -> str:
    """Return what a command prints; raise ``NotInstalledError`` with its last line where it fails."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(str(error)) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"it ended with status {done.returncode}"]
        raise NotInstalledError(lines[-1])
    return done.stdout
