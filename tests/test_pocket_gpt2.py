"""The pocket GPT-2 that is part of the course: small, whole, in the Hub's format, and what its record says."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import subprocess
import sys

import pytest
import torch

from helpers.authoring.lesson_source import ROOT
from helpers.data.datasets import POCKET
from helpers.data.recorded import recorded
from helpers.data.text import manual
from helpers.parts import gpt2
from helpers.pretrained import from_pretrained
from helpers.training import pocket_gpt2

pytestmark = pytest.mark.skipif(
    not POCKET.is_dir() and not os.environ.get("CI"),
    reason="no pocket GPT-2 yet: python -m helpers.training.pocket_gpt2",
)
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None and not os.environ.get("CI"),
    reason="the package transformers, of the test extra, is not installed: nothing to compare with",
)


@pytest.fixture(scope="module")
def pocket():
    return from_pretrained(places="embedded", say=lambda line: None)


def test_it_is_the_default_and_says_so(capsys):
    from_pretrained("gpt2-xl", places="embedded")
    assert capsys.readouterr().out == "GPT-2: the pocket model, trained for this course, as asked.\n"


def test_it_fits_in_a_pocket(pocket):
    assert sum(path.stat().st_size for path in POCKET.iterdir()) < 5_000_000
    assert {"config.json", "model.safetensors", "vocab.json", "merges.txt"} <= {path.name for path in POCKET.iterdir()}
    assert sum(p.numel() for p in pocket[0].parameters()) == recorded("pocket_gpt2")["settings"]["parameters"]
    assert len(pocket[1]) == pocket[0].config.n


@needs_transformers
def test_transformers_loads_the_same_folder_with_the_same_ids_and_logits(pocket):
    import transformers

    model, tokenizer = pocket
    theirs = transformers.AutoModelForCausalLM.from_pretrained(POCKET).eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(POCKET)
    text = (
        "An exception is raised when the object’s __init__() method is called, naïvely 😀.\n\nIf not, nothing  happens."
    )
    ids = tokenizer.encode(text)
    assert their_tokenizer.encode(text) == ids and their_tokenizer.decode(ids) == text
    with torch.no_grad():
        torch.testing.assert_close(model(torch.tensor([ids])), theirs(torch.tensor([ids])).logits, rtol=0, atol=1e-4)
    prompt = torch.tensor([ids[:10]])
    how = {
        "attention_mask": torch.ones_like(prompt),
        "max_new_tokens": 64,
        "do_sample": False,
        "eos_token_id": None,
        "pad_token_id": 0,
    }
    expected = theirs.generate(prompt, **how)[:, 10:]
    assert gpt2.generate_cached(model, prompt, 64, temperature=0).equal(expected)


def test_it_is_as_good_as_its_record_says(pocket):
    run = recorded("pocket_gpt2")
    if hashlib.sha256(manual().encode()).hexdigest() != run["data"]["sha256"]:
        pytest.skip("this Python's manual is not the text of the recorded run")
    _, held_out = pocket_gpt2.passages(manual())
    ids = pocket_gpt2.as_ids(held_out, pocket[1])
    assert len(ids) == run["data"]["held_out_tokens"]
    nats = math.log(gpt2.perplexity(pocket[0], ids, stride=pocket[0].t_max // 2))
    assert nats == pytest.approx(run["result"]["held_out_nats"], abs=0.01)


def test_its_samples_are_made_of_words_of_the_manual():
    samples = recorded("pocket_gpt2")["samples"]
    known = set(manual().lower().split())
    written = [
        word for sample in samples for word in sample["text"].lower().split()[1:-1]
    ]  # whole words: the ends may be cut
    assert len(samples) >= 5 and sum(word in known for word in written) > 0.85 * len(written)


def test_what_is_held_out_is_not_learned_from():
    train, held_out = pocket_gpt2.passages(manual())
    assert "".join(sorted(train + held_out)) == "".join(sorted({*train, *held_out}))
    assert 0.03 < sum(map(len, held_out)) / len(manual()) < 0.07
    paragraphs = {paragraph for run in train for paragraph in run.split("\n")}
    assert not any(paragraph in paragraphs for run in held_out for paragraph in run.split("\n"))


@pytest.mark.slow
def test_the_command_trains_and_writes_what_it_says(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "helpers.training.pocket_gpt2", "--steps", "3", "--to", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pocket_gpt2", "pocket_gpt2.json"]
    model, tokenizer = from_pretrained(str(tmp_path / "pocket_gpt2"))
    assert len(tokenizer) == model.config.n == pocket_gpt2.VOCABULARY
