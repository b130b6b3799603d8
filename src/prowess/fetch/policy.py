"""Fetching the files of a ``policy-url`` into the folder where the policy in force looks for them."""

from __future__ import annotations

import os
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

from prowess.fetch.client import Fetcher
from prowess.fetch.url_policy import UrlPolicy
from prowess.files import syscalls
from prowess.files.delete import temporary_folder
from prowess.files.write import NewFile, make_folders, write_atomic, write_tree
from prowess.limits import DEFAULT_LIMITS
from prowess.policy.files import FETCHED_FILE, POLICY_FILES, check_fetched, fetched_folder, list_urls, use_policy

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.policy.rules import Policy


def fetch_policies(local: Policy, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """Fetch what every ``policy-url`` of a policy has now; return the addresses.

    What is malformed is not put in place, and the copy of before counts on. Raises ``FetchError`` and ``PolicyError``.
    """
    urls = list_urls(local)
    for url in urls:
        with use_policy(local):  # the one in force cannot be known before this
            fetcher = Fetcher(url, UrlPolicy(), limits)
            answers = {
                name: fetcher.get(f"{url}{name}", limits.max_policy_bytes, limit_name="max_policy_bytes")
                for name in POLICY_FILES
            }
        files = {name: answer.body for name, answer in answers.items() if answer.status == HTTPStatus.OK}
        with temporary_folder() as folder:
            write_tree(folder, [NewFile(name, content) for name, content in files.items()])
            check_fetched(folder, url, limits)
        _put_in_place(fetched_folder(url), files)
    return urls


def _put_in_place(folder: str, files: dict[str, bytes]) -> None:
    make_folders(folder, mode=0o700)
    for name in POLICY_FILES:  # what forbids comes first
        path = os.path.join(folder, name)
        if name in files:
            write_atomic(path, files[name], mode=0o600)
        else:
            with suppress(FileNotFoundError):
                syscalls.delete_file(path)
    write_atomic(os.path.join(folder, FETCHED_FILE), b"", mode=0o600)
