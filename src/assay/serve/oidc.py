"""An OpenID provider: who it is by the settings, and the two requests that turn somebody who comes back from there into claims.
Everything that the provider says is checked before it counts."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx

from assay.core.errors import AssayError, UserError
from assay.core.settings import Settings, secret
from assay.workspace.stored import SignIn

log = logging.getLogger("assay.serve")

PATH = "/api/session/provider"  # where the provider sends people back to
SECONDS = 10.0  # for one reply of the provider
KEPT = 15.0  # seconds that its description and keys are kept: nobody is sent to one that is gone
PAUSE = 5.0  # seconds until a provider that could not be reached is tried again
LARGEST = 1_000_000  # bytes of a reply
DENIED, NOT_THROUGH = "access_denied", "You did not go through with it there."
SKEW = 60  # seconds by which its clock may differ
ALGORITHMS = (  # of signatures; none whose key a client knows too
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)


class Refused(AssayError):
    """Why somebody is not signed in, in a sentence for them."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider of the settings, and this server as it is known there."""

    issuer: str
    client_id: str
    address: str  # of this server
    name: str
    scopes: str
    secret: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""

    @property
    def redirect(self) -> str:
        return self.address + PATH


def name_of(settings: Settings) -> str:
    """What people call the provider; empty if there is none."""
    return settings.oidc_name.strip() or urlsplit(settings.oidc_issuer).hostname or settings.oidc_issuer


def provider_of(settings: Settings) -> Provider | None:
    """The provider, if one is set. Raises a one-line error if the settings do not go together."""
    if not settings.oidc_issuer:
        return None
    if find_spec("authlib") is None:
        raise UserError("Signing in with an OpenID provider needs a package: `pip install 'assay[oidc]'`.")
    for name in ("oidc_client_id", "oidc_address"):
        if not getattr(settings, name):
            raise UserError(f"An OpenID provider is set, but not `{name}`.")
    for name in ("oidc_issuer", "oidc_address"):
        if not is_safe(getattr(settings, name)):
            raise UserError(f"`{name}` must be an https address; http is for this machine alone.")
    if bool(settings.oidc_groups_claim) != bool(groups_of(settings)):
        raise UserError("`oidc_groups_claim` names a claim and `oidc_groups` what counts of it: set both, or neither.")
    return Provider(
        settings.oidc_issuer,
        settings.oidc_client_id,
        settings.oidc_address.rstrip("/"),
        name_of(settings),
        settings.oidc_scopes,
        secret(settings.oidc_client_secret),
        settings.proxy,
        settings.ca_bundle,
    )


def groups_of(settings: Settings) -> dict[str, str]:
    """Groups at the provider, and which they are here."""
    pairs = (each.rpartition("=") for each in settings.oidc_groups.split(",") if each.strip())
    return {(there or here).strip(): here.strip() for there, _, here in pairs}


