"""What a call costs, from the price rows of the provider table. Where the rows come from is `agent.model.catalog`'s."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...context.cache import CacheTerms
from ...context.entries import Usage

Row = Mapping[str, Any]

_INPUT, _OUTPUT = "input_cost_per_token", "output_cost_per_token"
_READ, _WRITE = "cache_read_input_token_cost", "cache_creation_input_token_cost"
_ABOVE = re.compile(rf"{_INPUT}_above_(\d+)k_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars a token, for requests whose input is over `above` tokens."""

    above: int
    input: float
    """For input that no cache was involved in."""
    output: float
    cache_read: float
    cache_write: float


def prices_in(row: Row) -> tuple[Prices, ...]:
    """The prices of a row, by growing input; empty where it names none."""
    found = {prices.above: prices for prices in _steps(row)}
    return tuple(found[above] for above in sorted(found)) if 0 in found else ()


def cost(prices: tuple[Prices, ...], usage: Usage) -> float | None:
    """US dollars for a call, or None where the price is unknown."""
    fitting = [step for step in prices if step.above == 0 or usage.input > step.above]
    if not fitting:
        return None
    step = fitting[-1]
    plain = max(usage.input - usage.cache_read - usage.cache_write, 0)
    read, write = usage.cache_read * step.cache_read, usage.cache_write * step.cache_write
    return plain * step.input + read + write + usage.output * step.output


def cache_terms(prices: tuple[Prices, ...]) -> CacheTerms:
    """The terms of a provider's cache; the usual ones where its prices are unknown or name none for the cache."""
    if not prices or not prices[0].input or prices[0].cache_read >= prices[0].input:
        return CacheTerms()
    return CacheTerms(read=prices[0].cache_read / prices[0].input)


def _steps(row: Row) -> Iterator[Prices]:
    """The base price, and those of larger requests: in fields with a suffix, or in a list of ranges."""
    if base := _prices(row, "", 0):
        yield base
    for key in row:
        if (match := _ABOVE.fullmatch(key)) and (step := _prices(row, f"_above_{match[1]}k_tokens", 0)):
            yield Prices(
                above=int(match[1]) * 1_000,
                input=step.input,
                output=step.output,
                cache_read=step.cache_read,
                cache_write=step.cache_write,
            )
    ranges = row.get("tiered_pricing")
    for item in cast(list[Any], ranges) if isinstance(ranges, list) else ():
        match item:
            case {"range": [int() | float() as start, *_]}:
                if step := _prices(cast(Row, item), "", int(start)):
                    yield step
            case _:
                pass


def _prices(row: Row, suffix: str, above: int) -> Prices | None:
    given = _price(row, _INPUT + suffix)
    output = _price(row, _OUTPUT + suffix)
    if given is None:
        return None
    output = output if output is not None else _price(row, _OUTPUT)
    if output is None:
        return None
    read = _price(row, _READ + suffix)
    read = read if read is not None else _price(row, f"input_cost_per_token_cache_hit{suffix}")
    write = _price(row, _WRITE + suffix)
    return Prices(
        above=above,
        input=given,
        output=output,
        cache_read=given if read is None else read,  # no discount is known of
        cache_write=write or given,  # a zero beside a price for input means that it is not told
    )


def _price(row: Row, key: str) -> float | None:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return float(value)
