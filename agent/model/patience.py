"""How long a lane waits for a provider. Both lanes keep to it, whatever the library below them does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

from .assemble import StreamAssembler

Item = TypeVar("Item")

_END = 5.0
"""Seconds that a stream may stay open once the answer has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds to wait; None waits without end."""

    first: float | None = 600.0
    """Until the answer begins: models reason in silence for minutes."""
    next: float | None = 120.0
    """Between pieces, once it has begun."""


LOCAL_PATIENCE = Patience(first=None, next=600.0)
"""A model on this machine may take any time to read a long prompt, and servers hold a call back until it is whole."""


async def next_piece(
    pieces: AsyncIterator[Item], default: Item, patience: Patience, assembler: StreamAssembler
) -> Item:
    """The next of `pieces`, or `default` at their end. Raises `TimeoutError` when it takes too long."""
    limit = patience.next if assembler.begun else patience.first
    async with asyncio.timeout(_END if assembler.ended else limit):
        return await anext(pieces, default)
