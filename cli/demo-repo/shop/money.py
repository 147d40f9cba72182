"""Amounts are whole cents; rates are decimals."""

from decimal import ROUND_DOWN, Decimal


def share(cents: int, rate: str) -> int:
    """The part of an amount that a rate stands for, in cents."""
    return int((Decimal(cents) * Decimal(rate)).quantize(Decimal(1), rounding=ROUND_DOWN))
