"""A learning platform for tests: messages, tokens and checks are those of the library
lti1p3platform, which nobody here wrote; the pages around them are served on this machine's
loopback.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import uvicorn
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from lti1p3platform.ltiplatform import LTI1P3PlatformConfAbstract
from lti1p3platform.message_launch import LTIAdvantageMessageLaunchAbstract
from lti1p3platform.oidc_login import OIDCLoginAbstract
from lti1p3platform.registration import Registration
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CLIENT, DEPLOYMENT = "client-7", "deployment-1"
MEMBERSHIP = "http://purl.imsglobal.org/vocab/lis/v2/membership#"


def _key_pair() -> tuple[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


class _Configuration(LTI1P3PlatformConfAbstract):  # type: ignore[misc]
    def init_platform_config(self, **kwargs: Any) -> None:
        self._registration = kwargs["registration"]

    def get_registration_by_params(self, **kwargs: Any) -> Registration:
        return self._registration


class _Login(OIDCLoginAbstract):  # type: ignore[misc]
    def set_lti_message_hint(self, **kwargs: Any) -> None:
        self._lti_message_hint = "hint-1"

    def get_redirect(self, url: str) -> str:
        return url


class _Launch(LTIAdvantageMessageLaunchAbstract):  # type: ignore[misc]
    def render_launch_form(
        self, launch_data: dict[str, Any], **kwargs: Any
    ) -> dict[str, Any]:
        return launch_data


class LtiPlatform:
    """The platform.

    Attributes:
        address: where its services are.
        scores: what came, by column, in order.
        members: its roster.
        columns: what the tool wanted in its gradebook.
    """

    def __init__(self, address: str, tool: str) -> None:
        self.address = address
        private, public = _key_pair()
        self.registration = (
            Registration()
            .set_iss(address)
            .set_client_id(CLIENT)
            .set_deployment_id(DEPLOYMENT)
            .set_launch_url(f"{tool}/assignments/tiny")
            .set_deeplink_launch_url(f"{tool}/lti/launch")
            .set_oidc_login_url(f"{tool}/lti/login")
            .set_platform_private_key(private)
            .set_platform_public_key(public)
        )
        self.configuration = _Configuration(registration=self.registration)
        self.scores: dict[str, list[dict[str, Any]]] = {}
        self.members: list[dict[str, Any]] = []
        self.columns: list[dict[str, Any]] = []

    @property
    def settings(self) -> str:
        """What course.toml must say of it."""
        return (
            f'[lti.ours]\nissuer = "{self.address}"\nclient_id = "{CLIENT}"\n'
            f'deployment_id = "{DEPLOYMENT}"\nauth_url = "{self.address}/auth"\n'
            f'token_url = "{self.address}/token"\nkeys_url = "{self.address}/keys"\n'
        )

    def login_address(self, user: str) -> str:
        """The address to which it sends a person's browser first."""
        login = _Login(None, self.configuration)
        login.set_lti_message_hint()
        address: str = login.initiate_login(user)
        return address

    def launch(
        self,
        preflight: dict[str, str],
        user: str,
        role: str = "Learner",
        column: str | None = "1",
        **person: str,
    ) -> dict[str, Any]:
        """The form that it posts for a person, in answer to the tool's request.

        Args:
            column: the link's column in the gradebook; None for a link without one.
        """
        request = SimpleNamespace(get_data=preflight, form_data={})
        launch = _Launch(request, self.configuration)
        launch.set_user_data(user, [f"{MEMBERSHIP}{role}"], **person)
        launch.set_resource_link_claim("link-1", title="Tiny things")
        lines = f"{self.address}/lines"
        launch.set_ags(lines, f"{lines}/{column}" if column else None)
        launch.set_nrps(f"{self.address}/members")
        data: dict[str, Any] = launch.lti_launch()
        return data

    def launch_choice(
        self,
        preflight: dict[str, str],
        user: str,
        role: str = "Instructor",
        **settings: Any,
    ) -> dict[str, Any]:
        """The form that it posts for a person who wants to choose a link."""
        request = SimpleNamespace(get_data=preflight, form_data={})
        launch = _Launch(request, self.configuration)
        launch.set_user_data(user, [f"{MEMBERSHIP}{role}"])
        launch.set_dl(f"{self.address}/chosen", **settings)
        launch.set_resource_link_claim("none", title="none")
        data: dict[str, Any] = launch.lti_launch()
        return data

    def read_choice(self, answer: str) -> list[dict[str, Any]]:
        """The items that the tool sends back, where the library takes its message."""
        items: list[dict[str, Any]] = self.configuration.validate_deeplinking_resp(
            {"JWT": answer}
        )
        return items

    # What it serves

    def app(self) -> Starlette:
        """Its services."""
        return Starlette(
            routes=[
                Route("/keys", self._keys),
                Route("/token", self._token, methods=["POST"]),
                Route("/lines", self._make_line, methods=["POST"]),
                Route("/lines/{line}/scores", self._score, methods=["POST"]),
                Route("/members", self._members),
            ]
        )

    async def _keys(self, _: Request) -> Response:
        return JSONResponse(self.configuration.get_jwks())

    async def _token(self, request: Request) -> Response:
        async with request.form() as form:
            fields = dict(form.items())
        return JSONResponse(self.configuration.get_access_token(fields))

    def _check(self, request: Request, scope: str) -> None:
        token = request.headers["authorization"].removeprefix("Bearer ")
        assert self.configuration.validate_token(token, [scope])

    async def _make_line(self, request: Request) -> Response:
        """A new column, whose address has a query, as Moodle's have."""
        self._check(request, "https://purl.imsglobal.org/spec/lti-ags/scope/lineitem")
        kind = "application/vnd.ims.lis.v2.lineitem+json"
        assert (request.headers["content-type"], request.headers["accept"]) == (
            kind,
            kind,
        )
        line = await request.json()
        self.columns.append(line)
        made = {
            **line,
            "id": f"{self.address}/lines/made-{len(self.columns)}?type_id=3",
        }
        return JSONResponse(made, 201, media_type=kind)

    async def _score(self, request: Request) -> Response:
        self._check(request, "https://purl.imsglobal.org/spec/lti-ags/scope/score")
        assert (
            request.headers["content-type"] == "application/vnd.ims.lis.v1.score+json"
        )
        self.scores.setdefault(request.path_params["line"], []).append(
            await request.json()
        )
        return JSONResponse({})

    async def _members(self, request: Request) -> Response:
        """Two a page, as large platforms do it."""
        scope = (
            "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
        )
        self._check(request, scope)
        start = int(request.query_params.get("from", 0))
        headers = {}
        if start + 2 < len(self.members):
            headers["link"] = f'<{self.address}/members?from={start + 2}>; rel="next"'
        page = {"id": str(request.url), "members": self.members[start : start + 2]}
        return JSONResponse(page, headers=headers)


@contextlib.contextmanager
def run_platform(tool: str) -> Iterator[LtiPlatform]:
    """A platform on a free port of the loopback, for a tool at this address."""
    config = uvicorn.Config(lambda: None, host="127.0.0.1", port=0, log_level="error")
    socket = config.bind_socket()
    platform = LtiPlatform(f"http://127.0.0.1:{socket.getsockname()[1]}", tool)
    config.app = platform.app()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield platform
    finally:
        server.should_exit = True
        thread.join()
        socket.close()
