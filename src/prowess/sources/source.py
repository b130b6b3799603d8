"""The public constructors of sources: a folder, text, an install, a site, an MCP server, a git or an OCI repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.arguments import check_texts
from prowess.discovery.walk import MAX_DEPTH, SKIP_PREFIXES
from prowess.files.paths import as_optional_absolute
from prowess.names import SKILL_FILE
from prowess.sources.directory import DirectorySource
from prowess.sources.inline import InlineSource

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from prowess.addresses.skill_ref import SkillRef
    from prowess.discovery.scan import OnIssue
    from prowess.limits import Limits
    from prowess.literals import FollowLinks, Mode, OnDuplicate, Severity
    from prowess.skills.explanation import SkillScope
    from prowess.sources.fetched import GitSource, OciSource
    from prowess.sources.installed import InstalledSource
    from prowess.sources.mcp.approvals import Approvals
    from prowess.sources.mcp.source import McpSource
    from prowess.sources.published.source import SiteSource
    from prowess.sources.site import UrlSource


class Source:
    """Constructors for sources. A class of your own works as well: it needs ``load()``, which returns a ``Catalog``."""

    @staticmethod
    def directory(
        path: str | os.PathLike[str],
        *,
        mount_as: str = "",
        preload: bool = False,
        scope: SkillScope | None = None,
        mode: Mode = "lenient",
        repair: bool = True,
        missing: Literal["ignore", "error"] = "ignore",
        max_depth: int | None = MAX_DEPTH,
        nested: bool = False,
        skip_prefixes: Sequence[str] = SKIP_PREFIXES,
        filename: str = SKILL_FILE,
        on_duplicate: OnDuplicate = "first",
        follow_links: FollowLinks = False,
        invalid: Literal["load", "skip"] = "load",
        check_dir: bool = True,
        on_issue: OnIssue | None = None,
        on_issue_from: Severity = "info",
        limits: Limits | None = None,
    ) -> DirectorySource:
        """The skills below a folder. ``mount_as`` is the virtual folder under which filters and listings know them.

        The other keywords are those of ``scan``.
        """
        options = {
            "mode": mode,
            "repair": repair,
            "missing": missing,
            "max_depth": max_depth,
            "nested": nested,
            "skip_prefixes": check_texts(skip_prefixes, "skip_prefixes"),
            "filename": filename,
            "on_duplicate": on_duplicate,
            "follow_links": follow_links,
            "invalid": invalid,
            "check_dir": check_dir,
            "on_issue": on_issue,
            "on_issue_from": on_issue_from,
            "limits": limits,
        }
        return DirectorySource(path, mount_as=mount_as, preload=preload, scope=scope, options=options)

    @staticmethod
    def mcp(
        label: str,
        *,
        command: Sequence[str] = (),
        url: str = "",
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        allow_http: bool = False,
        approvals: Approvals | None = None,
        missing: Literal["ignore", "error"] = "ignore",
        limits: Limits | None = None,
    ) -> McpSource:
        """Return the skills of an MCP server, named ``label:name``; each is read and checked when it is activated.

        ``command`` is a program to start, which sees a few environment variables and ``env``. Or ``url`` is the address
        of a server, and ``headers`` are sent to it alone. The tools that a skill names count only with an approval in
        ``approvals``. With ``missing="error"``, loading raises ``FetchError`` when the server cannot be reached. Needs
        the extra ``mcp``.
        """
        from prowess.sources.mcp.source import McpSource

        return McpSource(
            label,
            command=command,
            url=url,
            headers=headers,
            env=env,
            cwd=as_optional_absolute(cwd, "cwd"),
            allow_http=allow_http,
            approvals=approvals,
            missing=missing,
            limits=limits,
        )

    @staticmethod
    def inline(
        name: str,
        description: str,
        instructions: str,
        preload: bool = False,
        *,
        context: str | None = None,
        model: str | None = None,
        allowed_tools: Sequence[str] = (),
        tags: Sequence[str] = (),
        metadata: Mapping[str, str] | None = None,
        toolsets: Sequence[str] = (),
    ) -> InlineSource:
        """One skill that is text in a program, without a folder and files. A preloaded one needs no description.

        ``toolsets`` names toolsets of the host that a skill with ``context="fork"`` asks for
        (``PreparedFork.toolsets``).
        """
        return InlineSource(
            name,
            description,
            instructions,
            preload=preload,
            context=context,
            model=model,
            allowed_tools=check_texts(allowed_tools, "allowed_tools"),
            tags=check_texts(tags, "tags"),
            metadata=metadata,
            toolsets=check_texts(toolsets, "toolsets"),
        )

    @staticmethod
    def url(
        base: str,
        *,
        prefetch: bool = False,
        allow_private: bool = False,
        allow_http: bool = False,
        allow_redirects_to: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        missing: Literal["ignore", "error"] = "ignore",
        on_duplicate: OnDuplicate = "first",
        allow_rollback: bool = False,
        limits: Limits | None = None,
    ) -> UrlSource:
        """Return the skills that a site publishes below ``/.well-known/``; each is fetched when it is activated.

        ``prefetch`` fetches them all when the source is loaded. ``allow_private``, ``allow_http`` and
        ``allow_redirects_to`` (hosts) allow addresses that are refused otherwise. ``headers`` are sent to that site
        only. ``cache_dir`` keeps copies there instead of in the user's cache folder. With ``missing="error"``, loading
        raises ``FetchError`` when the index cannot be fetched. ``allow_rollback`` accepts a site that goes back to
        older skills; otherwise the newest that were seen stay in use. A query in ``base`` is sent to that site only, is
        shown nowhere, and is not kept in the cache.
        """
        from prowess.fetch.url_policy import UrlPolicy
        from prowess.sources.site import UrlSource

        # Hosts are compared in lower case, as URLs are parsed.
        hosts = check_texts(allow_redirects_to, "allow_redirects_to")
        return UrlSource(
            base,
            prefetch=prefetch,
            allowed=UrlPolicy(allow_private, allow_http, frozenset(host.lower() for host in hosts)),
            headers=headers,
            cache_dir=as_optional_absolute(cache_dir, "cache_dir"),
            missing=missing,
            on_duplicate=on_duplicate,
            allow_rollback=allow_rollback,
            limits=limits,
        )

    @staticmethod
    def site(
        address: str,
        ref: str = "",
        *,
        allow_private: bool = False,
        allow_http: bool = False,
        headers: Mapping[str, str] | None = None,
        missing: Literal["ignore", "error"] = "ignore",
        allow_rollback: bool = False,
        limits: Limits | None = None,
    ) -> SiteSource:
        """Return the skills of a site that ``prowess publish`` wrote; each is fetched when it is activated.

        ``address`` is ``https://…``, ``s3://…``, ``gs://…`` or ``az://…``, or the path of a folder. ``ref`` is a
        version, a range of versions or an alias; ``""`` is the newest of each skill. The other keywords are those of
        ``Source.url``. An object store needs the extra ``store``.
        """
        from prowess.fetch.url_policy import UrlPolicy
        from prowess.sources.published.source import SiteSource

        allowed = UrlPolicy(allow_private, allow_http)
        return SiteSource(
            address,
            ref,
            allowed=allowed,
            headers=headers,
            missing=missing,
            allow_rollback=allow_rollback,
            limits=limits,
        )

    @staticmethod
    def git(
        address: str,
        ref: str = "",
        *,
        path: str = "",
        missing: Literal["ignore", "error"] = "ignore",
        limits: Limits | None = None,
    ) -> GitSource:
        """Return the skills of a git repository, fetched when the source is loaded, without an install.

        ``address`` is what ``prowess install`` takes, such as ``owner/name`` or ``https://…``. ``ref`` is a tag, a
        branch, a commit or a range of versions; ``""`` is the default branch. ``path`` is a folder in the repository.
        The files are in a temporary folder of this process. With ``missing="error"``, loading raises ``GitError`` when
        the repository cannot be fetched.
        """
        from prowess.sources.fetched import GitSource

        return GitSource(address, ref, path=path, missing=missing, limits=limits)

    @staticmethod
    def oci(
        address: str,
        ref: str = "",
        *,
        path: str = "",
        allow_private: bool = False,
        allow_http: bool = False,
        missing: Literal["ignore", "error"] = "ignore",
        limits: Limits | None = None,
    ) -> OciSource:
        """Return the skills of a repository in an OCI registry, fetched when the source is loaded, without an install.

        ``address`` is ``oci://HOST/REPOSITORY``, with ``:TAG`` or ``@sha256:…`` behind it or in ``ref``, which may also
        be a range of versions; ``""`` is the tag ``latest``. ``path`` is a folder in it. Logins are those of Docker.
        ``allow_private`` and ``allow_http`` allow addresses that are refused otherwise. The files are in a temporary
        folder of this process. With ``missing="error"``, loading raises ``FetchError`` when they cannot be fetched.
        """
        from prowess.fetch.url_policy import UrlPolicy
        from prowess.sources.fetched import OciSource

        allowed = UrlPolicy(allow_private, allow_http)
        return OciSource(address, ref, allowed=allowed, path=path, missing=missing, limits=limits)

    @staticmethod
    def installed(
        ref: str | SkillRef,
        *,
        mount_as: str = "",
        preload: bool = False,
        verify: Literal["lock"] | None = None,
        user_dir: str | os.PathLike[str] | None = None,
        project_dir: str | os.PathLike[str] | None = None,
    ) -> InstalledSource:
        """Return the skills of an install, ``@org/name[@version]``; one in the project counts before one of the user.

        Another version than the one named makes only a warning. With ``verify="lock"``, a skill counts only while its
        files are what the lock file says.
        """
        from prowess.sources.installed import InstalledSource

        bases = (as_optional_absolute(user_dir, "user_dir"), as_optional_absolute(project_dir, "project_dir"))
        return InstalledSource(ref, mount_as=mount_as, preload=preload, verify=verify, bases=bases)
