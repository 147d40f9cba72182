"""An invoice: lines, tax and total."""

from dataclasses import dataclass

from .money import share


@dataclass(frozen=True)
class Line:
    """One article on an invoice."""

    text: str
    cents: int
    quantity: int = 1

    @property
    def net(self) -> int:
        return self.cents * self.quantity


def tax(lines: list[Line], rate: str) -> int:
    """Tax of an invoice, each line on its own."""
    return sum(share(line.net, rate) for line in lines)


def total(lines: list[Line], rate: str) -> int:
    """What the customer pays, in cents."""
    return sum(line.net for line in lines) + tax(lines, rate)
