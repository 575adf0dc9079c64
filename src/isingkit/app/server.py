"""The server of the app: routes, and its life from start to the last deleted file."""

import asyncio
import contextlib
import json
import signal
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from isingkit import __version__
from isingkit.app.choices import known_method
from isingkit.app.guard import ENTRANCE, Guard, Keys, refusal
from isingkit.app.workspace import RefusedError, Table, Workspace, archive_of
from isingkit.atomic import private_folder
from isingkit.formats import COMPRESSED, SUFFIXES
from isingkit.methods import FIT_METHODS
from isingkit.missing import EVERY_POLICY
from isingkit.result_table import Record

_PAGE = {
    "/": ("index.html", "text/html"),
    "/app.css": ("app.css", "text/css"),
    "/app.js": ("app.js", "text/javascript"),
}
_MOST_JSON = 1 << 23  # bytes of what a page sends of choices
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # those that there are here
_PATIENCE = 2  # seconds for answers that are under way when the app stops

Answer = Callable[[Request], Awaitable[Response]]


class App:
    """What pages can ask for."""

    def __init__(self, workspace: Workspace, keys: Keys, stop: Callable[[], None]) -> None:
        self.workspace = workspace
        self.keys = keys
        self.stop = stop

    def routes(self) -> list[Route]:
        """All addresses; nothing that is asked for by GET changes anything."""
        asked = {
            ("POST", ENTRANCE): self.enter,
            ("GET", "/api/about"): self.about,
            ("POST", "/api/stop"): self.end,
            ("POST", "/api/tables"): self.add_table,
            ("GET", "/api/tables/{table}"): self.table_state,
            ("DELETE", "/api/tables/{table}"): self.remove_table,
            ("POST", "/api/tables/{table}/plan"): self.plan,
            ("POST", "/api/tables/{table}/fit"): self.fit,
            ("POST", "/api/tables/{table}/cancel"): self.cancel,
            ("GET", "/results/{secret}/report.html"): self.report,
            ("GET", "/results/{secret}/everything.zip"): self.archive,
        }
        routes = [Route(path, self.page) for path in _PAGE]
        for (method, path), answer in asked.items():
            routes.append(Route(path, _or_sentence(answer), methods=[method]))
        return routes

    async def page(self, request: Request) -> Response:
        name, kind = _PAGE[request.url.path]
        content = files("isingkit.app").joinpath("page", name).read_bytes()
        return Response(content, media_type=kind)

    async def enter(self, request: Request) -> Response:
        code = (await _json(request)).get("code")
        token = self.keys.exchange(code) if isinstance(code, str) else None
        if token is None:
            advice = "take the address that 'isingkit app' has printed in the terminal"
            raise RefusedError(401, f"This link has been used already: {advice}.")
        return JSONResponse({"token": token})

    async def about(self, request: Request) -> Response:
        methods = await asyncio.to_thread(_methods)
        return JSONResponse(
            {
                "version": __version__,
                "largest": self.workspace.largest,
                "methods": methods,
                "missing": {policy.value: policy.offer for policy in EVERY_POLICY},
                "endings": [*SUFFIXES, COMPRESSED],
            }
        )

    async def end(self, request: Request) -> Response:
        self.stop()
        return JSONResponse({})

    async def add_table(self, request: Request) -> Response:
        name = unquote(request.headers.get("x-file-name", ""))
        length = request.headers.get("content-length", "")
        size = int(length) if length.isdecimal() else None
        table = await self.workspace.add(name, size, request.stream())
        return JSONResponse({"id": table.id}, 201)

    async def table_state(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self._table(request).state))

    async def remove_table(self, request: Request) -> Response:
        await self.workspace.remove(self._table(request))
        return JSONResponse({})

    async def plan(self, request: Request) -> Response:
        clicked = await _json(request)
        return JSONResponse(await asyncio.to_thread(self._table(request).plan, clicked))

    async def fit(self, request: Request) -> Response:
        await self.workspace.start_fit(self._table(request), await _json(request))
        return JSONResponse({}, 202)

    async def cancel(self, request: Request) -> Response:
        await self.workspace.cancel_fit(self._table(request))
        return JSONResponse({})

    async def report(self, request: Request) -> Response:
        _, folder = self.workspace.result(request.path_params["secret"])
        return FileResponse(folder / "report.html", media_type="text/html")

    async def archive(self, request: Request) -> Response:
        table, _ = self.workspace.result(request.path_params["secret"])
        path, name = archive_of(table)
        kept = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        headers = {"Content-Disposition": kept}
        return FileResponse(path, media_type="application/zip", headers=headers)

    def _table(self, request: Request) -> Table:
        return self.workspace.table(request.path_params["table"])


def _or_sentence(answer: Answer) -> Answer:
    """The same; what cannot be done is said in one sentence."""

    async def answer_or_sentence(request: Request) -> Response:
        try:
            return await answer(request)
        except RefusedError as error:
            return refusal(error.status, str(error))
        except ClientDisconnect:  # the page was closed
            return refusal(400, "The page was closed.")
        except OSError as error:
            return refusal(507, f"The file cannot be kept: {error.strerror}.")

    return answer_or_sentence


async def _json(request: Request) -> Record:
    """What a page has sent."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > _MOST_JSON:
            raise RefusedError(413, "The page has sent too much: reload it.")
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RefusedError(400, "The page has sent what is no JSON: reload it.")
    return found


def _methods() -> list[Record]:
    return [asdict(known_method(method.name)) for method in FIT_METHODS]


def serve(
    *,
    port: int,
    largest: int,
    open_browser: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve the page until Ctrl-C, a signal, or its own button stops it; then everything is
    deleted. `announce` is given the address.
    """
    with private_folder("isingkit-app") as folder, _listening(port) as listener:
        port = listener.getsockname()[1]
        keys = Keys()
        server = _server(folder, keys, port, largest)
        address = f"http://127.0.0.1:{port}/"
        announce(f"{address}#{keys.token}")
        with _stopped_by_signals(server):
            if open_browser:
                threading.Timer(0.3, webbrowser.open, [f"{address}#once={keys.code}"]).start()
            server.run(sockets=[listener])


def _server(folder: Path, keys: Keys, port: int, largest: int) -> uvicorn.Server:
    @contextlib.asynccontextmanager
    async def life(asgi: Starlette) -> AsyncIterator[None]:
        workspace = Workspace(folder, largest)
        asgi.router.routes += App(workspace, keys, stop).routes()
        yield
        await workspace.close()

    def stop() -> None:
        server.should_exit = True

    guarded = Guard(Starlette(lifespan=life), keys, port)
    config = uvicorn.Config(
        guarded,
        log_config=None,
        access_log=False,
        server_header=False,
        http="h11",
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=_PATIENCE,
    )
    server = uvicorn.Server(config)
    return server


def _listening(port: int) -> socket.socket:
    """A socket that only this machine can reach."""
    return socket.create_server(("127.0.0.1", port))


@contextlib.contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Any:
    """Within, signals that end a program let the server end, so that what is left is deleted."""

    def stop(number: int, frame: Any) -> None:
        server.should_exit = True

    there = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in there}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
