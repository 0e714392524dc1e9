"""The code of the README runs as it is printed."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), names)
    assert {path.name for path in tmp_path.iterdir()} == {"transformer.onnx", "warp.onnx"}


def test_there_is_something_to_run():
    assert len(BLOCKS) == 6


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README.read_text()))
def test_links_lead_somewhere(link):
    assert (README.parent / link).exists()
