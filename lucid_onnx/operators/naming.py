"""Names that are taken, and new ones beside them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count


class Taken:
    """The names that there are already.

    Parameters
    ----------
    names : iterable of str
        Those at the beginning.

    Examples
    --------
    >>> taken = Taken(["x"])
    >>> taken.fresh("x"), taken.fresh("x"), taken.fresh("y")
    ('x_1', 'x_2', 'y')
    """

    def __init__(self, names: Iterable[str | None] = ()) -> None:
        self._names = set(names)
        # A name is never given back. So who asks for the thousandth of one name need not try those before.
        self._tried: dict[str, int] = {}

    def update(self, names: Iterable[str | None]) -> None:
        """Names that are taken, too."""
        self._names.update(names)

    def fresh(self, name: str) -> str:
        """`name`, with a number behind it where it is taken; from now on it is."""
        if name not in self._names:
            self._names.add(name)
            return name
        number = next(k for k in count(self._tried.get(name, 0) + 1) if f"{name}_{k}" not in self._names)
        self._tried[name] = number
        self._names.add(f"{name}_{number}")
        return f"{name}_{number}"
