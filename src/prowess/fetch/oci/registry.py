"""A client of one repository in an OCI registry: requests, with a login where the registry wants one.

The registry is asked by https. Where plain http is allowed, it is asked so on this machine, and elsewhere if it does
not speak https. A login goes to the registry, and to the token server that the registry names, over https only, or over
plain http to this machine.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from prowess.errors import FetchError
from prowess.fetch.cache import sha256_hex
from prowess.fetch.client import UNREACHABLE_CODES, Fetcher
from prowess.fetch.oci.docker_config import DOCKER_HUB_KEY, docker_config_path, find_login
from prowess.fetch.oci.manifest import MANIFEST_TYPES
from prowess.fetch.url_policy import Origin, UrlPolicy, is_loopback, may_be_private, parse_origin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from prowess.fetch.client import HttpResponse
    from prowess.fetch.oci.docker_config import Login
    from prowess.limits import Limits

_ADDRESS = re.compile(r"oci://(?P<host>[^/@?#\s]+)/(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DOCKER_HUB = frozenset(("docker.io", "index.docker.io", "registry-1.docker.io"))
_CHALLENGE = re.compile(r"(?:^|,)\s*(basic|bearer)(?:\s+|$)", re.IGNORECASE)
_PARAMETER = re.compile(r'(?<![a-z])([a-z]{1,32})\s{0,8}=\s{0,8}"([^"\\]*)"', re.IGNORECASE)
_REFUSED = frozenset((HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN))
_FOUND = frozenset((HTTPStatus.OK, HTTPStatus.NOT_FOUND))
_ANY = frozenset(HTTPStatus)
_MAX_TOKEN_CHARS = 1 << 16
_PROBE_SECONDS = 5.0


def check_tag(tag: str) -> None:
    """Raise ``FetchError`` for a tag or a version that no registry accepts."""
    if _TAG.fullmatch(tag) is None:
        raise FetchError(
            f"{tag[:128]!a} cannot be a tag: letters, digits and ._- , at most 128, not . or - in front", code="bad-tag"
        )


class Registry:
    """One repository of a registry, by its address ``oci://HOST/REPOSITORY``. Nothing is sent before it is needed."""

    def __init__(self, address: str, allowed: UrlPolicy, limits: Limits, *, push: bool = False) -> None:
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            raise FetchError(f"{address[:120]!a} is not oci://HOST/REPOSITORY", code="bad-address")
        host, self.repository = parts["host"].lower(), parts["repository"]
        self.is_docker_hub = host in _DOCKER_HUB
        if self.is_docker_hub:
            host = "registry-1.docker.io"
            self.repository = self.repository if "/" in self.repository else f"library/{self.repository}"
        self.address, self.limits = address, limits
        self._host, self._allowed, self._push = host, allowed, push
        self._origin = parse_origin(f"https://{host}")
        self._fetcher: Fetcher | None = None
        self._base = ""
        self._authorization: dict[str, str] = {}

    @property
    def may_use_cache(self) -> bool:
        """Whether the cache may answer for the registry: not for a machine that may not be asked."""
        return not is_loopback(self._origin.host) or may_be_private(self._origin, self._allowed)

    # -- manifests and blobs -------------------------------------------------------------------------------------------

    def get_manifest(self, reference: str) -> tuple[bytes, str] | None:
        """Return a manifest by its tag or ``sha256:`` digest, and its media type; ``None`` when there is none."""
        if not reference.startswith("sha256:"):
            check_tag(reference)
        response = self.send(
            "GET",
            f"manifests/{reference}",
            max_bytes=self.limits.max_manifest_bytes,
            limit_name="max_manifest_bytes",
            headers={"Accept": ", ".join(MANIFEST_TYPES)},
            statuses=_FOUND,
        )
        if response.status == HTTPStatus.NOT_FOUND:
            return None
        actual = f"sha256:{sha256_hex(response.body)}"
        announced = response.headers.get("docker-content-digest", actual)
        if actual != (reference if reference.startswith("sha256:") else announced):
            raise FetchError(f"{self.address} gives another manifest for {reference} than it announces", code=_MISMATCH)
        return response.body, response.headers.get("content-type", "")

    def get_blob(self, digest: str, size: int) -> bytes:
        """Return a blob by the hex of its SHA-256; raises ``FetchError`` for other bytes.

        The registry may send to any public host for it, since the digest decides. No login goes there.
        """
        try:
            response = self.send(
                "GET",
                f"blobs/sha256:{digest}",
                max_bytes=size,
                limit_name="max_install_bytes",
                statuses=_FOUND,
                any_host=True,
            )
        except FetchError as error:
            if error.code != "download-too-large":
                raise
            message = f"{self.address} gives more than the {size} bytes of sha256:{digest}"
            raise FetchError(message, code=_MISMATCH) from None
        if response.status == HTTPStatus.NOT_FOUND:
            raise FetchError(f"{self.address} lacks sha256:{digest}, which its manifest names", code="missing-layer")
        if len(response.body) != size or sha256_hex(response.body) != digest:
            raise FetchError(f"{self.address} gives other bytes than sha256:{digest} ({size} bytes)", code=_MISMATCH)
        return response.body

    # -- requests ------------------------------------------------------------------------------------------------------

    def url_of(self, path: str) -> str:
        """Return the URL of something in the repository."""
        self._connect()
        return f"{self._base}/v2/{self.repository}/{path}"

    def send(
        self,
        method: str,
        path: str,
        *,
        statuses: frozenset[int],
        max_bytes: int | None = None,
        limit_name: str = "max_manifest_bytes",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        any_host: bool = False,
    ) -> HttpResponse:
        """Send a request, with a login when the registry wants one; ``path`` is in the repository, or a whole URL.

        Raises ``FetchError`` for other ``statuses``; ``registry-login`` says that the registry refuses the user.
        """
        fetcher = self._connect()
        url = path if "://" in path else self.url_of(path)

        def send_once() -> HttpResponse:
            return fetcher.request(
                method,
                url,
                self.limits.max_manifest_bytes if max_bytes is None else max_bytes,
                limit_name=limit_name,
                headers=headers,
                origin_headers=self._authorization,
                body=body,
                statuses=statuses | _REFUSED,
                any_host=any_host,
            )

        response = send_once()
        if response.status == HTTPStatus.UNAUTHORIZED:
            self._log_in(response.headers.get("www-authenticate", ""))
            response = send_once() if self._authorization else response
        if response.status in _REFUSED:
            raise self._make_refusal(response.status)
        return response

    def _connect(self) -> Fetcher:
        if self._fetcher is None:
            self._base = f"{self._find_scheme()}://{self._host}"
            self._fetcher = Fetcher(self._base, self._allowed, self.limits)
        return self._fetcher

    def _find_scheme(self) -> str:
        if not self._allowed.http:
            return "https"
        if is_loopback(self._origin.host):
            return "http"
        url = f"https://{self._host}/v2/"
        # A server without TLS may wait for the end of what it takes for a request.
        limits = replace(self.limits, fetch_idle_seconds=min(self.limits.fetch_idle_seconds, _PROBE_SECONDS))
        try:
            Fetcher(url, self._allowed, limits).request("HEAD", url, 0, limit_name="", statuses=_ANY)
        except FetchError as error:
            return "http" if error.code in UNREACHABLE_CODES else "https"
        return "https"

    # -- the login -----------------------------------------------------------------------------------------------------

    def _log_in(self, challenge: str) -> None:
        """Find what the next request is sent with, as the registry demands in its challenge."""
        origin = parse_origin(self._base)
        login = find_login(DOCKER_HUB_KEY if self.is_docker_hub else self._host, self.limits)
        if login is not None and not _is_safe(origin):
            raise FetchError(f"the login for {self._host} is not sent over plain http", code=_LOGIN)
        self._authorization = {}
        _, *words = _CHALLENGE.split(challenge)  # the name of a way, its parameters, the name of the next
        ways = {way.lower(): parameters for way, parameters in zip(words[::2], words[1::2], strict=True)}
        if "bearer" in ways:
            parameters = {name.lower(): value for name, value in _PARAMETER.findall(ways["bearer"])}
            self._authorization = {"Authorization": f"Bearer {self._buy_token(parameters, login)}"}
        elif "basic" in ways and login is not None and login.user:
            self._authorization = {"Authorization": login.basic}

    def _buy_token(self, parameters: dict[str, str], login: Login | None) -> str:
        realm = parameters.get("realm", "")
        origin = parse_origin(realm)
        if not _is_safe(origin):
            raise FetchError(f"{self._host} names a token server over plain http: {origin.display}", code="plain-http")
        actions = "pull,push" if self._push else "pull"
        query = {"scope": parameters.get("scope") or f"repository:{self.repository}:{actions}"}
        query |= {"service": parameters["service"]} if parameters.get("service") else {}
        # Plain http is for this machine only, whatever is allowed for the registry.
        allowed = UrlPolicy(self._allowed.private, self._allowed.http and is_loopback(origin.host))
        headers = {"Authorization": login.basic} if login is not None and login.user else {}
        fetcher = Fetcher(realm.partition("?")[0], allowed, self.limits, headers)
        if login is not None and not login.user:
            form = {"grant_type": "refresh_token", "client_id": "prowess", "refresh_token": login.secret, **query}
            method, url, body = "POST", realm, urlencode(form).encode()
        else:
            method, url, body = "GET", f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}", b""
        response = fetcher.request(
            method,
            url,
            self.limits.max_login_bytes,
            limit_name="max_login_bytes",
            headers={"Content-Type": "application/x-www-form-urlencoded"} if body else {},
            body=body,
            statuses=_REFUSED | {HTTPStatus.OK, HTTPStatus.BAD_REQUEST},
        )
        if response.status != HTTPStatus.OK:
            whose = f"the login for {self._host}" if login else "a visitor without a login"
            raise FetchError(f"the token server {origin.display} refuses {whose}", code=_LOGIN)
        token = _parse_token(response.body)
        if not token:
            raise FetchError(f"the token server {origin.display} gives no token", code=_LOGIN)
        return token

    def _make_refusal(self, status: int) -> FetchError:
        what = "write to" if self._push else "read"
        if self._authorization.get("Authorization", "").startswith("Basic") or status == HTTPStatus.FORBIDDEN:
            why = f"{self._host} does not let this login {what} {self.repository} (status {status})"
        else:
            why = f"{self._host} wants a login to {what} {self.repository}, and {docker_config_path()} has none for it"
        return FetchError(why, code=_LOGIN)


_MISMATCH, _LOGIN = "digest-mismatch", "registry-login"


def _is_safe(origin: Origin) -> bool:
    """Return whether a secret may be sent there."""
    return origin.scheme == "https" or is_loopback(origin.host)


def _parse_token(body: bytes) -> str:
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    token = (answer.get("token") or answer.get("access_token")) if isinstance(answer, dict) else ""
    if not isinstance(token, str) or len(token) > _MAX_TOKEN_CHARS or not token.isascii() or not token.isprintable():
        return ""
    return token
