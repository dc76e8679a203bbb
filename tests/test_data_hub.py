"""Data from the folder, from the Hub and what is embedded, over a server on the loopback that speaks the Hub's API.

It serves files that the tests make, in the layouts of the published data sets, and misbehaves when told to.
"""

import errno
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import needs
import pyarrow
import pytest
import torch
from pyarrow import parquet
from safetensors.torch import save

from helpers.course import ROOT
from helpers.data import __main__ as make_data
from helpers.data import datasets, hub, model_files, store
from helpers.data.store import folder as data_folder
from helpers.data.toy import reviews

REVIEWS = {"text": [f"Review {i}: a film, né?" for i in range(40)], "label": [i % 2 for i in range(40)]}
PAIRS = [{"en": f"A dog and {i} men.", "de": f"Ein Hund und {i} Männer."} for i in range(30)]
WIKI = "<mediawiki>\n" + "Anarchism é a political philosophy. " * 60
WEIGHTS = save({"wte.weight": torch.arange(300_000, dtype=torch.float).reshape(300, 1000)})


PIECES = save({"embeddings.word_embeddings.weight": torch.arange(600, dtype=torch.float).reshape(6, 100)})


def as_parquet(columns):
    out = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def as_json_lines(rows):
    return "\n".join(json.dumps(row) for row in rows).encode()


