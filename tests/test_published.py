"""Published models whose files are not as they should be: every one is refused in words, and nothing in it is run."""

from __future__ import annotations

import json
import math
import pickle
import random
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from tables import table

from helpers.course import write_whole
from helpers.parts import bert, gpt2, llama
from helpers.parts.published import published_tensors

SAFE, BIN = "model.safetensors", "pytorch_model.bin"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:248dfc39\nsize 548105171\n"
PAGE = b"\n<!DOCTYPE html>\n<html><head><title>model.safetensors</title></head>"


def save_llama(model: llama.Llama, folder) -> None:
    config = model.config
    heads = {"num_key_value_heads": config.groups, "rope_theta": config.theta}
    write_whole(folder / "config.json", json.dumps(llama._SETTINGS.table(config) | heads))
    save_file(published_tensors(model, llama._TENSORS), folder / SAFE)


MODELS = {  # a small model, how it is saved, and the module that loads it
    "gpt2": (lambda: gpt2.GPT2(gpt2.Config(n=97, t_max=40, e=24, h=3, depth=2)), gpt2.save, gpt2),
    "bert": (
        lambda: bert.Bert(bert.BertConfig(11, 6, 8, 2, 2)),
        lambda model, folder: bert.save(model, {piece: i for i, piece in enumerate("abcdefghijk")}, folder),
        bert,
    ),
    "llama": (lambda: llama.Llama(llama.LlamaConfig(n=37, e=24, h=6, groups=2, depth=2, hidden=40)), save_llama, llama),
}


@pytest.fixture(params=MODELS)
def saved(request, tmp_path):
    """(a folder with a model's files, what loads it, the kind of the model)."""
    make, save, module = MODELS[request.param]
    save(make(), tmp_path)
    return tmp_path, module.load, request.param


@pytest.fixture
def gpt(tmp_path):
    """A folder with a GPT-2."""
    gpt2.save(MODELS["gpt2"][0](), tmp_path)
    return tmp_path


def as_bin(folder) -> dict[str, torch.Tensor]:
    """Write the weights of a folder in the older format instead. Returns them."""
    weights = load_file(folder / SAFE)
    (folder / SAFE).unlink()
    torch.save(weights, folder / BIN)
    return weights


def changed(folder, **settings) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


##### Settings

TABLES = table("published")


@pytest.mark.parametrize(
    ("saved", "settings", "says"), [(kind, *case) for kind in MODELS for case in TABLES[kind]], indirect=["saved"]
)
def test_a_config_that_describes_no_model_that_fits_is_refused(saved, settings, says):
    folder, load, _ = saved
    changed(folder, **json.loads(settings))
    with pytest.raises(ValueError, match=f"(?s)config.json.*{says}"):
        load(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"[" * 100_000, b"\x00", b"{}", POINTER, PAGE])
def test_a_damaged_config_is_refused(saved, content):
    folder, load, _ = saved
    (folder / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match="config.json is damaged"):
        load(folder)


def test_missing_files_are_named(saved):
    folder, load, _ = saved
    with pytest.raises(FileNotFoundError, match="There is no folder .*nowhere"):
        load(folder / "nowhere")
    (folder / SAFE).unlink()
    with pytest.raises(FileNotFoundError, match=f"{SAFE} or {BIN}"):
        load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match="config.json"):
        load(folder)


##### Tensors


@pytest.mark.parametrize("older", [False, True])
def test_every_tensor_that_does_not_fit_is_named_in_one_message(saved, older):
    folder, load, _ = saved
    weights = load_file(folder / SAFE)
    first, second, third, *_ = (name for name in weights if ".0." in name)
    block = first.replace(".0.", ".7.")
    lost = weights.pop(first)
    weights[second] = torch.ones(1, 2)
    weights[third] = weights[third].long()
    weights |= {block: lost, "surprise": torch.ones(1)}
    if older:
        (folder / SAFE).unlink()
        torch.save(weights, folder / BIN)
    else:
        save_file(weights, folder / SAFE)
    with pytest.raises(ValueError) as caught:
        load(folder)
    said = sorted(line.strip() for line in str(caught.value).splitlines()[1:])
    expected = [
        f"missing: {first}",
        f"no weights: {third} holds torch.int64",
        f"unexpected: {block} (config.json says 2 blocks)",
        "unexpected: surprise",
        f"wrong shape: {second} is (1, 2) and should be",
    ]
    assert len(said) == 5 and all(line.startswith(start) for line, start in zip(said, sorted(expected), strict=True))


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf])
def test_weights_that_are_no_numbers_are_refused_by_name(saved, strange):
    folder, load, _ = saved
    weights = load_file(folder / SAFE)
    name = next(name for name, tensor in weights.items() if tensor.dim() == 1)
    weights[name][3:5] = strange
    save_file(weights, folder / SAFE)
    with pytest.raises(ValueError, match=rf"(?s){SAFE} holds NaN or infinity.*  {name}: 2 of {len(weights[name])}$"):
        load(folder)


def test_tensors_that_are_no_numbers_in_memory_are_refused(gpt):
    weights = as_bin(gpt)
    torch.save(weights | {"wpe.weight": weights["wpe.weight"].to_sparse()}, gpt / BIN)
    with pytest.raises(ValueError, match="no weights: wpe.weight .*sparse"):
        gpt2.load(gpt)


##### Damaged files


