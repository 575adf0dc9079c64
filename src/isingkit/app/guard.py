"""Guard: who may ask what. Requests are answered where they are meant for this machine, come from
the page itself, and carry the token.

A page elsewhere can make a browser ask this machine: directly, which Origin and Sec-Fetch-Site
tell, or by a name of its own that leads here (DNS rebinding), which Host tells. A user of the same
machine can ask without a browser, but does not know the token: it stands in the fragment of the
address, which browsers keep for themselves.
"""

import hmac
import secrets
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
ENTRANCE = "/api/enter"  # where a link that works once becomes the token
RESULTS = "/results/"  # whose addresses are secrets themselves: frames carry no token
_READS = ("GET", "HEAD")
_NEVER_SENT = "default-src 'none'; base-uri 'none'; form-action 'none'; "
_PAGE_POLICY = (
    _NEVER_SENT + "script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
# A report brings its script along. It runs as a stranger to the page (an opaque origin), and can
# ask nothing of this machine or any other.
_RESULT_POLICY = (
    _NEVER_SENT + "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; frame-ancestors 'self'; sandbox allow-scripts allow-downloads"
)
_HEADERS = {
    "Cache-Control": "no-store",  # nothing stays in the browser
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Keys:
    """The token of a running app, and the code of a link that works once, which other users of the
    machine may see where the browser is started.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self.code: str | None = secrets.token_urlsafe(32)

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries the token."""
        return is_same(headers.get("authorization", ""), f"Bearer {self.token}")

    def exchange(self, code: str) -> str | None:
        """The token for the code, once."""
        if self.code is None or not is_same(code, self.code):
            return None
        self.code = None
        return self.token


def is_same(one: str, other: str) -> bool:
    """Compared in a time that tells nothing of where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class Guard:
    """Lets requests through to `app`, or refuses them; every answer says what a browser may do."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        self.app = app
        self.keys = keys
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_result = scope["path"].startswith(RESULTS)
                policy = _RESULT_POLICY if is_result else _PAGE_POLICY
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS | {"Content-Security-Policy": policy})
            await send(message)

        refused = self._refusal(scope)
        await (refused or self.app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self.hosts:
            return refusal(421, "This address is not that of isingkit app.")
        origin = headers.get("origin")
        is_reading = scope["method"] in _READS
        if origin != f"http://{host}" and not (origin is None and is_reading):
            return refusal(403, "This request comes from another page.")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return refusal(403, "This request comes from another page.")
        path = scope["path"]
        if path.startswith(API) and path != ENTRANCE and not self.keys.admits(headers):
            advice = "open the address that 'isingkit app' has printed in the terminal"
            return refusal(401, f"This page does not know the token: {advice}.")
        return None


def refusal(status: int, message: str) -> Response:
    """An answer that says why there is no other."""
    return JSONResponse({"message": message}, status)