class Server(ThreadingHTTPServer):
    """A small Hub. Big files are "LFS": listed with their SHA-256, and served from another address."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories = {
            ("datasets", "stanfordnlp/imdb", "main"): {
                "README.md": b"reviews",
                "plain_text/train-00000-of-00001.parquet": as_parquet(REVIEWS),
                "plain_text/test-00000-of-00001.parquet": as_parquet({k: v[:10] for k, v in REVIEWS.items()}),
                "plain_text/unsupervised-00000-of-00001.parquet": as_parquet({"text": ["?"], "label": [-1]}),
            },
            ("datasets", "bentrevett/multi30k", "main"): {
                "train.jsonl": as_json_lines(PAIRS),
                "val.jsonl": as_json_lines(PAIRS[:5]),
                "test.jsonl": as_json_lines(PAIRS[:7]),
            },
            ("datasets", "LTCB/enwik8", "main"): {
                "README.md": b"wiki",
                "enwik8.py": b"raise SystemExit('this must never run')",
            },
            ("datasets", "LTCB/enwik8", "refs/convert/parquet"): {
                "enwik8/train/0000.parquet": as_parquet({"text": WIKI.split("\n")}),
                "enwik8-raw/train/0000.parquet": as_parquet({"text": [WIKI]}),
            },
        }
        for name in ("gpt2", "gpt2-medium"):
            self.repositories["models", f"openai-community/{name}", "main"] = {
                "vocab.json": b'{"a": 0}',
                "merges.txt": b"#version: 0.2\n",
                "config.json": b'{"n_embd": 768, "n_head": 12, "n_layer": 12}',
                "model.safetensors": WEIGHTS,
                "pytorch_model.bin": b"cos\nsystem\n",
                "tf_model.h5": b"-",
            }
        self.repositories["models", "sentence-transformers/all-MiniLM-L6-v2", "main"] = {
            "README.md": b"a card",
            "vocab.txt": b"[PAD]\n[UNK]\n",
            "config.json": json.dumps(model_files.MINILM_CONFIG).encode(),
            "model.safetensors": PIECES,
            "pytorch_model.bin": b"cos\nsystem\n",
        }
        self.asked = []  # (path, Range header) of each file that was asked for
        self.faults = {}  # path's end -> function(handler, body), or a status, once for each in the list
        self.ranges = True
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client that only wants to know whether somebody answers hangs up at once

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def asked_for(self, ending):
        return [span for path, span in self.asked if path.endswith(ending)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        path = urlsplit(self.path).path
        if path.startswith("/api/"):
            return self.listing(path)
        path, on_the_other_address = path.removeprefix("/cdn"), path.startswith("/cdn/")
        kind, rest = ("datasets", path[len("/datasets/") :]) if path.startswith("/datasets/") else ("models", path[1:])
        name, _, rest = rest.partition("/resolve/")
        revision, _, file = rest.partition("/")
        body = self.server.repositories.get((kind, name, unquote(revision)), {}).get(unquote(file))
        if body is None:
            return self.answer(404, b"Entry not found")
        if len(body) > 1000 and not on_the_other_address:
            return self.answer(302, b"", Location=f"{self.server.url}/cdn{self.path}")
        self.server.asked.append((unquote(file), self.headers.get("Range")))
        for ending, faults in self.server.faults.items():
            if unquote(file).endswith(ending) and faults:
                fault = faults.pop(0)
                return fault(self, body) if callable(fault) else self.answer(fault, b"not now")
        start = int(self.headers.get("Range", "bytes=0-")[6:-1]) if self.server.ranges else 0
        if start >= len(body) > 0:
            return self.answer(416, b"")
        return self.answer(206 if start else 200, body[start:])

    def listing(self, path):
        fault = (self.server.faults.get("listing") or [None]).pop(0)
        if fault:
            return self.answer(fault, b"{}")
        _, _, kind, owner, name, *revision = path.split("/")
        revision = unquote(revision[1]) if revision else "main"
        files = self.server.repositories.get((kind, f"{owner}/{name}", revision))
        if files is None:
            return self.answer(404, b"{}", **{"X-Error-Code": "RepoNotFound"})
        siblings = []
        for file, body in files.items():
            git = hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()
            entry = {"rfilename": file, "size": len(body), "blobId": git}
            if len(body) > 1000:
                entry["lfs"] = {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 130}
            siblings.append(entry)
        return self.answer(200, json.dumps({"id": f"{owner}/{name}", "sha": "0" * 40, "siblings": siblings}).encode())

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)


def cut_off(after):
    """Promise everything that is asked for, send a part, and hang up."""

    def fault(handler, body):
        start = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Length", str(len(body) - start))
        handler.end_headers()
        handler.wfile.write(body[start : start + after])
        handler.close_connection = True

    return fault


def damaged(handler, body):
    handler.answer(200, body[:-1] + bytes([body[-1] ^ 1]))


@pytest.fixture
def server(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("HF_HUB_OFFLINE", "COURSE_PLACES", "HF_TOKEN"):
            monkeypatch.delenv(name)
    hub_server = Server()
    monkeypatch.setenv("HF_ENDPOINT", hub_server.url)
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(hub, "_wait", lambda problem, failures: 0.0)
    monkeypatch.setattr(reviews, "reviews", partial(reviews.reviews, train=60, test=20))
    monkeypatch.setattr(store, "ENWIK8_BYTES", 1000)
    monkeypatch.setitem(store.SHA256, datasets._ENWIK8, hashlib.sha256(WIKI.encode()[:1000]).hexdigest())
    for file in ("vocab.json", "merges.txt", "model.safetensors"):
        body = hub_server.repositories["models", "openai-community/gpt2", "main"][file]
        monkeypatch.setitem(store.SHA256, f"gpt2/{file}", hashlib.sha256(body).hexdigest())
    for file in ("vocab.txt", "model.safetensors"):
        body = hub_server.repositories["models", "sentence-transformers/all-MiniLM-L6-v2", "main"][file]
        monkeypatch.setitem(store.SHA256, f"minilm/{file}", hashlib.sha256(body).hexdigest())
    yield hub_server
    hub_server.shutdown()
    hub_server.server_close()


@pytest.fixture
def pocket(monkeypatch, tmp_path):
    """A stand-in for the pocket GPT-2."""
    folder = tmp_path / "pocket"
    folder.mkdir()
    monkeypatch.setattr(model_files, "POCKET", folder)
    return folder


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def the_one_line(capsys):
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    assert "Traceback" not in err and "Warning" not in err and "Error" not in err
    return line


# The order: folder, Hub, embedded


def test_reviews_come_from_the_hub_and_stay_for_the_next_time(server, capsys):
    train, test, taken = datasets.classifier_reviews()
    assert train == datasets.Labelled(REVIEWS["text"], REVIEWS["label"]) and len(test.texts) == 10
    line = the_one_line(capsys)
    assert taken.place == "hub" and taken.line == line
    assert "IMDb" in line and "40 to train on and 10 to test on" in line and "from the Hub" in line
    assert "because $COURSE_DATA has no imdb/train.parquet" in line
    assert "other rows than those published" in line, "these are the test's own rows, not IMDb's"
    assert files_in(data_folder()) == ["imdb/test.parquet", "imdb/train.parquet"]

    asked = len(server.asked)
    again = datasets.classifier_reviews()
    assert again[:2] == (train, test) and again.taken.place == "folder" and len(server.asked) == asked
    assert the_one_line(capsys).endswith(", from $COURSE_DATA.")


def test_translation_pairs_come_from_the_hub(server, capsys):
    train, validation, test, taken = datasets.translation_pairs()
    assert train == [(row["en"], row["de"]) for row in PAIRS] and (len(validation), len(test)) == (5, 7)
    assert taken.place == "hub" and "Multi30k" in the_one_line(capsys)
    assert files_in(data_folder()) == [f"multi30k/{split}.parquet" for split in ("test", "train", "validation")]


def test_a_data_set_published_as_a_script_is_taken_from_the_hubs_parquet_copy_and_the_script_never_runs(server, capsys):
    data, taken = datasets.generator_text()
    assert data == WIKI.encode()[:1000] and taken.place == "hub" and "enwik8" in the_one_line(capsys)
    assert not server.asked_for(".py")


def test_gpt2_comes_from_the_hub_and_only_the_files_that_are_needed(server, capsys):
    folder, taken = datasets.gpt2_files("openai-community/gpt2-medium")
    assert taken.place == "hub" and "gpt2-medium" in the_one_line(capsys)
    assert files_in(folder) == ["config.json", "merges.txt", "model.safetensors", "vocab.json"]
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert datasets.gpt2_files("gpt2-medium").taken.place == "folder"


def test_a_tokenizer_alone_needs_no_weights_and_weights_are_added_later(server, capsys):
    folder, _ = datasets.gpt2_files(weights=False)
    assert files_in(folder) == ["merges.txt", "vocab.json"] and "tokenizer" in the_one_line(capsys)
    assert files_in(datasets.gpt2_files().folder) == ["config.json", "merges.txt", "model.safetensors", "vocab.json"]
    assert len(server.asked_for("vocab.json")) == 1


def test_older_models_bring_their_bin_file_and_it_is_not_opened(server):
    files = server.repositories["models", "openai-community/gpt2-medium", "main"]
    del files["model.safetensors"]
    folder, _ = datasets.gpt2_files("gpt2-medium", say=lambda line: None)
    assert (folder / "pytorch_model.bin").read_bytes() == files["pytorch_model.bin"], (
        "a pickle that would run a command"
    )


@pytest.mark.parametrize(
    "name, meant",
    [
        ("gpt3", "'gpt2'"),
        ("GPT2-XL", "'gpt2-xl'"),
        ("somebody/gpt2", "'gpt2'"),
        ("openai-community/distilgpt2", "'distilgpt2'"),
        ("./gpt2", "'gpt2'"),
        ("llama", None),
        ("", None),
    ],
)
def test_an_unknown_model_is_called_unknown_and_nothing_is_taken_in_its_place(server, pocket, capsys, name, meant):
    with pytest.raises(ValueError, match=f"no GPT-2 called '{name}'.* Names are gpt2, gpt2-medium.*folder") as caught:
        datasets.gpt2_files(name)
    assert ("did you mean" in str(caught.value)) == bool(meant) and (meant or "") in str(caught.value)
    assert capsys.readouterr().out == "" and server.asked == []


def test_a_folder_that_is_called_like_a_published_model_is_taken_only_by_its_path(server, monkeypatch, tmp_path):
    (tmp_path / "here/gpt2").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert datasets.gpt2_files("gpt2", say=lambda line: None).taken.place == "hub"
    assert datasets.gpt2_files("./gpt2").folder.resolve() == tmp_path / "here/gpt2"


##### What lies in the data folder, and what it is called


def put(name, **others):
    """A published model in the data folder: the files that the small Hub serves, or others. Returns the folder."""
    files = {"vocab.json": b'{"a": 0}', "merges.txt": b"#version: 0.2\n", "model.safetensors": WEIGHTS}
    files["config.json"] = json.dumps(dict(zip(SETTINGS, model_files.GPT2_SIZES[name], strict=True))).encode()
    folder = data_folder() / name
    folder.mkdir(parents=True)
    for file, body in {**files, **others}.items():
        if body is not None:
            (folder / file).write_bytes(body)
    return folder


SETTINGS = ("n_embd", "n_head", "n_layer")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:248dfc39\nsize 548105171\n"
PAGE = b"<!doctype html><html><head><title>gpt2</title></head>"


def taken_line(name, capsys):
    datasets.gpt2_files(name, places=["folder", "embedded"])
    return the_one_line(capsys)


def test_weights_that_are_not_the_published_ones_are_not_announced_as_them(server, capsys):
    folder = put("gpt2")
    assert taken_line("gpt2", capsys) == "GPT-2: gpt2, from $COURSE_DATA."
    (folder / "model.safetensors").write_bytes(save({"wte.weight": torch.zeros(300, 1000)}))
    assert taken_line("gpt2", capsys) == "GPT-2: gpt2 (other weights than those published), from $COURSE_DATA."
    before = (folder / "model.safetensors").read_bytes()
    (folder / "merges.txt").write_text("damaged")
    assert datasets.gpt2_files("gpt2").taken.place == "hub"
    assert (folder / "model.safetensors").read_bytes() == before, "somebody's own weights are not thrown away"
    assert "(other weights than those published)" in the_one_line(capsys)


def test_a_model_of_another_size_is_not_announced_as_the_published_one(server, capsys):
    put("gpt2-xl")
    assert taken_line("gpt2-xl", capsys) == "GPT-2: gpt2-xl, from $COURSE_DATA."
    put("gpt2-large", **{"config.json": b'{"n_embd": 768, "n_head": 12, "n_layer": 12}'})
    assert "gpt2-large (other sizes than those published), from" in taken_line("gpt2-large", capsys)


FILES = {
    "gpt2-medium": (lambda mine: datasets.gpt2_files("gpt2-medium"), "config.json vocab.json merges.txt"),
    "minilm": (datasets.minilm_files, "config.json vocab.txt model.safetensors"),
    "imdb": (lambda mine: datasets.classifier_reviews(), "train.parquet test.parquet"),
}


@pytest.mark.parametrize(
    "content, says", [(POINTER, "a Git LFS pointer"), (PAGE, "a web page"), (b"", "an empty file")]
)
@pytest.mark.parametrize("file", [f"{name}/{file}" for name, (_, files) in FILES.items() for file in files.split()])
def test_what_lies_in_a_files_place_is_named_and_the_lesson_goes_on(
    server, pocket, tmp_path, monkeypatch, capsys, file, content, says
):
    take, _ = FILES[file.split("/")[0]]
    assert take(tmp_path).taken.place == "hub"
    (data_folder() / file).write_bytes(content)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    capsys.readouterr()
    assert take(tmp_path).taken.place == "embedded"
    assert f"because {file} is {says}" in the_one_line(capsys)


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_of_weights_too_it_is_said_what_lies_in_their_place(server, pocket, capsys, file):
    put("gpt2-medium", **{"model.safetensors": None, file: POINTER})
    assert f"because gpt2-medium/{file} is a Git LFS pointer" in taken_line("gpt2-medium", capsys)


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff"])
def test_a_damaged_config_is_noticed_and_replaced_from_the_hub(server, capsys, content):
    put("gpt2-medium", **{"config.json": content})
    assert datasets.gpt2_files("gpt2-medium").taken.place == "hub"
    assert "gpt2-medium/config.json is damaged" in the_one_line(capsys)
    assert datasets.gpt2_files("gpt2-medium").taken.place == "folder"


def test_a_damaged_file_hides_no_good_one(server, capsys):
    put("gpt2-medium", **{"model.safetensors": WEIGHTS[:-1], "pytorch_model.bin": b"weights"})
    assert datasets.gpt2_files("gpt2-medium").taken.place == "folder"
    (data_folder() / "enwik8").mkdir()
    (data_folder() / datasets._ENWIK8).write_bytes(b"damaged")
    (data_folder() / "enwik8/enwik8").write_bytes(WIKI.encode())
    data, taken = datasets.generator_text()
    assert taken.place == "folder" and data == WIKI.encode()[:1000]


def test_a_model_in_several_files_is_whole_when_they_all_are(server, pocket, capsys):
    parts = [f"model-0000{k}-of-00002.safetensors" for k in (1, 2)]
    index = json.dumps({"weight_map": dict(zip("ab", parts, strict=True))}).encode()
    files = {"model.safetensors": None, "model.safetensors.index.json": index, **dict.fromkeys(parts, WEIGHTS)}
    folder = put("gpt2-xl", **files)
    assert taken_line("gpt2-xl", capsys) == "GPT-2: gpt2-xl, from $COURSE_DATA."
    (folder / parts[0]).write_bytes(WEIGHTS[:-1])
    assert f"gpt2-xl/{parts[0]} is damaged" in taken_line("gpt2-xl", capsys)
    (folder / parts[0]).unlink()
    assert f"model.safetensors.index.json names {parts[0]}, which is not there" in taken_line("gpt2-xl", capsys)
    (folder / "model.safetensors.index.json").write_bytes(b'{"weight_map": [1]}')
    assert "model.safetensors.index.json is damaged" in taken_line("gpt2-xl", capsys)


@pytest.mark.parametrize("label", [-1, 2])
def test_labels_are_0_or_1(server, capsys, label):
    columns = {"text": ["a", "b", "c"], "label": [0, 1, label]}
    train = as_parquet(columns)
    server.repositories["datasets", "stanfordnlp/imdb", "main"]["plain_text/train-00000-of-00001.parquet"] = train
    (data_folder() / "imdb").mkdir(parents=True)
    store.write_table(data_folder() / "imdb/train.parquet", columns)
    store.write_table(data_folder() / "imdb/test.parquet", {"text": ["a"], "label": [1]})
    before = (data_folder() / "imdb/train.parquet").read_bytes()
    assert datasets.classifier_reviews().taken.place == "embedded"
    line = the_one_line(capsys)
    assert f"imdb/train.parquet has a label of {label}, where 0 or 1 is wanted" in line
    assert f"imdb, as the Hub has it, has a label of {label}" in line
    assert (data_folder() / "imdb/train.parquet").read_bytes() == before, "nothing of the Hub's was kept"


def test_a_folder_that_may_not_be_written_does_not_matter(server, monkeypatch, tmp_path, capsys):
    (tmp_path / "school").write_text("a file where the folder should be: it cannot be written, whoever runs this")
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "school"))
    assert datasets.classifier_reviews().taken.place == "hub"
    assert files_in(store.own_folder()) == ["imdb/test.parquet", "imdb/train.parquet"]
    assert datasets.classifier_reviews().taken.place == "kept"
    assert "on an earlier day" in capsys.readouterr().out.splitlines()[-1]


def test_a_caller_and_the_environment_choose_the_places(server, monkeypatch, capsys):
    assert datasets.classifier_reviews(places="embedded").taken.place == "embedded"
    assert the_one_line(capsys).endswith("generated reviews, 60 to train on and 20 to test on.")
    monkeypatch.setenv("COURSE_PLACES", "embedded")
    assert datasets.translation_pairs().taken.place == "embedded" and not server.asked
    with pytest.raises(hub.Unavailable, match="no imdb/train.parquet"):
        datasets.classifier_reviews(places=["folder"])
    with pytest.raises(ValueError, match="attic"):
        datasets.classifier_reviews(places=["attic"])


# No network


SOURCES = (datasets.classifier_reviews, datasets.generator_text, datasets.translation_pairs, datasets.gpt2_files)


def test_without_a_network_every_lesson_starts_at_once_and_says_why(server, pocket, monkeypatch, capsys):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        for source in SOURCES:
            started = time.monotonic()
            assert source().taken.place == "embedded"
            assert time.monotonic() - started < 2 + hub.PATIENCE
            assert "because $COURSE_DATA has no " in (line := the_one_line(capsys)) and "no network" in line


def test_a_network_that_swallows_everything_costs_a_second(server, monkeypatch):
    def swallow(address, timeout):
        time.sleep(hub.PATIENCE + 2)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", swallow)
    started = time.monotonic()
    with pytest.raises(hub.Unavailable, match="no network"):
        hub.require_network()
    assert time.monotonic() - started < hub.PATIENCE + 0.5


def test_offline_is_taken_at_its_word(server, monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert datasets.classifier_reviews().taken.place == "embedded"
    assert "HF_HUB_OFFLINE is set" in the_one_line(capsys) and not server.asked


def test_behind_a_proxy_it_is_the_proxy_that_is_asked(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with pytest.raises(hub.Unavailable, match="hub.invalid"):
        hub.require_network()
    monkeypatch.setenv("http_proxy", server.url)
    hub.require_network()


# A bad connection


def test_a_connection_that_breaks_is_taken_up_where_it_broke(server):
    server.faults["model.safetensors"] = [cut_off(400_000), cut_off(400_000)]
    folder, taken = datasets.gpt2_files(say=lambda line: None)
    assert taken.place == "hub" and (folder / "model.safetensors").read_bytes() == WEIGHTS
    first, second, third = server.asked_for("model.safetensors")
    assert first is None and second == "bytes=400000-" and third == "bytes=800000-"


def test_an_interrupted_download_is_taken_up_by_the_next_session(server, pocket, capsys):
    server.faults["model.safetensors"] = [cut_off(500_000)] + [cut_off(0)] * hub.ATTEMPTS
    assert datasets.gpt2_files().taken.place == "embedded"
    line = the_one_line(capsys)
    assert "0.5 of 1.2 MB are kept" in line and "connection" in line
    assert not (data_folder() / "gpt2/model.safetensors").exists(), "nothing half-written under the file's name"

    before = len(server.asked_for("model.safetensors"))
    folder, taken = datasets.gpt2_files()
    assert taken.place == "hub" and (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert server.asked_for("model.safetensors")[before:] == ["bytes=500000-"], "only the rest was asked for"
    assert files_in(folder) == ["config.json", "merges.txt", "model.safetensors", "vocab.json"]


def test_the_stop_button_keeps_what_came(server):
    server.faults["model.safetensors"] = [cut_off(300_000)]

    def press_stop(problem, failures):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "_wait", press_stop)
        with pytest.raises(KeyboardInterrupt):
            datasets.gpt2_files(say=lambda line: None)
    assert not (data_folder() / "gpt2/model.safetensors").exists()
    datasets.gpt2_files(say=lambda line: None)
    assert server.asked_for("model.safetensors")[-1] == "bytes=300000-"


def test_a_process_that_is_killed_leaves_its_part_and_the_next_one_goes_on(server):
    reached, finish = threading.Event(), threading.Event()

    def stall(handler, body):
        cut_off(700_000)(handler, body)
        reached.set()
        finish.wait(20)

    server.faults["model.safetensors"] = [stall]
    command = [sys.executable, "-m", "helpers.data", "gpt2-medium"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    part = data_folder() / f"gpt2-medium/model.safetensors.{hashlib.sha256(WEIGHTS).hexdigest()[:12]}.part"
    assert reached.wait(60)
    while not part.exists() or part.stat().st_size < 700_000:
        time.sleep(0.05)
    process.kill()
    process.wait()
    finish.set()
    assert not (data_folder() / "gpt2-medium/model.safetensors").exists()
    (data_folder() / "gpt2-medium/model.safetensors.0123456789ab.part").write_text("of an older version")

    folder, _ = datasets.gpt2_files("gpt2-medium", say=lambda line: None)
    assert server.asked_for("model.safetensors") == [None, "bytes=700000-"]
    assert files_in(folder) == ["config.json", "merges.txt", "model.safetensors", "vocab.json"]


def test_a_server_that_knows_no_ranges_sends_it_all_again(server):
    server.ranges = False
    server.faults["model.safetensors"] = [cut_off(400_000)]
    assert (datasets.gpt2_files(say=lambda line: None).folder / "model.safetensors").read_bytes() == WEIGHTS


# A bad answer


@pytest.mark.parametrize(
    "status, words",
    [
        (404, "404 .* not found"),
        (429, "429 .* too many requests"),
        (500, "500 .* a fault of the Hub"),
        (503, "503 .* a fault of the Hub"),
        (401, "401 .* log in"),
        (403, "403"),
    ],
)
@pytest.mark.parametrize("where", ["listing", "train-00000-of-00001.parquet"])
def test_an_answer_that_is_no_file_is_named_and_the_lesson_goes_on(server, capsys, status, words, where):
    server.faults[where] = [status] * 20
    assert datasets.classifier_reviews().taken.place == "embedded"
    line = the_one_line(capsys)
    assert all(word.strip(" .*") in line for word in words.split(" .* "))
    assert len(server.asked) <= hub.ATTEMPTS
    assert files_in(data_folder()) == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_hub_that_is_busy_for_a_moment_is_asked_again(server, status):
    server.faults = {"listing": [status], "train-00000-of-00001.parquet": [status, status]}
    assert datasets.classifier_reviews(say=lambda line: None).taken.place == "hub"


def test_a_damaged_file_is_noticed_thrown_away_and_fetched_anew(server, pocket, capsys):
    server.faults = {"model.safetensors": [damaged], "merges.txt": []}
    assert datasets.gpt2_files().taken.place == "embedded"
    assert "model.safetensors came damaged from the Hub" in the_one_line(capsys)
    assert files_in(data_folder()) == ["gpt2/config.json", "gpt2/merges.txt", "gpt2/vocab.json"]
    assert datasets.gpt2_files().taken.place == "hub"


@pytest.mark.parametrize(
    "body, words",
    [
        (b"PAR1 but nothing that follows", "cannot be read"),
        (as_parquet({"words": ["a"], "label": [1]}), "no column called text"),
        (as_parquet({"text": ["a"], "label": ["kind"]}), "values in label that are not int"),
        (as_parquet({"text": [], "label": []}), ""),
    ],
)
def test_a_file_that_the_hub_itself_holds_broken_is_noticed(server, capsys, body, words):
    server.repositories["datasets", "stanfordnlp/imdb", "main"]["plain_text/train-00000-of-00001.parquet"] = body
    assert datasets.classifier_reviews().taken.place == "embedded"
    assert words in the_one_line(capsys)
    assert files_in(data_folder()) == [], "what cannot be read is not kept"


def test_enwik8_that_is_not_enwik8_is_refused(server, capsys):
    other = as_parquet({"text": [WIKI.replace("Anarchism", "Astronomy")]})
    server.repositories["datasets", "LTCB/enwik8", "refs/convert/parquet"]["enwik8-raw/train/0000.parquet"] = other
    assert datasets.generator_text().taken.place == "embedded"
    assert "checksum" in the_one_line(capsys)


@pytest.mark.parametrize(
    "name, source",
    [
        ("imdb/train.parquet", datasets.classifier_reviews),
        ("multi30k/test.parquet", datasets.translation_pairs),
        (datasets._ENWIK8, datasets.generator_text),
        ("gpt2/merges.txt", datasets.gpt2_files),
        ("gpt2/model.safetensors", datasets.gpt2_files),
        ("minilm/vocab.txt", datasets.minilm_files),
        ("minilm/model.safetensors", datasets.minilm_files),
        ("minilm/config.json", datasets.minilm_files),
    ],
)
def test_a_damaged_file_in_the_folder_is_noticed_and_replaced_from_the_hub(server, capsys, name, source):
    source(say=lambda line: None)
    path = data_folder() / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    again = source()
    assert again.taken.place == "hub" and f"{name} is damaged" in the_one_line(capsys)
    assert source().taken.place == "folder" and len(path.read_bytes()) == len(whole)


# A full disk


def test_a_disk_without_room_is_named_before_anything_is_fetched(server, pocket, monkeypatch, capsys):
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda folder: SimpleNamespace(free=3))
    assert datasets.gpt2_files().taken.place == "embedded"
    assert "the disk is full" in (line := the_one_line(capsys)) and "MB are free" in line
    assert server.asked == []


def test_a_disk_that_fills_up_while_fetching_is_named_and_what_came_is_kept(server, pocket, monkeypatch, capsys):
    fetch_once = hub._fetch_once

    def full(repository, file, part, bar):
        if file.path == "model.safetensors":
            part.write_bytes(WEIGHTS[:1000])
            raise OSError(errno.ENOSPC, "No space left on device")
        fetch_once(repository, file, part, bar)

    with monkeypatch.context() as patch:
        patch.setattr(hub, "_fetch_once", full)
        assert datasets.gpt2_files().taken.place == "embedded"
    assert "the disk is full (model.safetensors could not be written)" in the_one_line(capsys)
    assert datasets.gpt2_files().taken.place == "hub"
    assert server.asked_for("model.safetensors") == ["bytes=1000-"]


def test_a_disk_that_fills_up_while_a_table_is_written_leaves_no_half_table(server, monkeypatch, capsys):
    def full(table, where, **options):
        Path(where).write_bytes(b"PAR1 half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", full)
        assert datasets.classifier_reviews().taken.place == "embedded"
    assert "the disk is full" in the_one_line(capsys)
    assert all(name.startswith(".downloads/") for name in files_in(data_folder()))
    asked = len(server.asked)
    assert datasets.classifier_reviews().taken.place == "hub"
    assert len(server.asked) == asked, "the download itself was whole, and was kept"
    assert files_in(data_folder()) == ["imdb/test.parquet", "imdb/train.parquet"]


# make data


def test_make_data_fetches_everything_and_then_nothing(server, capsys):
    assert make_data.main([]) == 0
    out = capsys.readouterr().out
    assert "5 of 5 there" in out and out.count("fetched: ") == 5 and "need no network now" in out
    assert len(files_in(data_folder())) == 2 + 3 + 1 + 4 + 3
    asked = len(server.asked)
    assert make_data.main(["gpt2", "imdb"]) == 0
    assert capsys.readouterr().out.count("already there: ") == 2 and len(server.asked) == asked


def test_make_data_says_what_is_missing_and_goes_on_the_next_time(server, capsys):
    server.faults = {"train.jsonl": [404], "model.safetensors": [cut_off(600_000)] + [500] * hub.ATTEMPTS}
    assert make_data.main([]) == 2
    out = capsys.readouterr().out
    assert (
        "3 of 5 there" in out
        and "Missing: multi30k, gpt2" in out
        and "the Hub answered 404" in out
        and "0.6 of 1.2 MB are kept" in out
    )
    assert make_data.main([]) == 0
    assert server.asked_for("model.safetensors")[-1] == "bytes=600000-"


def test_make_data_stops_when_asked_to(server, monkeypatch, capsys):
    def stop(self, folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets.Enwik8, "fetch", stop)
    assert make_data.main([]) == 4
    out = capsys.readouterr().out
    assert "Stopped" in out and "1 of 5 there" in out


def test_make_data_knows_its_names(capsys):
    assert make_data.main(["gpt5"]) == 1
    assert "There is no gpt5 to fetch" in capsys.readouterr().out


def test_it_all_works_by_environment_alone_in_a_fresh_process(server):
    code = "from helpers.data.datasets import classifier_reviews as r; print(len(r().train.texts))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert done.returncode == 0, done.stderr
    line, count = done.stdout.splitlines()
    assert count == "40" and "from the Hub" in line


# The real files, where there are some


def real(name):
    needs.require("real data", needs.problem("real data", name))
    return store.folder() / name


@pytest.mark.parametrize("name", sorted(store.ROWS))
def test_real_tables_have_the_rows_that_are_pinned(name):
    path = real(name)
    kinds = {"text": str, "label": int} if name.startswith("imdb") else {"en": str, "de": str}
    assert store.digest_of_rows(store.read_table(path, kinds)) == store.ROWS[name]


@pytest.mark.parametrize("name", sorted(store.SHA256))
def test_real_files_have_the_checksums_that_are_pinned(name):
    path = real(name)
    store.require_published(name, path)
