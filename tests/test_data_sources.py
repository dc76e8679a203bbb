"""The source of Python's standard library, as text to learn from."""

from __future__ import annotations

import re
import zlib

import pytest

from helpers.data.sources import checksum, is_held_out, python_version, stdlib_sources


@pytest.fixture
def library(tmp_path):
    """A small library with what is wanted and what is not."""
    wanted = {"abc.py": "import a\n", "json/__init__.py": "x = 1\n", "json/decoder.py": "y = '√'\n"}
    passed_over = ["test/test_abc.py", "json/tests/a.py", "encodings/utf_8.py", "site-packages/torch/nn.py"]
    passed_over += ["_sysconfigdata__linux.py", "config-3.11/a.py", "idlelib/idle_test/a.py", "pydoc_data/topics.py"]
    for name, text in wanted.items() | {(name, "z\n") for name in passed_over}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "abc.txt").write_text("no module\n")
    return tmp_path, wanted


def test_modules_come_in_the_order_of_their_names_and_what_is_no_library_code_is_passed_over(library):
    folder, wanted = library
    assert list(stdlib_sources(folder).items()) == list(wanted.items())


def test_a_file_is_read_in_the_encoding_that_it_names(tmp_path):
    (tmp_path / "old.py").write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    assert stdlib_sources(tmp_path)["old.py"].endswith("x = 'é'\n")


def test_the_library_of_this_python_is_there():
    texts = stdlib_sources()
    assert 300 < len(texts) < 1000 and 6e6 < sum(map(len, texts.values())) < 20e6
    assert {"abc.py", "json/decoder.py", "asyncio/events.py"} <= set(texts)
    assert not any(re.search(r"(^|/)(tests?|encodings|site-packages)/", name) for name in texts)
    assert texts["abc.py"].startswith("# Copyright 2007 Google")


def test_what_is_held_out_depends_on_the_name_alone():
    assert zlib.crc32(b"copy.py") % 20 == 0 and is_held_out("copy.py") and is_held_out("shutil.py")
    assert not is_held_out("abc.py")
    texts = stdlib_sources()
    held = [name for name in texts if is_held_out(name)]
    assert 0.02 < sum(len(texts[name]) for name in held) / sum(map(len, texts.values())) < 0.1


def test_the_checksum_knows_names_and_texts_apart():
    given = [{"a": "b", "c": "d"}, {"a": "b", "c": "e"}, {"a": "b", "e": "d"}, {"a": "b\0c", "d": ""}, {"ab": "cd"}]
    assert len({checksum(one) for one in given}) == len(given)
    assert re.fullmatch(r"\w+ 3\.\d+\.\d+\S*", python_version())


def test_a_library_without_sources_is_named(tmp_path):
    (tmp_path / "python3.11").mkdir()
    with pytest.raises(FileNotFoundError, match="is not there: no .py file is in its folder python3.11. Use a Python"):
        stdlib_sources(tmp_path / "python3.11")
    (tmp_path / "python311.zip").touch()
    with pytest.raises(FileNotFoundError, match="is packed in a .zip file"):
        stdlib_sources(tmp_path / "lib")
