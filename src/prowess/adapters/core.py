"""What every adapter shares: the arguments of ``Skills``, the catalogue, and the conversations of one agent."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from inspect import isawaitable
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from weakref import WeakValueDictionary

from prowess.adapters.conversation import (
    ChildTask,
    Conversation,
    Turn,
    aturn,
    find_command,
    get_media,
    parse_save,
    turn,
)
from prowess.arguments import check_callable, check_flag, check_text, check_texts, raise_bad_argument
from prowess.conversation.acting.trust import Trust
from prowess.conversation.moment import Scope, ScopeContext
from prowess.conversation.session import Session
from prowess.conversation.work_pools import get_pools
from prowess.discovery.live import Live
from prowess.discovery.scan import discover, scan
from prowess.errors import MissingPackageError, SourceError
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.skills.catalog import Catalog
from prowess.thread_work import run_awaitable, run_in_thread
from prowess.tools.toolset import Toolset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from prowess.adapters.conversation import Arguments
    from prowess.conversation.acting.scripts import Scripts
    from prowess.conversation.acting.trust import TrustPolicy
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.events import OnEvent
    from prowess.select.selectors import Selector
    from prowess.skills.skill import Skill
    from prowess.skills.source_list import SkillSource
    from prowess.tools.definitions import ToolDefinition

    FindScope = Callable[[ScopeContext], Scope | Awaitable[Scope]]
    SkillsFrom = str | os.PathLike[str] | Catalog | Live | SkillSource | Iterable[SkillSource | str | os.PathLike[str]]

__all__ = [
    "ChildTask",
    "Conversation",
    "Conversations",
    "NativeTools",
    "SkillsAdapter",
    "Turn",
    "aturn",
    "find_command",
    "get_media",
    "load_skills",
    "refuse_second_skills",
    "require_package",
    "turn",
]

T = TypeVar("T")

_ONE_SKILLS = (
    "an agent has one Skills, since the tools of two have the same names: give one of them all sources, as in "
    "Skills([first, second]); a scope decides what each user has of them"
)


def require_package(module: str, requirement: str) -> None:
    """Raise ``MissingPackageError`` with the command that installs a framework, when its module cannot be found."""
    if find_spec(module) is None:
        package = requirement.partition(">")[0]
        raise MissingPackageError(f"{package} is not installed: pip install '{requirement}'")


def load_skills(source: SkillsFrom | None) -> Catalog | Live:
    """Return the catalogue of a path, of sources, or of the standard places; a catalogue is returned as it is.

    Raises ``SourceError`` for anything else, also for a catalogue within a list, and for a path that does not exist.
    """
    if source is None:
        return discover()
    if isinstance(source, (Catalog, Live)):
        return source
    if isinstance(source, (str, os.PathLike)):
        return scan(source, missing="error")
    if callable(getattr(source, "load", None)):
        return Catalog.from_sources([source])  # type: ignore[list-item]
    if isinstance(source, Iterable):
        return Catalog.from_sources([_as_source(each) for each in source])
    return raise_bad_argument("source", "must be a path, a Catalog, a Live, a source or a list of sources", source)


def _warn_of_no_skills(skills: Catalog | Live) -> None:
    """Log that an agent begins without a skill: nothing else would show it."""
    catalog = skills.catalog if isinstance(skills, Live) else skills
    if not catalog:
        problems = "; ".join(f"{issue.path}: {issue.message}" for issue in catalog.issues[:3])
        logging.getLogger("prowess").warning("the agent has no skills: %r%s", catalog, problems and f" ({problems})")


def _as_source(source: SkillSource | str | os.PathLike[str]) -> SkillSource:
    from prowess.sources.source import Source

    if isinstance(source, (Catalog, Live)):  # it has a method load() as sources have, but for one skill
        raise_bad_argument("a source of the list", "must be a path or a source", source, "pass a catalogue alone")
    return Source.directory(source) if isinstance(source, (str, os.PathLike)) else source


def refuse_second_skills(parts: Iterable[object]) -> None:
    """Raise ``SourceError`` where two of the parts of an agent are ``Skills``: their tools would replace each other."""
    if sum(isinstance(part, SkillsAdapter) for part in parts) > 1:
        raise SourceError(_ONE_SKILLS, code="bad-argument")


class NativeTools(list[T], Generic[T]):
    """A list of a framework's tools that can be called: some frameworks read an attribute ``tools``, people call it."""

    def __call__(self) -> list[T]:
        """Return the tools as a plain list."""
        return list(self)