@pytest.mark.parametrize("name", [SAFE, BIN])
def test_damaged_and_truncated_files_are_refused(saved, name):
    folder, load, kind = saved
    if name == BIN:
        as_bin(folder)
    whole, rng = (folder / name).read_bytes(), random.Random(0)
    cut = [whole[:length] for length in (0, 1, 7, 100, len(whole) // 2, len(whole) - 1)]
    others = [b"\0" * 1000, b"\xff" * 1000, rng.randbytes(5000), PAGE, POINTER]
    refused = f"{name} (is damaged|is refused|is no table|does not fit|is an empty|is a web page|is a Git LFS pointer)"
    for content in (*cut, *others, b"\xff\xff\xff\xff\xff\xff\xff\x7f{}" + whole[10:]):
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=refused):
            load(folder)
    for _ in range(20):  # a few bytes changed where the tensors are described: refused, or nothing of it matters
        spoiled = bytearray(whole)
        for _ in range(3):
            spoiled[rng.randrange(min(len(whole), 2500))] = rng.randrange(256)
        (folder / name).write_bytes(spoiled)
        try:
            assert isinstance(load(folder), torch.nn.Module)
        except ValueError as problem:
            assert name in str(problem)


def test_a_header_that_claims_more_than_there_is_is_refused(gpt):
    claim = {"wte.weight": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4 * 10**18]}}
    header = json.dumps(claim).encode()
    (gpt / SAFE).write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    with pytest.raises(ValueError, match=f"{SAFE} is damaged"):
        gpt2.load(gpt)


def test_a_damaged_file_hides_no_good_one(gpt):
    whole = (gpt / SAFE).read_bytes()
    as_bin(gpt)
    expected = gpt2.load(gpt).state_dict()
    for content in (whole[:-1], POINTER, PAGE, b""):
        (gpt / SAFE).write_bytes(content)
        with pytest.warns(UserWarning, match=f"{SAFE} is .*{BIN} was taken instead"):
            loaded = gpt2.load(gpt).state_dict()
        assert all(tensor.equal(expected[name]) for name, tensor in loaded.items())
    (gpt / BIN).write_bytes(b"")
    with pytest.raises(ValueError, match=rf"(?s){SAFE} is an empty file.*{BIN} is an empty file"):
        gpt2.load(gpt)


##### Hostile files


class Hostile:
    """Leaves a mark when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def pickled(content, path):
    path.write_bytes(pickle.dumps(content))


def saved_as_before(content, path):
    torch.save(content, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("write", [torch.save, pickled, saved_as_before])
@pytest.mark.parametrize("place", ["alone", "a tensor", "a name", "in a list", "beside the weights of nanoGPT"])
def test_hostile_files_are_refused_and_run_nothing(gpt, write, place):
    weights, mark = as_bin(gpt), gpt / "mark"
    hostile = {
        "alone": Hostile(mark),
        "a tensor": weights | {"h.0.attn.bias": Hostile(mark)},
        "a name": {Hostile(mark): torch.ones(1)},
        "in a list": [Hostile(mark)],
        "beside the weights of nanoGPT": {"model": weights, "config": Hostile(mark)},
    }
    write(hostile[place], gpt / BIN)
    with pytest.raises(ValueError, match=f"{BIN} is (refused|damaged)") as caught:
        gpt2.load(gpt)
    assert not mark.exists()
    assert "weights_only" not in str(caught.value), "PyTorch's message advises to run the file"
    if (write, place) == (torch.save, "a tensor"):
        assert re.search(r"it asks for \w+\.open.*nothing in it was run", str(caught.value))


@pytest.mark.parametrize(
    "content", [[1, 2], {"a": 1}, {1: torch.ones(2)}, torch.ones(3), {"a": {"b": torch.ones(1)}}, None, {}]
)
def test_a_bin_that_is_no_table_of_tensors_is_refused(gpt, content):
    as_bin(gpt)
    torch.save(content, gpt / BIN)
    with pytest.raises(ValueError, match="missing: wte.weight" if content == {} else "no table of weights"):
        gpt2.load(gpt)


##### A model in several files


def in_parts(folder, kind: str) -> list:
    """The weights of a folder in three files and an index, as the Hub has large models; the files, the index last."""
    weights = load_file(folder / SAFE)
    (folder / SAFE).unlink()
    stem, write = ("model", save_file) if kind == "safetensors" else ("pytorch_model", torch.save)
    names = [f"{stem}-0000{k}-of-00003.{kind}" for k in (1, 2, 3)]
    where = {name: names[place % 3] for place, name in enumerate(sorted(weights))}
    for part in names:
        write({name: weights[name] for name in weights if where[name] == part}, folder / part)
    index = folder / f"{stem}.{kind}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}))
    return [*(folder / name for name in names), index]


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_a_model_in_several_files_is_loaded_and_what_is_missing_of_it_is_named(gpt, kind):
    expected = gpt2.load(gpt).state_dict()
    first, part, _, index = in_parts(gpt, kind)
    assert all(tensor.equal(expected[name]) for name, tensor in gpt2.load(gpt).state_dict().items())

    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=f"{part.name} is (damaged|refused)"):
        gpt2.load(gpt)
    part.write_bytes(first.read_bytes())
    with pytest.raises(ValueError, match=f"{part.name} is damaged: it has no h.* says is in it"):
        gpt2.load(gpt)
    part.unlink()
    with pytest.raises(ValueError, match=f"{index.name} is there, and {part.name}, .* fetch it too"):
        gpt2.load(gpt)
    index.unlink()
    with pytest.raises(FileNotFoundError, match=f"{first.name} is a part .* and {index.name}"):
        gpt2.load(gpt)


@pytest.mark.parametrize(("content", "says"), TABLES["bad_index"])
def test_an_index_that_is_none_or_leads_elsewhere_is_refused(gpt, content, says):
    *_, index = in_parts(gpt, "safetensors")
    index.write_text(content)
    with pytest.raises(ValueError, match=f"model.safetensors.index.json is damaged{says}"):
        gpt2.load(gpt)
