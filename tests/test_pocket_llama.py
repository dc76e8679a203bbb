"""The pocket Llama that is part of the course: small, whole, in the Hub's format, and what its record says."""

from __future__ import annotations

import json

import needs
import pytest
import torch

from helpers.data import datasets, model_files
from helpers.data.model_files import POCKET_LLAMA, SMOLLM2_CONFIG
from helpers.data.recorded import recorded
from helpers.parts import llama
from helpers.parts.bpe import Tokenizer
from helpers.training import pocket_llama

pytestmark = pytest.mark.usefixtures("on_the_cpu")
TEXT = '"My dear Mr. Bennet," said his lady to him one day, "have you heard that Netherfield Park is let at last?"'


@pytest.fixture(scope="module")
def pocket():
    return llama.load(POCKET_LLAMA), Tokenizer.from_folder(POCKET_LLAMA)


def test_it_fits_in_a_pocket_and_is_what_its_record_says(pocket):
    model, tokenizer = pocket
    run = recorded("pocket_llama")
    assert sum(path.stat().st_size for path in POCKET_LLAMA.iterdir()) < 3_000_000
    assert sum(p.numel() for p in model.parameters()) == run["settings"]["parameters"]
    assert len(tokenizer) == model.config.n == run["settings"]["n"]
    assert model.config == llama.LlamaConfig(n=len(tokenizer), **pocket_llama.MODEL)
    assert run["result"]["held_out_bits_per_byte"] < run["curve"][0]["held_out_bits"]


@needs.package("transformers")
def test_transformers_computes_the_same_from_the_same_folder(pocket):
    import transformers

    model, tokenizer = pocket
    theirs = transformers.AutoModelForCausalLM.from_pretrained(POCKET_LLAMA, dtype=torch.float32).eval()
    ids = torch.tensor([tokenizer.encode(TEXT)])
    with torch.no_grad():
        torch.testing.assert_close(model(ids), theirs(ids).logits, rtol=0, atol=1e-4)


def test_what_is_saved_is_loaded(pocket, tmp_path):
    model, tokenizer = pocket
    llama.save(model, tmp_path)
    again = llama.load(tmp_path)
    assert again.config == model.config
    assert all(torch.equal(mine, other) for mine, other in zip(model.parameters(), again.parameters(), strict=True))


def test_frequencies_take_the_place_of_theta_and_give_it_back(pocket):
    model, tokenizer = pocket
    ids = torch.tensor([tokenizer.encode(TEXT)])
    trained = llama.rotary_frequencies(model.config.e // model.config.h, model.config.theta)
    with torch.no_grad():
        before = model(ids)
        llama.read_with(model, trained)
        torch.testing.assert_close(model(ids), before, rtol=0, atol=1e-4)
        llama.read_with(model, trained / 4)
        assert not torch.allclose(model(ids), before, atol=1e-2)
        llama.read_with(model, None)
        assert torch.equal(model(ids), before)


##### SmolLM2, and what is taken where there is none


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with files of SmolLM2's names and settings, and next to nothing in them."""
    from safetensors.torch import save_file

    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    where = tmp_path / "smollm2"
    where.mkdir()
    (where / "config.json").write_text(json.dumps(SMOLLM2_CONFIG))
    (where / "vocab.json").write_text("{}")
    (where / "merges.txt").write_text("#version: 0.2\n")
    save_file({"a": torch.zeros(1)}, where / "model.safetensors")
    return where


def test_the_published_llama_is_taken_from_the_folder(folder):
    said: list[str] = []
    files = datasets.llama_files(places="folder", say=said.append)
    assert files.published and files.folder == folder and "SmolLM2-135M" in said[0]


def test_another_models_settings_are_no_smollm2_and_the_pocket_llama_is_taken(folder):
    (folder / "config.json").write_text(json.dumps(SMOLLM2_CONFIG | {"hidden_size": 960}))
    said: list[str] = []
    files = datasets.llama_files(places=["folder", "embedded"], say=said.append)
    assert not files.published and files.folder == POCKET_LLAMA
    assert said == [
        "Llama: the pocket model, trained for this course, because smollm2/config.json is of another model"
        " (hidden_size = 960, not 576)."
    ]


def test_a_damaged_file_is_fetched_again(folder):
    offered = type("File", (), {"path": "model.safetensors", "size": (folder / "model.safetensors").stat().st_size})
    assert not model_files.SmolLM2().is_to_go(folder / "model.safetensors", offered)
    (folder / "model.safetensors").write_bytes(b"half")
    assert model_files.SmolLM2().is_to_go(folder / "model.safetensors", offered)


def test_smollm2s_settings_are_those_of_a_llama_that_can_be_built(tmp_path):
    published = SMOLLM2_CONFIG | {"rms_norm_eps": 1e-5, "max_position_embeddings": 8192, "rope_scaling": None}
    published |= {"head_dim": 64, "hidden_act": "silu", "attention_bias": False, "rope_interleaved": False}
    (tmp_path / "config.json").write_text(json.dumps(published))
    config = llama.LlamaConfig.from_json(tmp_path / "config.json")
    assert (config.groups, config.theta, config.tied, config.t_max) == (3, 100000, True, 8192)
    with torch.device("meta"):
        assert sum(p.numel() for p in llama.Llama(config).parameters()) == 134_515_008
