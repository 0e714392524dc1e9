"""A picture of where the errors of a result lie."""

from __future__ import annotations

from lucid_onnx.conformance.judging import CHANNELS_LAST
from lucid_onnx.conformance.outcome import Worst

SCALE = 13
"""Width of a value in the picture, in CSS pixels."""

WIDEST = 260
"""Width of the picture at most."""

LETTERS = {
    ".": "within a tenth of the bound",
    "o": "within the bound",
    "x": "beyond the bound",
    "X": "beyond 100 times the bound, or not the value to be chosen",
    "!": "not finite where the right value is, or the other way round",
    "?": "undecided in float32, not judged",
}
"""What each letter of `Worst.errors` says of a value."""

CLASSES = {"o": "near", "x": "off", "X": "far", "!": "wild", "?": "open"}
"""Names of the classes of letters that are drawn; "." is the ground."""

SIZES = {"o": 0.3, "x": 0.56, "X": 0.86, "!": 0.86, "?": 0.56}
"""Width of a mark, so that colour is not all that tells them apart."""


def picture(worst: Worst) -> str:
    """An SVG of the plane around the worst value, one mark for each value that is not right.

    Examples
    --------
    >>> picture(Worst("Y", (0, 0, 1, 0), (0.5, 0.5), 2.0, 3.0, 0.0, (".o", "X.")))[:77]
    '<svg class=plane viewBox="0 0 2 2" width=26 height=26 role=img><title>2 x 2 v'
    >>> picture(Worst("Y", (0, 0, 1, 0), (0.5, 0.5), 2.0, 3.0, 0.0))
    ''
    """
    rows = worst.errors
    height, width = len(rows), max(map(len, rows), default=0)
    if not width:
        return ""
    places = {letter: _places(rows, letter) for letter in CLASSES}
    told = [f"{len(found)} {LETTERS[letter]}" for letter, found in places.items() if found]
    row, column = _place_in_plane(worst)
    title = f"{height} x {width} values: {'; '.join(told) or LETTERS['.']}; worst in row {row + 1}, column {column + 1}"
    marks = "".join(
        f'<path class={CLASSES[letter]} d="{"".join(_mark(letter, *place) for place in found)}"/>'
        for letter, found in places.items()
        if found
    )
    scale = min(SCALE, WIDEST / width)
    size = f"width={scale * width:.0f} height={scale * height:.0f}"
    return (
        f'<svg class=plane viewBox="0 0 {width} {height}" {size} role=img><title>{title}</title>'
        f"<rect width={width} height={height} fill=url(#dots) />{marks}"
        f'<path class=worst d="M{column} {row}h1v1h-1z"/></svg>'
    )


def legend() -> str:
    """An SVG of a single mark for each letter, with what it says, as items of a list."""
    return "".join(
        f'<li><svg class=plane viewBox="0 0 1 1" width={SCALE} height={SCALE} aria-hidden=true>'
        f"<rect width=1 height=1 fill=url(#dots) />{_sample(letter)}</svg>{words}"
        for letter, words in LETTERS.items()
    )


def _sample(letter: str) -> str:
    return f'<path class={CLASSES[letter]} d="{_mark(letter, 0, 0)}"/>' if letter in CLASSES else ""


def _places(rows: tuple[str, ...], letter: str) -> list[tuple[int, int]]:
    return [(y, x) for y, row in enumerate(rows) for x, found in enumerate(row) if found == letter]


def _mark(letter: str, row: int, column: int) -> str:
    """A square, or a cross for what is not finite."""
    size = SIZES[letter]
    start = (1 - size) / 2
    x, y = f"{column + start:g}", f"{row + start:g}"
    if letter == "!":
        return f"M{x} {y}l{size:g} {size:g}m0-{size:g}l-{size:g} {size:g}"
    return f"M{x} {y}h{size:g}v{size:g}h-{size:g}z"


def _place_in_plane(worst: Worst) -> tuple[int, int]:
    """Row and column of the worst value in the plane."""
    of_points = worst.index[:-1] if worst.output in CHANNELS_LAST else worst.index
    row, column = [0, 0, *of_points][-2:]
    return row, column