def is_safe(address: str) -> bool:
    """Whether nobody between here and there can read along: https, or this machine."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    host, local = parts.hostname or "", parts.hostname == "localhost"
    with suppress(ValueError):  # a name
        local = local or ip_address(host).is_loopback
    return bool(host) and not parts.username and (parts.scheme == "https" or (parts.scheme == "http" and local))


def claimed(claims: Mapping[str, Any], settings: Settings) -> tuple[str, tuple[str, ...]]:
    """The name and the groups that the provider gives a person. An address that it has not verified is no name."""
    name = claims.get(settings.oidc_name_claim)
    if settings.oidc_name_claim == "email" and claims.get("email_verified") is not True:
        name = ""
    groups = claims.get(settings.oidc_groups_claim) if settings.oidc_groups_claim else ()
    groups = [groups] if isinstance(groups, str) else groups if isinstance(groups, list | tuple) else ()
    return name.strip() if isinstance(name, str) else "", tuple(each for each in groups if isinstance(each, str))


class OpenIdClient:
    """This server as a client of one provider. One per process, used on its event loop."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._about: Mapping[str, Any] = {}
        self._keys: Any = None
        self._read = self._failed = float("-inf")
        self._reading = asyncio.Lock()

    async def way_there(self, sign_in: SignIn) -> str:
        """The address at the provider where somebody signs in."""
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        asked = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": self.provider.redirect,
            "scope": self.provider.scopes,
            "state": sign_in.state,
            "nonce": sign_in.nonce,
            "code_challenge": create_s256_code_challenge(sign_in.verifier),
            "code_challenge_method": "S256",
        }
        return _with_query(await self._endpoint("authorization_endpoint"), asked)

    async def way_out(self) -> str:
        """The address at the provider where somebody signs out, and comes back from; empty if it has none."""
        if "end_session_endpoint" not in await self._description():
            return ""
        asked = {"client_id": self.provider.client_id, "post_logout_redirect_uri": self.provider.address + "/"}
        return _with_query(await self._endpoint("end_session_endpoint"), asked)

    async def who_came(self, answer: Mapping[str, str], sign_in: SignIn, wanted: Sequence[str]) -> dict[str, Any]:
        """The claims about somebody who has come back with this answer; those that are wanted, from wherever it tells them."""
        about, name = await self._description(), self.provider.name
        # Another provider's answer to a question of ours (RFC 9207).
        by = answer.get("iss", "" if about.get("authorization_response_iss_parameter_supported") else about["issuer"])
        if by != about["issuer"]:
            raise Refused(f"That answer does not come from {name}. Begin again.")
        if answer.get("error") == DENIED:
            raise Refused(NOT_THROUGH)
        if "error" in answer or not answer.get("code"):
            log.warning("%s refused a sign-in: %s", about["issuer"], ascii(answer.get("error", "no code"))[:100])
            raise Refused(f"{name} refused. The server's log says why; your password goes on working.")
        tokens = await self._tokens(answer["code"], sign_in)
        claims = await self._checked(str(tokens.get("id_token", "")), sign_in.nonce, tokens.get("access_token"))
        missing = any(each not in claims for each in wanted)
        if missing and "userinfo_endpoint" in about and tokens.get("access_token"):
            bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
            more = await self._json("GET", await self._endpoint("userinfo_endpoint"), headers=bearer)
            if more.get("sub") == claims["sub"]:  # another person's claims are not this one's
                claims = {**more, **claims}
        return claims

    async def _tokens(self, code: str, sign_in: SignIn) -> Mapping[str, Any]:
        provider = self.provider
        given = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": provider.redirect,
            "code_verifier": sign_in.verifier,
        }
        ways = (await self._description()).get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if provider.secret and "client_secret_basic" in ways:
            login = httpx.BasicAuth(quote_plus(provider.client_id), quote_plus(provider.secret))
            return await self._json("POST", await self._endpoint("token_endpoint"), data=given, auth=login)
        given |= {"client_id": provider.client_id}
        given |= {"client_secret": provider.secret} if provider.secret else {}
        return await self._json("POST", await self._endpoint("token_endpoint"), data=given)

    async def _checked(self, token: str, nonce: str, access_token: object) -> dict[str, Any]:
        """The claims of an id token: signed by this provider, for this server and this sign-in, and not outdated."""
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jws import JWSRegistry

        offered = (await self._description()).get("id_token_signing_alg_values_supported") or ["RS256"]
        rules = JWSRegistry(algorithms=[each for each in ALGORITHMS if each in offered], strict_check_header=False)
        options: Any = {
            "iss": {"essential": True, "value": self.provider.issuer},
            "aud": {"essential": True, "value": self.provider.client_id},
        }
        params = {"nonce": nonce, "client_id": self.provider.client_id, "access_token": access_token}
        decode = partial(jwt.decode, token, registry=rules)
        try:
            try:
                found = decode(key=await self._key_set())
            except (JoseError, ValueError):  # perhaps it signs with a new key
                found = decode(key=await self._key_set(anew=True))
            claims = CodeIDToken(found.claims, found.header, options, params)
            claims.validate(leeway=SKEW)
        except (JoseError, ValueError, TypeError, AttributeError) as error:
            log.warning("an id token of %s does not hold: %s", self.provider.issuer, ascii(str(error))[:200])
            raise Refused(
                f"What {self.provider.name} said of you could not be verified. The server's log says why."
            ) from error
        if not isinstance(claims["sub"], str):
            raise Refused(f"{self.provider.name} did not say who you are.")
        return dict(claims)

    async def _key_set(self, *, anew: bool = False) -> Any:
        from joserfc.jwk import KeySet

        await self._description()
        if self._keys is None or anew:
            self._keys = KeySet.import_key_set(await self._json("GET", await self._endpoint("jwks_uri")))  # pyright: ignore[reportArgumentType]
        return self._keys

    async def _endpoint(self, name: str) -> str:
        address = (await self._description()).get(name)
        if not isinstance(address, str) or not is_safe(address):
            raise self._unusable(f"its {name} is no https address")
        return address

    async def _description(self) -> Mapping[str, Any]:
        """What the provider says of itself, a moment ago at most; it is not asked again when it has just failed."""
        async with self._reading:
            if time.monotonic() - self._read < KEPT:
                return self._about
            if time.monotonic() - self._failed < PAUSE:
                raise self._unreachable()
            try:
                at = self.provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
                about = await self._json("GET", at)
                if about.get("issuer") != self.provider.issuer:
                    raise self._unusable(
                        f"it calls itself {ascii(about.get('issuer'))[:200]}; set `oidc_issuer` to that"
                    )
            except Refused:
                self._failed = time.monotonic()
                raise
            self._about, self._keys, self._read = about, None, time.monotonic()
            return about

    async def _json(self, method: str, address: str, **given: Any) -> Mapping[str, Any]:
        """One reply of the provider. It may not lead elsewhere."""
        status, held = 0, bytearray()
        trusted = ssl.create_default_context(cafile=self.provider.ca_bundle or None)
        try:
            async with (
                asyncio.timeout(SECONDS),
                httpx.AsyncClient(verify=trusted, proxy=self.provider.proxy or None) as client,
                client.stream(method, address, **given) as reply,
            ):
                status = reply.status_code
                async for piece in reply.aiter_bytes():
                    held += piece
                    if len(held) > LARGEST:
                        raise self._unusable("a reply is too long")
            found = json.loads(held)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as error:
            log.warning("%s cannot be reached: %s", address, type(error).__name__)
            raise self._unreachable() from error
        except ValueError as error:
            raise self._unusable(f"{address} answered {status}, and no JSON") from error
        if status >= 500:
            log.warning("%s answered %s", address, status)
            raise self._unreachable()
        if status != 200 or not isinstance(found, dict):
            said = found.get("error") if isinstance(found, dict) else ""
            raise self._unusable(f"{address} answered {status} {ascii(said)[:100]}")
        return found

    def _unreachable(self) -> Refused:
        return Refused(
            f"{self.provider.name} cannot be reached now. Sign in with your password, or try again in a moment."
        )

    def _unusable(self, why: str) -> Refused:
        log.warning("%s cannot be used: %s", self.provider.issuer, why)
        return Refused(
            f"{self.provider.name} cannot be used. Sign in with your password; the server's log says what to mend."
        )


def _with_query(address: str, values: Mapping[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(values)}"
