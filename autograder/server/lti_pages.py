"""Getting in from a learning platform by LTI 1.3 (IMS LTI Core 1.3, Security Framework 1.0).

A platform sends the browser to `/lti/login`, which sends it back to the platform with a state and a
nonce; the platform then posts a signed launch to `/lti/launch`. The state is kept in the database
and in a cookie of its own: the session's cookie does not come along when another site posts.
"""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlencode, urlsplit

import jwt
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from autograder.basics.errors import KitError
from autograder.course import LtiRegistration
from autograder.platforms.lti import platform_identity
from autograder.server.lti_choice import choice_claims, content_item, read_wish
from autograder.server.lti_desk import LtiDesk
from autograder.server.office import Office
from autograder.server.pages_base import office_of, own_address, page, sign_in
from autograder.server.people import Role, Visitor
from autograder.server.protection import policy_for_forms_to

_CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
_GRADES = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
_ROSTER = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"
_TEACHERS = ("Instructor", "Administrator", "TeachingAssistant", "ContentDeveloper")
_LINK = "LtiResourceLinkRequest"
_CHOICE = "LtiDeepLinkingRequest"
_COOKIE = "attention_kit_lti"
_CLOCK_SKEW = 60  # seconds


async def _parameters(request: Request) -> dict[str, str]:
    """The parameters of an address, or of a form without files."""
    if request.method == "GET":
        return dict(request.query_params)
    async with request.form(max_files=0, max_fields=50) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


async def login(request: Request) -> Response:
    """The first step: send the browser to the platform that named itself, with state and nonce."""
    parameters = await _parameters(request)
    office = office_of(request)
    registration = _registration(
        office, parameters.get("iss", ""), parameters.get("client_id", "")
    )
    if not parameters.get("login_hint"):
        raise HTTPException(400, "the platform's request has no login_hint")
    desk = LtiDesk(office)
    state, nonce = await run_in_threadpool(desk.new_state, registration.issuer)
    answer = {
        "scope": "openid",
        "response_type": "id_token",
        "response_mode": "form_post",
        "prompt": "none",
        "client_id": registration.client_id,
        "redirect_uri": str(request.url_for("lti_launch")),
        "login_hint": parameters["login_hint"],
        "state": state,
        "nonce": nonce,
    }
    if hint := parameters.get("lti_message_hint"):
        answer["lti_message_hint"] = hint
    separator = "&" if urlsplit(registration.auth_url).query else "?"
    response = RedirectResponse(
        f"{registration.auth_url}{separator}{urlencode(answer)}", 302
    )
    is_https = request.url.scheme == "https"
    response.set_cookie(
        _COOKIE,
        state,
        max_age=600,
        httponly=True,
        secure=is_https,
        samesite="none" if is_https else "lax",
    )
    return response


async def launch(request: Request) -> Response:
    """The second step: check what the platform signed, and sign the person in, or let an
    instructor choose an assignment for the platform's course.
    """
    parameters = await _parameters(request)
    state = parameters.get("state", "")
    cookie = request.cookies.get(_COOKIE, "")
    if not state or not secrets.compare_digest(state, cookie):
        raise HTTPException(
            400, "this launch was not begun in this browser: start it again"
        )
    office = office_of(request)
    desk = LtiDesk(office)
    issuer, nonce = await run_in_threadpool(desk.use_state, state)
    token = parameters.get("id_token", "")
    claims = await run_in_threadpool(check_launch, office, desk, issuer, nonce, token)
    if claims[f"{_CLAIM}message_type"] == _CHOICE:
        return await run_in_threadpool(choice_page, request, claims)
    try:
        visitor, path = await run_in_threadpool(_enter, office, desk, claims)
    except KitError as error:
        raise HTTPException(403, str(error)) from error
    return sign_in(request, visitor, path)


def check_launch(
    office: Office, desk: LtiDesk, issuer: str, nonce: str, token: str
) -> dict[str, Any]:
    """The claims of a launch, as LTI Core 1.3, section 5.3, and the Security Framework, section
    5.1.3, want them checked.

    Raises:
        HTTPException: 400, with what is wrong.
    """
    try:
        unchecked = jwt.decode(token, options={"verify_signature": False})
        audience = unchecked.get("aud", "")
        clients = audience if isinstance(audience, list) else [audience]
        client = unchecked.get("azp") or (clients[0] if clients else "")
        registration = _registration(office, issuer, str(client))
        claims: dict[str, Any] = jwt.decode(
            token,
            desk.platform_key(registration, token),
            algorithms=["RS256"],
            audience=registration.client_id,
            issuer=registration.issuer,
            leeway=_CLOCK_SKEW,
            options={"require": ["exp", "iat", "iss", "aud", "sub", "nonce"]},
        )
    except jwt.PyJWTError as error:
        raise HTTPException(
            400, f"the platform's launch cannot be trusted: {error}"
        ) from error
    expected = {
        "nonce": nonce,
        f"{_CLAIM}version": "1.3.0",
        f"{_CLAIM}deployment_id": registration.deployment_id,
    }
    wrong = [name for name, value in expected.items() if claims.get(name) != value]
    kind = f"{_CLAIM}message_type"
    if claims.get(kind) not in (_LINK, _CHOICE):
        wrong.append(kind)
    if wrong:
        name = wrong[0].rpartition("/")[2]
        raise HTTPException(400, f"the platform's launch has another {name}")
    if claims[kind] == _LINK and not claims.get(f"{_CLAIM}resource_link", {}).get("id"):
        raise HTTPException(400, "the platform's launch has no resource link")
    return claims


