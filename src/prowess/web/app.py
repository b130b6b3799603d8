"""The console as an ASGI application: which address shows which page, which form makes which change, how it runs.

To add a page: a module in ``pages/`` with a function that returns its view, a template with that name, a route below.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from prowess.errors import BusyError, ResourceNotFoundError, SkillError, UnknownSkillError
from prowess.serving.access import make_access
from prowess.serving.bind import check_token, parse_bind, parse_host_names
from prowess.serving.listen import bind_socket, make_config, server_address
from prowess.web.change_feed import ChangeFeed, stream_events
from prowess.web.forms import Fields
from prowess.web.guard import FORM_TOKEN_FIELD, TOKEN_PARAMETER, ConsoleGuard
from prowess.web.links import ServedLinks
from prowess.web.pages.agents import make_agents_view
from prowess.web.pages.changes import make_changes_view, make_plan_view
from prowess.web.pages.library import make_library_view
from prowess.web.pages.sees import make_sees_view
from prowess.web.pages.skill import make_file_view, make_run_view, make_skill_view, read_image
from prowess.web.plans import PLAN_KINDS, PlanBook, UnknownPlanError
from prowess.web.rendering import STATIC_FOLDER, ErrorView, render_page

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request

    from prowess.serving.access import App
    from prowess.web.library import Library
    from prowess.web.plans import ResultFile

    MakeView = Callable[[Library, Mapping[str, str]], object]
    Handler = Callable[[Request], Awaitable[Response]]


ALL_ACTIONS = frozenset(("outdated", "install", "update", "sync", "verify", "link", "trust", "lock"))
"""The changes that pages may offer. A page gets those that its console allows, and shows a form for no other."""
BUTTON_FIELD = "change"
"""The field of a button whose value holds further fields, so that one form has buttons for many changes."""
_PATIENCE_SECONDS = 0.4
_LINKS = ServedLinks()


def create_app(
    library: Library,
    *,
    token: str,
    actions: frozenset[str] = ALL_ACTIONS,
    host: str = "127.0.0.1",
    hosts: Sequence[str] = (),
    feed: ChangeFeed | None = None,
    results: ResultFile | None = None,
) -> App:
    """Return the console of a library as an ASGI application behind its guard.

    ``actions`` are the changes that it allows; with none it only shows. ``token`` is what the first address has,
    ``host`` what the server is bound to, and ``hosts`` are further names that it goes by. ``feed`` has the
    changes of the library: to close it ends the streams that browsers listen to. ``results`` keeps the
    results of changes; without it they are forgotten with the application. Raises ``SourceError`` for a token that
    is too short.
    """
    check_token(host, token)
    plans = PlanBook(library, results)
    app = Starlette(
        routes=[*_make_routes(plans, feed or ChangeFeed(library)), *(_make_change_routes() if actions else ())],
        exception_handlers={
            HTTPException: _show_http_error,
            SkillError: _show_skill_error,
            UnknownPlanError: _show_unknown_plan,
        },
    )
    app.state.library = library
    app.state.plans = plans
    app.state.actions = actions
    app.state.has_shown_page = False
    access = make_access(host, parse_host_names(hosts), (), None)
    return ConsoleGuard(app, access, token, library.limits, may_change=bool(actions))


def _make_routes(plans: PlanBook, feed: ChangeFeed) -> list[Route | Mount]:
    """Return the addresses that only show something."""

    async def stream_changes(_request: Request) -> Response:
        return StreamingResponse(stream_events(feed, plans), media_type="text/event-stream")

    return [
        Route("/", show("library", make_library_view)),
        Route("/skills/{id}", show("skill", _find_view("skill"))),
        Route("/runs/{id}", show("run", _find_view("run"))),
        Route("/sees", show("sees", _find_view("sees"))),
        Route("/agents", show("agents", _find_view("agents"))),
        Route("/changes", show("changes", partial(_find_view("changes"), plans=plans, feed=feed))),
        Route("/changes/events", stream_changes),
        Route("/plans/{id}", show("plan", partial(_find_view("plan"), plans=plans))),
        Route("/skills/{id}/files", show("file", make_file_view)),
        Route("/skills/{id}/image", _show_image),
        Mount("/static", StaticFiles(directory=STATIC_FOLDER)),
    ]


def _make_change_routes() -> list[Route]:
    """Return the addresses that forms are sent to. The guard has checked who sends them."""
    return [
        Route("/outdated", _check_for_updates, methods=["POST"]),
        Route("/plans", _make_plan, methods=["POST"]),
        Route("/plans/{id}/{step}", _move_plan, methods=["POST"]),
    ]


# -- showing -----------------------------------------------------------------------------------------------------------


def show(name: str, make_view: MakeView) -> Handler:
    """Return the handler of a page: the template ``name`` with the view that ``make_view`` returns.

    ``make_view`` is called with the library, and with the parameters of the path and of the query as one mapping. It
    runs in a thread, because it reads files.
    """

    async def show_page(request: Request) -> Response:
        parameters = {**request.query_params, **request.path_params}
        return await run_in_threadpool(_render_view, request, name, make_view, parameters)

    return show_page


def _render_view(request: Request, name: str, make_view: MakeView, parameters: Mapping[str, str]) -> Response:
    state = request.app.state
    if state.has_shown_page:  # the first page does not wait until every folder is watched
        state.library.follow_changes()
    response = respond(request, name, make_view(state.library, parameters))
    state.has_shown_page = True
    return response


def respond(request: Request, name: str, view: object, status: int = 200) -> Response:
    """Return a page as the answer to a request, with the actions and the form token that its forms need."""
    html = render_page(
        name, view, _LINKS, actions=request.app.state.actions, form_token=request.scope["state"]["form_token"]
    )
    return HTMLResponse(html.encode("utf-8", "backslashreplace"), status)


def _find_view(page: str) -> Callable[..., object]:
    """Return the function that makes the view of a page; its module is loaded when somebody first asks for the page."""

    def make_view(library: Library, parameters: Mapping[str, str], **more: object) -> object:
        # What all pages need together takes several times as long to load as the first page alone.

        return _VIEWS[page](library, parameters, **more)

    return make_view


async def _show_image(request: Request) -> Response:
    """Return the bytes of an image. Opened as a page of its own, it may do nothing either."""
    parameters = {**request.query_params, **request.path_params}
    data, kind = await run_in_threadpool(read_image, request.app.state.library, parameters)
    return Response(data, media_type=kind, headers={"content-security-policy": "default-src 'none'; sandbox"})


async def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return respond(request, "error", ErrorView(error.status_code, str(error.detail)), error.status_code)


async def _show_skill_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, SkillError)
    is_missing = isinstance(error, UnknownSkillError | ResourceNotFoundError)
    status = 404 if is_missing else 503 if isinstance(error, BusyError) else 422
    return respond(request, "error", ErrorView(status, error.message, error.code), status)


async def _show_unknown_plan(request: Request, _error: Exception) -> Response:
    message = "There is no such plan: it expired, or the console ended before anybody confirmed it."
    return respond(request, "error", ErrorView(404, message), 404)


# -- changing ----------------------------------------------------------------------------------------------------------


def require_action(request: Request, action: str) -> None:
    """Raise an error with status 403 when the console does not allow an action."""
    if action not in request.app.state.actions:
        raise HTTPException(403, f"this console does not allow the action {action!r}")


async def _check_for_updates(request: Request) -> Response:
    """Ask the sources of all installs for something newer, and show which have it."""
    require_action(request, "outdated")
    fields = await _read_fields(request)
    await run_in_threadpool(request.app.state.library.check_for_updates)
    is_change = fields.get("from") == "changes"
    return RedirectResponse(_LINKS.page("changes") if is_change else _LINKS.page("library", {"show": "outdated"}), 303)


async def _make_plan(request: Request) -> Response:
    """Begin to prepare the change that a form asks for, and show its plan."""
    fields = await _read_fields(request)
    kind = PLAN_KINDS.get(fields.get("kind"))
    if kind is None:
        raise HTTPException(422, "the form does not say which change it asks for")
    require_action(request, kind.action)
    plan = request.app.state.plans.make_plan(fields.get("kind"), fields)
    return await _lead_to_plan(request, plan.id)


async def _move_plan(request: Request) -> Response:
    """Take the next step of a plan: the choice of a person, the confirmation, or the end of it."""
    plans: PlanBook = request.app.state.plans
    plan = plans.get(request.path_params["id"])
    require_action(request, PLAN_KINDS[plan.kind].action)
    step = request.path_params["step"]
    if step == "choose":
        plans.choose(plan.id, await _read_fields(request))
    elif step == "confirm":
        plans.confirm(plan.id)
    elif step == "discard":
        plans.discard(plan.id)
    else:
        raise HTTPException(404, "a plan has no such step")
    return await _lead_to_plan(request, plan.id)


async def _lead_to_plan(request: Request, plan_id: str) -> Response:
    """Send the browser to a plan, a moment later: most plans are ready by then, and no progress has to be shown."""
    await run_in_threadpool(request.app.state.plans.wait, plan_id, _PATIENCE_SECONDS)
    return RedirectResponse(_LINKS.plan(plan_id), 303)


async def _read_fields(request: Request) -> Fields:
    """Return the fields of a form. A button may carry several in its value, which count as fields of the form."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
    for packed in fields.pop(BUTTON_FIELD, ()):
        for name, values in parse_qs(packed).items():
            fields.setdefault(name, []).extend(values)
    fields.pop(FORM_TOKEN_FIELD, None)
    return Fields(fields)


