"""A file is written whole or not at all."""

import os
import threading

import pytest

from helpers.course import write_whole, written_whole


def test_what_is_written_stands_there_and_nothing_beside_it(tmp_path):
    path = tmp_path / "folder" / "file.txt"
    write_whole(path, "grün\n")
    assert path.read_bytes() == "grün\n".encode()
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o644


def test_writing_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "file.txt"
    write_whole(path, "old")
    with pytest.raises(RuntimeError), written_whole(path) as unfinished:
        unfinished.write_text("half of it")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_writes_nothing_is_an_error_and_no_empty_file(tmp_path):
    path = tmp_path / "file.txt"
    with pytest.raises(FileNotFoundError), written_whole(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_replaced_and_not_followed(tmp_path):
    elsewhere, path = tmp_path / "elsewhere.txt", tmp_path / "file.txt"
    elsewhere.write_text("not mine")
    path.symlink_to(elsewhere)
    write_whole(path, "mine")
    assert elsewhere.read_text() == "not mine"
    assert path.read_text() == "mine" and not path.is_symlink()


def test_what_somebody_left_under_the_unfinished_name_is_not_written_through(tmp_path):
    elsewhere, path = tmp_path / "elsewhere.txt", tmp_path / "file.txt"
    elsewhere.write_text("not mine")
    with written_whole(path) as unfinished:
        name = unfinished
        unfinished.write_text("first")
    name.symlink_to(elsewhere)
    write_whole(path, "second")
    assert elsewhere.read_text() == "not mine" and path.read_text() == "second"


def test_a_file_for_reading_alone_can_be_written_again(tmp_path):
    path = tmp_path / "file.txt"
    write_whole(path, "once", mode=0o444)
    write_whole(path, "twice", mode=0o444)
    assert path.read_text() == "twice" and path.stat().st_mode & 0o777 == 0o444


def test_two_threads_that_write_the_same_file_do_not_meet(tmp_path):
    path, both = tmp_path / "file.txt", threading.Barrier(2)

    def write(text):
        with written_whole(path) as unfinished:
            both.wait(timeout=30)
            unfinished.write_text(text)
            both.wait(timeout=30)

    threads = [threading.Thread(target=write, args=(text * 1000,)) for text in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert os.listdir(tmp_path) == ["file.txt"]
