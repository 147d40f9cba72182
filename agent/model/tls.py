"""The trust that a secure connection rests on. Building it takes time: plain endpoints get one that trusts nobody."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConfigError


def trust(endpoint: str, environ: Mapping[str, str]) -> ssl.SSLContext:
    """The context for `endpoint`: authorities from SSL_CERT_FILE, REQUESTS_CA_BUNDLE or SSL_CERT_DIR, else the usual.

    Raises `ConfigError` where such a file cannot be read.
    """
    if endpoint.startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"):
        if value := environ.get(name):
            return _from(Path(value), name)
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def _from(path: Path, name: str) -> ssl.SSLContext:
    try:
        if path.is_dir():
            return ssl.create_default_context(capath=str(path))
        return ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{name}={path}: no certificates can be read there ({error})") from error
