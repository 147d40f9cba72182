"""Errors below HTTP, told by the names of their classes, whichever library raised them: not reached, or broken off."""

from __future__ import annotations

import re
import socket
import ssl
from urllib.parse import urlsplit

from ..errors import BrokenStreamError, ConnectionFailed, ModelError

_NOT_REACHED = frozenset(
    {
        "ConnectError",
        "ConnectTimeout",
        "PoolTimeout",
        "ClientConnectorError",
        "ClientConnectorDNSError",
        "ConnectionTimeoutError",
        "ServerTimeoutError",
        "NewConnectionError",
        "MaxRetryError",
        "EndpointConnectionError",
        "UnsupportedProtocol",
        "InvalidURL",
    }
)
_PROXY = frozenset({"ProxyError", "ClientHttpProxyError", "ClientProxyConnectionError", "ProxyConnectionError"})
_BROKEN = frozenset(
    {
        "ReadError",
        "WriteError",
        "ReadTimeout",
        "WriteTimeout",
        "RemoteProtocolError",
        "LocalProtocolError",
        "CloseError",
        "ClientPayloadError",
        "ServerDisconnectedError",
        "ClientOSError",
        "IncompleteRead",
        "ChunkedEncodingError",
        "TransferEncodingError",
        "SocketTimeoutError",
        "DecodingError",
        "APITimeoutError",
    }
)
_CUT = re.compile(r"ended before a finish_reason|incomplete chunked read|disconnected|connection (?:reset|lost)", re.I)


def transport_error(error: BaseException, text: str, endpoint: str, name: str) -> ModelError | None:
    """The error that `error` is if it comes from below HTTP, else None. `text`: what it and its wrappers say."""
    names = {cls.__name__ for cls in type(error).__mro__}
    where = _address(endpoint) or name
    if names & _PROXY:
        return ConnectionFailed(
            f"The proxy on the way to {where} failed: {_words(error)}. Check HTTPS_PROXY and NO_PROXY."
        )
    if isinstance(error, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return ConnectionFailed(f"No secure connection to {where}: {_words(error)}. {_tls_hint(str(error))}".strip())
    if isinstance(error, socket.gaierror) or _says(
        text, names, "name or service not known", "nodename nor servname", "getaddrinfo failed", "name resolution"
    ):
        return ConnectionFailed(
            f"The address of {where} cannot be found: {_words(error)}. Check the network and the address."
        )
    if isinstance(error, ConnectionRefusedError) or _says(
        text, names, "connection refused", "connect call failed", "all connection attempts failed"
    ):
        return ConnectionFailed(f"Nothing answers at {where} (connection refused). Is the server running?")
    if names & _NOT_REACHED:
        return ConnectionFailed(f"{where} was not reached: {_words(error)}")
    if "APIConnectionError" in names and _CUT.search(str(error)):  # litellm keeps the words alone
        return BrokenStreamError(f"The connection to {where} ended before the answer did")
    if names & _BROKEN or isinstance(error, (TimeoutError, ConnectionError)):
        slow = "Timeout" in type(error).__name__ or isinstance(error, TimeoutError)
        what = "sent nothing for too long" if slow else "ended before the answer did"
        told = "" if str(error) in {"", type(error).__name__} else f": {_words(error)}"
        return BrokenStreamError(f"The connection to {where} {what}{told}")
    return None


def _tls_hint(text: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "If it uses a certificate of its own, name the file of its authority in SSL_CERT_FILE."
    return "Does it speak plain http://?" if "WRONG_VERSION_NUMBER" in text or "record layer" in text else ""


def _says(text: str, names: set[str], *phrases: str) -> bool:
    return bool(names & _NOT_REACHED) and any(phrase in text.lower() for phrase in phrases)


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _address(endpoint: str) -> str:
    """Host and port of an address."""
    parts = urlsplit(endpoint)
    if not parts.hostname:
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.hostname}:{port}"
