"""Files are replaced whole or not at all, and only if they are files."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from lucid_onnx import ArgumentError
from lucid_onnx.files import make_folder, replacing


def write(path, text="new"):
    with replacing(path) as beside:
        beside.write_text(text)


def fail(path, error):
    with replacing(path) as beside:
        beside.write_text("half")
        raise error


def test_a_new_file_and_an_old_one(tmp_path):
    path = tmp_path / "file.txt"
    for text in ("first", "second"):
        write(path, text)
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_permissions_are_handed_on(tmp_path, mode):
    path = tmp_path / "file.txt"
    path.write_text("old")
    path.chmod(mode)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_what_is_no_ordinary_file_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ArgumentError, match="it is not an ordinary file"):
        write(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(ArgumentError, match="it is a folder"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="on the way"):
        fail(path, RuntimeError("on the way"))
    with pytest.raises(ArgumentError, match=r"cannot write .*file.txt.: No space left"):
        fail(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match=r"cannot write .*no/file.txt.: No such file"):
        write(tmp_path / "no" / "file.txt")
    with pytest.raises(ArgumentError, match=r"cannot make the folder .*: "):
        make_folder(tmp_path / "file")


def test_reading_and_writing_files_alone_needs_no_onnx():
    script = "import sys, lucid_onnx.files; assert not {'onnx', 'onnx_ir'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_read_only_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    path.write_text("old")
    path.chmod(0o444)
    # An administrator may write anywhere, so that permissions alone are no test.
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(ArgumentError, match=r"cannot write .*file.txt.: it is read-only"):
        write(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