_VIEWS: Mapping[str, Callable[..., object]] = {
    "agents": make_agents_view,
    "changes": make_changes_view,
    "plan": make_plan_view,
    "run": make_run_view,
    "sees": make_sees_view,
    "skill": make_skill_view,
}


DEFAULT_BIND = "127.0.0.1:0"
"""Loopback, on a port that is free."""


def run_console(
    library: Library,
    *,
    read_only: bool = False,
    bind: str = DEFAULT_BIND,
    token: str | None = None,
    hosts: Sequence[str] = (),
    results: ResultFile | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the console until the process gets a signal; ``ready`` is called with the first address, and its token.

    With ``read_only`` it refuses every change. ``results`` keeps the results of changes. On loopback
    a token is made where none is given. Raises ``SourceError`` for any other address without a ``token``, for a
    token that is too short, and where nothing can listen.
    """
    host, port = parse_bind(bind)
    check_token(host, token)
    chosen = token if token is not None else secrets.token_urlsafe(32)
    actions, feed = frozenset() if read_only else ALL_ACTIONS, ChangeFeed(library)
    app = create_app(library, token=chosen, actions=actions, host=host, hosts=hosts, feed=feed, results=results)
    with bind_socket(host, port) as listener, suppress(KeyboardInterrupt):
        address = f"{server_address(host, listener)}/?{TOKEN_PARAMETER}={chosen}"
        config = make_config(app, library.limits)
        _ConsoleServer(config, lambda: ready(address) if ready else None, feed).run([listener])


class _ConsoleServer(uvicorn.Server):
    """uvicorn's server, which reports when it is ready, and ends the streams of events when it ends."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], feed: ChangeFeed) -> None:
        super().__init__(config)
        self._ready = ready
        self._feed = feed

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report that the server is ready."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of events, for which uvicorn would wait, and then the server."""
        self._feed.close()
        await super().shutdown(sockets)