class _AskingTrust(Trust):
    """A trust that lets nothing run and asks about everything, so that a call says what it would run."""

    def judge(self, request: TrustRequest) -> Literal["granted", "refused", "ask", "defer"]:
        return "defer" if request.skill.is_local else "refused"

    def has(self, digest: str) -> bool:  # no state of a skill is granted here
        return False


class Conversations:
    """The conversations of one agent by key, each with a session of its own.

    At most ``Limits.max_conversations`` are held. Beyond that the one unused for longest is kept as saved text, and
    made from it when it goes on; approvals are not part of a save, so its person is asked again.

    What each conversation has is its ``Scope``: what ``find_scope`` returns for it, and ``scope`` for what that leaves
    open. It is found again whenever a conversation is opened, so that a user who lost a right has lost it in the next
    request.
    """

    def __init__(
        self,
        catalog: Catalog | Live,
        session: dict[str, Any],
        toolset: dict[str, Any],
        *,
        scope: Scope,
        find_scope: FindScope | None,
        enforce: bool,
        limits: Limits,
        available_tools: tuple[str, ...] | Literal["any"] = (),
    ) -> None:
        self.catalog = catalog
        self.has_scopes = find_scope is not None
        self._session = session
        self._toolset = toolset
        self._scope = scope
        self._find_scope = find_scope
        self._trusts: dict[str, Trust] = {}
        self._enforce = enforce
        self._available_tools = available_tools
        if available_tools and not isinstance(available_tools, str):
            self._session["available_tools"] = available_tools
        self.limits = limits
        self._held: OrderedDict[str, Conversation] = OrderedDict()
        self._alive: WeakValueDictionary[str, Conversation] = WeakValueDictionary()
        self._saved: OrderedDict[str, str] = OrderedDict()
        self._lock = Lock()
        # Mistakes in the arguments are reported here, and not when the first user comes.
        start = Session(catalog, **session, trust=self._make_trust(scope.trust))
        start.catalog.check_names(start.set_scope(replace(scope, trust=None)), "allowed")
        self._make_toolset(start, scope)

    def __len__(self) -> int:
        """Return how many conversations are held with their sessions."""
        return len(self._held)

    # -- scopes ------------------------------------------------------------------------------------------------------

    def find_scope(self, key: str, context: object = None) -> Scope:
        """Return what a conversation has; raises ``SourceError`` where the host's function returns anything else."""
        if self._find_scope is None:
            return self._scope
        made: object = self._find_scope(ScopeContext(key, context))
        found = run_awaitable(made) if isawaitable(made) else made
        if not isinstance(found, Scope):
            raise_bad_argument("what scope returns", "must be a prowess.Scope", found, "return prowess.Scope(…)")
        usual, allowed = self._scope, found.allowed
        if allowed is not None and usual.allowed is not None:
            allowed = tuple(name for name in allowed if name in usual.allowed)
        return Scope(
            usual.allowed if allowed is None else allowed,
            found.filter,
            usual.trust if found.trust is None else found.trust,
            usual.scripts if found.scripts is None else found.scripts,
            (*usual.off, *found.off),
        )

    def _make_trust(self, trust: Trust | TrustPolicy | None) -> Trust | None:
        """Return the trust of a scope: a policy by name is about the grants of the host's own trust."""
        if not isinstance(trust, str):
            return trust
        if trust not in self._trusts:  # one object for all, since prompts are made anew for another one
            usual = self._scope.trust
            self._trusts[trust] = Trust(usual.path if isinstance(usual, Trust) else None, policy=trust)
        return self._trusts[trust]

    def _apply_scope(self, conversation: Conversation, scope: Scope) -> Conversation:
        """Return a conversation with what its scope lets it have now."""
        if conversation.scope != scope:
            missing = conversation.session.set_scope(replace(scope, trust=self._make_trust(scope.trust)))
            for name in missing:
                conversation.session.events.emit("missing", name, argument="allowed")
            conversation.toolset = self._make_toolset(conversation.session, scope)
            conversation.scope = scope
        return conversation

    def renew(self, conversation: Conversation, context: object = None) -> None:
        """Give a conversation that is in use what its scope lets it have now."""
        if self.has_scopes:
            self._apply_scope(conversation, self.find_scope(conversation.key, context))

    @property
    def may_defer(self) -> bool:
        """Whether some conversation may ask a person after a call."""
        trust = self._scope.trust
        return self.has_scopes or (isinstance(trust, Trust) and trust.policy == "defer")

    def _make_toolset(self, session: Session, scope: Scope) -> Toolset:
        return Toolset(session, **self._toolset, scripts=scope.scripts)

    # -- conversations -----------------------------------------------------------------------------------------------

    def open(
        self, key: str | None, saved: str = "", step: str = "", *, is_new: bool = False, context: object = None
    ) -> Conversation:
        """Return the conversation of that key, which begins when it is not known; ``None``: one that is not kept here.

        ``saved``: what the framework's checkpoint holds of it. It wins when it is another state than the last save, as
        after a restart or when the framework went back to an earlier checkpoint. ``step``: the framework's id of the
        step that is under way, where several calls of one step begin with the same checkpoint; what the conversation
        did in this step is not undone. ``is_new``: the framework's own record has nothing of this conversation, as when
        it was deleted and its key is used again; unless it began in this step, it begins anew. ``context``: what the
        framework passes to its tools, for the scope. Raises ``SourceError`` for an empty key, and for text that is no
        save.
        """
        if key is None:
            return self.restore("", saved, context) if saved else self.begin(context=context)
        check_text(key, "key")
        if not key:  # the key of an unknown user, perhaps: all of them would share one session
            raise SourceError("the key of a conversation is empty: pass a key, or None for a conversation of its own")
        scope = self.find_scope(key, context)
        with self._lock:
            held = self._find(key, saved, step)
            if is_new and (held is None or not step or held.step != step):
                self._drop(key)
                held = None
            if held is not None:
                return self._apply_scope(self._keep(held, step), scope)
            text = saved or self._saved.get(key, "")
        # Outside of the lock: a session may read files, and run commands of preloaded skills.
        made = self._restore(key, text, scope) if text else self._begin(key, scope)
        with self._lock:
            # Another thread may have been faster: there is one session for a key and a state.
            return self._apply_scope(self._keep(self._find(key, saved, step) or made, step), scope)

    def _find(self, key: str, saved: str, step: str) -> Conversation | None:
        """Return the conversation of a key, if it is in the state that ``saved`` and ``step`` name."""
        # One that a run still uses is taken again, also after it was saved out: a copy would lose what the run does.
        conversation = self._alive.get(key)
        if conversation is None or not saved or saved == conversation.last_save or (step and step == conversation.step):
            return conversation
        return None

    def _keep(self, conversation: Conversation, step: str) -> Conversation:
        """Hold a conversation as the one that was used last."""
        conversation.step = step or conversation.step  # a host that looks at the session is not a step
        self._alive[conversation.key] = self._held[conversation.key] = conversation
        self._held.move_to_end(conversation.key)
        self._saved.pop(conversation.key, None)
        self._save_oldest()
        return conversation

    async def aopen(
        self, key: str | None, saved: str = "", step: str = "", *, is_new: bool = False, context: object = None
    ) -> Conversation:
        """Return what ``open`` returns, from asynchronous code: it is found and made in a thread.

        A scope that is found by a coroutine is awaited on the caller's loop. Raises ``SkillError`` (code ``busy``) when
        more calls wait than ``Limits`` allows.
        """
        open_it = partial(self.open, key, saved, step, is_new=is_new, context=context)
        return await run_in_thread(open_it, get_pools(self.limits).reads)

    def begin(self, key: str = "", context: object = None) -> Conversation:
        """Return a new conversation that is not kept here."""
        return self._begin(key, self.find_scope(key, context))

    def _begin(self, key: str, scope: Scope) -> Conversation:
        session = Session(self.catalog, **self._session, trust=self._make_trust(scope.trust), id=key or None)
        made = Conversation(key, self._make_toolset(session, scope), self._enforce)
        made.available_tools = self._available_tools
        return self._apply_scope(made, scope)

    def restore(self, key: str, saved: str, context: object = None) -> Conversation:
        """Return a conversation as it was saved, within the bounds of this agent; it is not kept here."""
        return self._restore(key, saved, self.find_scope(key, context))

    def _restore(self, key: str, saved: str, scope: Scope) -> Conversation:
        text, asked = parse_save(saved)
        # This agent's bounds are its own arguments, which the save must not widen: restore takes the narrower of both.
        trust = self._make_trust(scope.trust)
        session, _ = Session.restore(self.catalog, text, **self._session, trust=trust, id=key or None)
        made = Conversation(key, self._make_toolset(session, scope), self._enforce, asked, saved)
        made.available_tools = self._available_tools
        former = self._alive.get(key) if key else None
        if former is not None:  # it goes back to an earlier state: what it did since then was done all the same
            made.used = former.used
        return self._apply_scope(made, scope)

    def list_definitions(self) -> tuple[ToolDefinition, ...]:
        """Return each skill tool that any conversation can be offered, now or later, for a framework's fixed lists.

        Where each user has skills of their own, no parameter names any skill, and the tool for scripts is among them.
        """
        scope = replace(self._scope, trust=None)
        session = Session(self.catalog, **{**self._session, "on_event": None})
        session.set_scope(scope)
        if not self.has_scopes:
            return self._make_toolset(session, scope).possible_tools()
        return tuple(map(drop_names, self._make_toolset(session, replace(scope, scripts=True)).possible_tools()))

    def find_request(
        self, name: str, arguments: Arguments = None, key: str = "", context: object = None
    ) -> TrustRequest | None:
        """Return what a person is asked before a call of a skill tool runs anything; ``None`` when nothing would run.

        Nothing runs, not even what is granted, and no conversation changes. It is for frameworks whose own question
        shows only the tool and its arguments.
        """
        scope = self.find_scope(key, context)
        trust = self._make_trust(scope.trust)
        if trust is None:
            return None
        silent = {"trust": _AskingTrust(trust.path, policy="defer"), "on_event": None}
        session = Session(self.catalog, **{**self._session, **silent})
        session.set_scope(replace(scope, trust=None))
        return self._make_toolset(session, scope).call(name, arguments).pending

    def forget(self, key: str) -> None:
        """Drop a conversation; the next use of its key begins a new one."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: str) -> None:
        for kept in (self._held, self._alive, self._saved):
            kept.pop(key, None)

    def _save_oldest(self) -> None:
        while len(self._held) > self.limits.max_conversations:
            key, oldest = self._held.popitem(last=False)
            self._saved[key] = oldest.save()
        while len(self._saved) > self.limits.max_saved_conversations:
            self._saved.popitem(last=False)


def drop_names(tool: ToolDefinition) -> ToolDefinition:
    """Return a tool whose parameters do not name the skills, where a framework has one list for all users or times."""
    properties = {
        key: {keyword: value for keyword, value in schema.items() if keyword != "enum"}
        for key, schema in tool.parameters["properties"].items()
    }
    return replace(tool, parameters={**tool.parameters, "properties": properties})


class SkillsAdapter:
    """Skills for the agents of one framework; each adapter's ``Skills`` is one, and native to its framework besides.

    ``source``: a path, a ``Catalog``, a ``Live``, sources, or nothing, which discovers the skills of this project and
    user. ``trust``: a ``Trust``, or the name of a policy; when ``scripts`` are on and nothing is given, a person is
    asked in the framework's own way (``defer``). ``scripts``: how scripts run (``True``: in the best sandbox there is);
    ``None``: they do not. ``tools``: the host's tools that skills may approve (``None``: none). ``allowed``: the only
    skills that the model may have. ``filter``, ``selector``, ``limits``, ``on_event``: as for ``Session``. ``budget``:
    tokens for the prompt. ``enforce``: the host's own tools are refused where the active skills' ``allowed-tools`` do
    not name them; it approves nothing.
    ``fork``: whether skills with ``context: fork`` run as child agents. ``scope``: a function, plain or asynchronous,
    that gets a ``ScopeContext`` (the key of a conversation, and what the framework passes to its tools) and returns the
    ``Scope`` of that conversation. What it leaves open is as the arguments here say, and no scope has a skill that
    ``allowed`` and ``filter`` here leave out. ``hide_paths``: no absolute path of this machine reaches the model; the
    default is ``True`` in MCP servers alone, since a model that has a shell needs the paths. ``available_tools``: tools
    that the agent has besides those that the adapter sees, for skills that need some (``requires``); ``"any"``: no
    skill is left out because a tool is missing.
    """

    can_run_children = True
    """False for an adapter whose framework gives it no way to run a child agent; ``fork`` then has no effect."""
    can_enforce = True
    """False for an adapter that does not see the calls of the host's own tools; ``enforce`` is then refused."""
    hides_paths = False
    """True for an adapter whose models may be on other machines: they learn no absolute path of this one by default."""

    def __init__(
        self,
        source: SkillsFrom | None = None,
        *,
        trust: Trust | TrustPolicy | None = None,
        scripts: Scripts | bool | None = None,
        tools: Iterable[str] | Literal["any"] | None = None,
        allowed: Iterable[str] | None = None,
        filter: str = "",
        budget: int | None = None,
        selector: Selector | Literal["auto"] | None = "auto",
        enforce: bool = False,
        fork: bool = True,
        scope: FindScope | None = None,
        hide_paths: bool | None = None,
        available_tools: Iterable[str] | Literal["any"] = (),
        on_event: OnEvent | None = None,
        limits: Limits | None = None,
    ) -> None:
        check_callable(scope, "scope")
        hidden = self.hides_paths if hide_paths is None else hide_paths
        check_flag(hidden, "hide_paths")
        check_flag(enforce, "enforce")
        check_flag(fork, "fork")
        if enforce and not self.can_enforce:
            raise SourceError(
                "enforce is not possible here: this adapter does not see the calls of the host's own tools"
            )
        if trust is None and scripts:
            trust = Trust(policy="defer")
        if tools is not None and not isinstance(tools, str):
            tools = tuple(tools)
        skills = load_skills(source)
        _warn_of_no_skills(skills)
        self.conversations = Conversations(
            skills,
            {"tools": tools, "selector": selector, "filter": filter, "limits": limits, "on_event": on_event},
            {
                "budget": budget,
                "hide_paths": hidden,
                "fork": "host" if fork and self.can_run_children else None,
            },
            scope=Scope(allowed, trust=Trust(policy=trust) if isinstance(trust, str) else trust, scripts=scripts),
            find_scope=scope,
            enforce=enforce,
            limits=limits or DEFAULT_LIMITS,
            available_tools="any" if available_tools == "any" else check_texts(available_tools, "available_tools"),
        )
        self._init_framework()

    def _init_framework(self) -> None:
        """Set up the class of the framework that an adapter inherits from; most need nothing."""

    @property
    def catalog(self) -> Catalog:
        """The skills as they are now."""
        catalog = self.conversations.catalog
        return catalog.catalog if isinstance(catalog, Live) else catalog

    def session(self, key: str, context: object = None) -> Session:
        """Return the session of the conversation with that key, which begins when it is not known.

        ``context``: what the framework passes to its tools, where the ``scope`` of this agent needs it.
        """
        return self.conversations.open(key, context=context).session

    def prompt(self, query: str = "", *, key: str = "", context: object = None) -> str:
        """Return the block for a system prompt, as a new conversation of ``key`` gets it for ``query``."""
        return self.conversations.begin(key, context).toolset.prompt(query)

    def list_definitions(self) -> tuple[ToolDefinition, ...]:
        """Return each skill tool that a conversation of this agent can be offered, now or later."""
        return self.conversations.list_definitions()

    def list_skills(self, *, key: str = "", context: object = None) -> tuple[Skill, ...]:
        """Return each skill that a model may have in a new conversation, by name, for a framework's own skill tools."""
        return tuple(self.conversations.begin(key, context).session.moment().eligible())
