"""Characters that a document may hold: what a runtime said may have any."""

from __future__ import annotations

import re

_CONTROLS = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def without_controls(words: str) -> str:
    r"""Words with a mark in place of each character that neither XML nor HTML can hold.

    Examples
    --------
    >>> without_controls("nul \x00 and escape \x1b") == "nul \ufffd and escape \ufffd"
    True
    """
    return _CONTROLS.sub("\ufffd", words)