def _registration(office: Office, issuer: str, client_id: str) -> LtiRegistration:
    for registration in office.course.lti.values():
        if registration.issuer == issuer and client_id in ("", registration.client_id):
            return registration
    raise HTTPException(
        400, f"this course knows no platform {issuer[:200]!r}: see docs/server.md"
    )


def _enter(
    office: Office, desk: LtiDesk, claims: dict[str, Any]
) -> tuple[Visitor, str]:
    """The person of a launch, and the page to which the launch leads."""
    role = role_of(claims.get(f"{_CLAIM}roles", []))
    identity = platform_identity(
        claims["iss"], claims["sub"], claims.get("email", ""), claims.get("name", "")
    )
    student = desk.link(identity)
    if office.role_of(student) == "instructor":
        role = "instructor"
    assignment = _assignment_of(office, claims)
    grades = claims.get(_GRADES, {})
    roster = claims.get(_ROSTER, {})
    desk.note_course(
        claims["iss"], assignment, grades, roster.get("context_memberships_url", "")
    )
    path = f"/assignments/{assignment}" if assignment else "/"
    return Visitor(student, role), path


def role_of(roles: object) -> Role:
    """The role here of a person with these roles in the platform's course. System and institution
    roles do not count.
    """
    names = [str(role) for role in roles] if isinstance(roles, list) else []
    here = [name for name in names if "/membership" in name or "#" not in name]
    is_teacher = any(name.rpartition("#")[2] in _TEACHERS for name in here)
    return "instructor" if is_teacher else "student"


def _assignment_of(office: Office, claims: dict[str, Any]) -> str:
    """The assignment that a link stands for: its custom parameter `assignment`, the last part of
    its address, or its title; "" for a link to the whole course.
    """
    target = claims.get(f"{_CLAIM}target_link_uri", "")
    names = (
        claims.get(f"{_CLAIM}custom", {}).get("assignment", ""),
        urlsplit(str(target)).path.rpartition("/")[2],
        claims.get(f"{_CLAIM}resource_link", {}).get("title", ""),
    )
    known = {assignment.name for assignment in office.assignments()}
    return next((str(name) for name in names if name in known), "")


def choice_page(request: Request, claims: dict[str, Any]) -> Response:
    """The page on which an instructor chooses an assignment for the platform's course (IMS LTI Deep
    Linking 2.0). Each button sends the platform an answer that is signed already, so nothing is
    kept here and nobody is signed in.

    Raises:
        HTTPException: 400 or 403, there is nothing to choose, or not for this person.
    """
    office = office_of(request)
    if role_of(claims.get(f"{_CLAIM}roles", [])) != "instructor":
        raise HTTPException(
            403, "only somebody who teaches in the platform's course chooses here"
        )
    wish = read_wish(claims)
    if not wish.takes_links:
        raise HTTPException(400, "the platform wants something else than a link here")
    address = own_address(request)
    due_times = office.course.due
    items = [
        content_item(assignment, due_times.get(assignment.name), address, wish)
        for assignment in office.assignments()
    ]
    choices = [(item["title"], [item]) for item in items]
    if wish.takes_several and len(items) > 1:
        choices.append((f"All {len(items)}", items))
    desk = LtiDesk(office)
    registration = _registration(office, claims["iss"], "")
    answers = [
        (label, desk.sign(choice_claims(registration, wish, chosen)))
        for label, chosen in choices
    ]
    answer = page(request, "choice.html", answers=answers, return_url=wish.return_url)
    answer.headers["content-security-policy"] = policy_for_forms_to(wish.return_url)
    return answer


def key_set(request: Request) -> Response:
    """The public keys of this server, with which a platform checks what it signs."""
    return JSONResponse(LtiDesk(office_of(request)).key_set())


ROUTES = [
    Route("/lti/login", login, methods=["GET", "POST"]),
    Route("/lti/launch", launch, methods=["POST"], name="lti_launch"),
    Route("/lti/keys", key_set),
]
