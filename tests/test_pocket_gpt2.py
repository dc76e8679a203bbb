"""The two pocket GPT-2s that are part of the course: small, whole, in the Hub's format, and what their records say."""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path
from typing import NamedTuple

import needs
import pytest
import torch
import torch.nn.functional as F

from helpers.data import store
from helpers.data.datasets import gpt2_files
from helpers.data.model_files import POCKET, POCKET_ENGLISH, POCKETS
from helpers.data.recorded import recorded
from helpers.data.sources import checksum, stdlib_sources
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.generator import bits_per_byte
from helpers.training import austen, pocket_gpt2, pocket_gpt2_figures
from helpers.training.common import Record

pytestmark = [
    pytest.mark.usefixtures("on_the_cpu"),
    pytest.mark.skipif(
        not POCKET.is_dir() and not os.environ.get("CI"),
        reason="no pocket GPT-2 yet: python -m helpers.training.pocket_gpt2",
    ),
]
needs_transformers = needs.package("transformers")
RECORDS = {"pocket_python": "pocket_gpt2", "pocket_english": "pocket_austen"}
TEXT = "class Naïve(Base):\n    def __init__(self, name=None):\n        self.name = name or '😀'\n\n\n  if  not x :pass"
each_model = pytest.mark.parametrize("pocket", RECORDS, indirect=True)


class Pocket(NamedTuple):
    """A pocket model and what belongs to it."""

    name: str
    folder: Path
    model: gpt2.GPT2
    tokenizer: Tokenizer
    run: dict


@pytest.fixture(scope="module")
def pocket(request):
    name = getattr(request, "param", "pocket_python")
    folder = gpt2_files(name).folder
    return Pocket(name, folder, gpt2.load(folder), Tokenizer.from_folder(folder), recorded(RECORDS[name]))


@pytest.fixture(scope="module")
def held_out(pocket):
    """(what is held out: modules of this Python, or chapters of the novels; their ids)"""
    python = pocket.name == "pocket_python"
    texts = (pocket_gpt2.learned_and_held_out(stdlib_sources()) if python else chapters())[1]
    return texts, pocket_gpt2.as_ids(texts, pocket.tokenizer)


def chapters():
    """(chapters learned from, chapters held out)"""
    try:
        return austen.learned_and_held_out(store.folder() / "austen")
    except FileNotFoundError:
        pytest.skip("the novels are not in $COURSE_DATA/austen")


##### The folder


def test_it_is_the_default_and_says_so(capsys):
    assert gpt2_files("gpt2-xl", places="embedded").folder == POCKET
    assert capsys.readouterr().out == "GPT-2: the pocket model, trained for this course.\n"


def test_each_has_a_name_and_says_what_it_has_read(capsys):
    assert [gpt2_files(name).folder for name in POCKETS] == [POCKET, POCKET_ENGLISH]
    assert capsys.readouterr().out.splitlines() == [
        "GPT-2: a pocket model, trained for this course on Python's standard library.",
        "GPT-2: a pocket model, trained for this course on six novels by Jane Austen.",
    ]
    with pytest.raises(ValueError, match="did you mean 'pocket_english'"):
        gpt2_files("pocket_englisch")


@each_model
def test_it_fits_in_a_pocket(pocket):
    files = {path.name for path in pocket.folder.iterdir()}
    assert sum(path.stat().st_size for path in pocket.folder.iterdir()) < 8_000_000
    assert {"config.json", "model.safetensors", "vocab.json", "merges.txt"} <= files
    assert sum(p.numel() for p in pocket.model.parameters()) == pocket.run["settings"]["parameters"]
    assert len(pocket.tokenizer) == pocket.model.config.n
    assert next(pocket.model.parameters()).dtype == torch.float32  # kept in 16 bits, used in 32


@each_model
@needs_transformers
def test_transformers_loads_the_same_folder_with_the_same_ids_and_logits(pocket):
    import transformers

    model, tokenizer = pocket.model, pocket.tokenizer
    theirs = transformers.AutoModelForCausalLM.from_pretrained(pocket.folder, dtype=torch.float32).eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(pocket.folder)
    ids = tokenizer.encode(TEXT)
    assert their_tokenizer.encode(TEXT) == ids and their_tokenizer.decode(ids) == TEXT
    with torch.no_grad():
        torch.testing.assert_close(model(torch.tensor([ids])), theirs(torch.tensor([ids])).logits, rtol=0, atol=1e-4)
    prompt = torch.tensor([ids[:10]])
    how = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": 64, "do_sample": False}
    how |= {"eos_token_id": None, "pad_token_id": 0}
    expected = theirs.generate(prompt, **how)[:, 10:]
    assert gpt2.generate_cached(model, prompt, 64, temperature=0).equal(expected)


##### What its record says of it


def test_the_record_reaches_what_was_aimed_at():
    run = recorded("pocket_gpt2")
    result, found = run["result"], run["result"]["heads"]
    assert result["held_out_bits_per_byte"] < 1.25
    assert found["previous_token"]["weight"] > 0.5
    assert all(found[f"induction_{where}"]["times_chance"] > 10 for where in ("random", "real", "in_text"))
    assert result["parsed"]["pairs"] < result["parsed"]["model"] < result["parsed"]["held_out"]
    assert run["processor_seconds"] < 2 * 3600


@pytest.mark.deep
@each_model
def test_it_is_as_good_on_what_is_held_out_as_its_record_says(pocket, held_out):
    """Other Pythons hold out other modules: they should be about as hard."""
    model, run, (texts, ids) = pocket.model, pocket.run, held_out
    english = pocket.name == "pocket_english"
    same = english or checksum(stdlib_sources()) == run["data"]["sha256"]
    if same:
        unit = "chapters" if english else "modules"
        assert (len(ids), len(texts)) == (run["data"]["held_out_tokens"], run["data"][f"held_out_{unit}"])
    nats = math.log(gpt2.perplexity(model, ids, stride=model.t_max // 2))
    bits = bits_per_byte(nats * (len(ids) - 1) / len("".join(texts).encode()))
    assert bits == pytest.approx(run["result"]["held_out_bits_per_byte"], abs=0.005 if same else 0.25)


@each_model
def test_its_heads_are_where_its_record_says(pocket, held_out):
    model, found = pocket.model, pocket.run["result"]["heads"]
    rows = held_out[1][: 16 * 256].view(16, 256)
    looked = model.attention_weights(rows).mean(dim=1)
    assert divmod(int(gpt2.previous_score(looked).argmax()), model.config.h) == place(found["previous_token"])
    once = torch.randint(model.config.n - 1, (16, 48), generator=torch.Generator().manual_seed(11))
    score = gpt2.induction_score(model.attention_weights(pocket_gpt2_figures.twice(once)), 48).mean(dim=1)
    chance = gpt2.induction_score(gpt2.even_weights(96), 48).item()
    assert score[place(found["induction_random"])] > 0.9 * score.max() > 10 * chance


def test_without_its_induction_heads_it_no_longer_copies(pocket):
    model, told = pocket.model, pocket.run["result"]["heads"]["losses"]
    once = torch.randint(model.config.n - 1, (16, 48), generator=torch.Generator().manual_seed(12))
    nats = {}
    for name, heads in told["heads"].items():
        with gpt2.switched_off(model, *heads):
            nats[name] = pocket_gpt2_figures.second_time_nats(model, once)
    whole = nats["all heads on"]
    assert whole < 0.2 * pocket_gpt2_figures.first_time_nats(model, once)
    assert nats["control head off"] < whole + 0.2
    assert nats["all heads above 10 times chance off"] > whole + 4
    assert nats["previous-token head off"] > whole + 4


@each_model
def test_its_samples_are_made_of_words_of_what_it_has_read(pocket):
    samples = pocket.run["samples"]
    read = stdlib_sources().values() if pocket.name == "pocket_python" else chapters()[0]
    known = set(" ".join(read).split())
    written = [word for sample in samples for word in sample["text"].split()[1:-1]]  # whole words: ends may be cut
    assert len(samples) >= 5 and sum(word in known for word in written) > 0.6 * len(written)


def test_the_english_samples_are_not_copied_from_the_novels():
    novels = " " + " ".join(" ".join(chapters()[0]).split()) + " "
    for sample in recorded("pocket_austen")["samples"]:
        words = sample["text"].split()[1:-1]
        runs = [" ".join(words[k : k + 9]) for k in range(len(words) - 8)]
        assert not [run for run in runs if f" {run} " in novels]


def place(score):
    return score["block"], score["head"]


##### What is learned from


def test_what_is_held_out_is_not_learned_from():
    sources = stdlib_sources()
    learned, held = pocket_gpt2.learned_and_held_out(sources)
    assert len(learned) + len(held) == len(sources)
    assert not {text for text in held if len(text) > 200} & set(learned)


def test_modules_stand_in_a_row_between_ends_of_text():
    tokenizer = Tokenizer.learn("a = b\n" * 3, 260)
    ids, end = pocket_gpt2.as_ids(["a = b\n", "<|endoftext|>"], tokenizer), tokenizer.end_of_text
    assert (ids == end).nonzero()[:, 0].tolist() == [0, len(tokenizer.encode("a = b\n")) + 1, len(ids) - 1]


@pytest.mark.parametrize("seed", range(40))
def test_an_echo_can_be_predicted_where_it_comes_again_and_nowhere_else(seed):
    generator = torch.Generator().manual_seed(seed)
    row = torch.arange(1000, 1257)
    said, known = pocket_gpt2.with_echo(row, 1000, generator)
    assert said.shape == known.shape == row.shape
    if known.all():  # the row's own text: a stretch of it comes again
        changed = (said != row).nonzero()[:, 0]
        assert 16 <= len(changed) <= 112 and changed.diff().eq(1).all()
        assert said[changed].diff().eq(1).all() and said[changed[0]] < row[changed[0]] - len(changed) + 1
        return
    assert said.max() < 999 and not known[0]  # never the end-of-text token
    echo = known.nonzero()[:, 0].tolist()
    assert all(any(said[j] == said[i] for j in range(i)) for i in echo)


def test_a_batch_belongs_to_its_step():
    train = torch.arange(5000) % 700
    first, again = (pocket_gpt2.windows(train, 2048, 7, 100) for _ in range(2))
    assert all(a.equal(b) for a, b in zip(first, again, strict=True))
    inputs, targets = first
    assert inputs.shape == targets.shape == (pocket_gpt2.BATCH, 256)
    shifted = targets[:, :-1] == inputs[:, 1:]
    assert (shifted | (targets[:, :-1] == pocket_gpt2.UNPREDICTABLE)).all() and not shifted.all()


def test_echoes_grow_fewer():
    shares = [pocket_gpt2.echo_share(step, 360) for step in range(361)]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[-1]) == (pocket_gpt2.ECHO_LINE[0][1], pytest.approx(pocket_gpt2.ECHO_LINE[-1][1]))


def test_the_rate_rises_and_then_goes_down_along_its_line():
    rates = [pocket_gpt2.rate_share(step, 3600, 100) for step in range(3601)]
    assert rates[:100] == sorted(rates[:100]) and rates[100:] == sorted(rates[100:], reverse=True)
    assert rates[1600] == pytest.approx(0.795) and rates[2600] == pytest.approx(0.795 / 2)
    assert rates[-1] == 0 and max(rates) < 1


##### How it is trained


@pytest.fixture
def small(monkeypatch):
    """A model small enough to train here, and batches for it."""
    monkeypatch.setattr(pocket_gpt2, "MODEL", {"t_max": 16, "e": 16, "h": 2, "depth": 2})
    monkeypatch.setattr(pocket_gpt2, "KEEP_EVERY", 3)
    monkeypatch.setattr(pocket_gpt2, "precision", contextlib.nullcontext)
    data = torch.randint(40, (500,), generator=torch.Generator().manual_seed(0))

    def fresh():
        torch.manual_seed(0)
        return pocket_gpt2.fresh_model(gpt2.Config(n=41, **pocket_gpt2.MODEL))

    def batch(step):
        inputs, targets = pocket_gpt2.sample_batch(data, 6, 16, torch.Generator().manual_seed(step))
        return inputs, targets.masked_fill(targets == step, pocket_gpt2.UNPREDICTABLE)

    return fresh, batch


def test_two_halves_have_the_gradients_of_the_whole(small):
    fresh, batch = small
    model, (inputs, targets) = fresh(), batch(3)
    assert (targets == pocket_gpt2.UNPREDICTABLE).any()
    whole = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=pocket_gpt2.UNPREDICTABLE)
    expected = torch.autograd.grad(whole, list(model.parameters()))
    with pocket_gpt2.ThreadPoolExecutor(2) as pool:
        loss = pocket_gpt2.gradients(model, inputs, targets, pool)
    torch.testing.assert_close(loss, whole.detach(), rtol=1e-5, atol=0)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(small, tmp_path):
    fresh, batch = small

    def trained(path, stop_at=None):
        def until(step):
            if step == stop_at:
                raise KeyboardInterrupt
            return batch(step)

        model, record = fresh(), Record("pocket_gpt2", {}, {})
        checkpoint = pocket_gpt2.TrainingCheckpoint(path, {"of": "this test"})
        with contextlib.suppress(KeyboardInterrupt):
            pocket_gpt2.train(model, until, 8, record, checkpoint, lambda: {"nothing": 0.0})
        return model.state_dict(), record

    threads = torch.get_num_threads()
    at_once, one = trained(tmp_path / "one")
    trained(tmp_path / "two", stop_at=5)
    in_two, two = trained(tmp_path / "two")
    assert all(torch.equal(at_once[name], in_two[name]) for name in at_once)
    assert [{**p, "seconds": 0} for p in one.curve] == [{**p, "seconds": 0} for p in two.curve]
    assert one.curve[-1]["step"] == 8 and one.curve[-1]["tokens"] == 8 * pocket_gpt2.BATCH * 16
    assert torch.get_num_threads() == threads


def test_another_training_s_checkpoint_is_not_gone_on_with(small, tmp_path):
    fresh, batch = small

    def train(about):
        checkpoint = pocket_gpt2.TrainingCheckpoint(tmp_path / "kept", {"of": about})
        pocket_gpt2.train(fresh(), batch, 2, Record("pocket_gpt2", {}, {}), checkpoint, dict)

    train("one")
    with pytest.raises(ValueError, match="belongs to a training with other data or settings"):
        train("another")


##### How it is measured


def test_a_table_of_pairs_counts_who_follows_whom():
    pairs = pocket_gpt2_figures.BigramTable(torch.tensor([0, 1, 0, 1, 0, 2]), 4, believed=1.0)
    torch.testing.assert_close(pairs.chances.sum(dim=-1), torch.ones(4))
    assert pairs.chances[0].argmax() == 1 and pairs.chances[1, 0] > 0.7 and (pairs.chances > 0).all()
    drawn = pairs.generate(torch.tensor([[0], [1]]), 5, torch.Generator().manual_seed(0))
    assert drawn.shape == (2, 5) and drawn.max() < 4


@pytest.mark.parametrize(
    "text, function, accepted",
    [
        ("def f(x):\n    return x\n\n\nclass", "def f(x):\n    return x\n\n\n", True),
        ("def f(\n    x,\n):\n    return x\nf(3)\n", "def f(\n    x,\n):\n    return x\n", True),
        ("def f(x):\n    return x\n# and\n", "def f(x):\n    return x\n", True),
        ("def f(x):\n    return x\n    retur", "def f(x):\n    return x\n", True),
        ("def f(x):\n    if x:\n    retur", "def f(x):\n    if x:\n", False),
        ("def f(x)\n    return x\n", "def f(x)\n    return x\n", False),
        ("def f(x", "def f(x\n", False),
    ],
)
def test_a_function_ends_where_something_stands_at_the_margin(text, function, accepted):
    assert pocket_gpt2_figures.first_function(text) == function
    assert pocket_gpt2_figures.share_that_parses([text]) == accepted


def test_repeats_are_found_where_two_tokens_stood_together_before():
    #                                   0  1  2  3  4  5  6  7
    assert pocket_gpt2_figures.repeats(torch.tensor([5, 6, 7, 5, 6, 8, 5, 6])) == ([4, 7], [2, 5])
    assert pocket_gpt2_figures.repeats(torch.tensor([1, 2, 3])) == ([], [])
    rows = torch.tensor([[5, 6, 7, 5, 6, 8, 5, 6], [1, 2, 3, 4, 1, 2, 9, 9]])
    weights = torch.zeros(3, 2, 4, 8, 8)
    weights[1, 0, 2, 4, 2] = weights[1, 0, 2, 7, 5] = weights[1, 1, 2, 5, 2] = 0.9
    score = pocket_gpt2_figures.echo_score(weights, rows)
    assert score.shape == (3, 4) and pocket_gpt2_figures.strongest(score) == (1, 2)
    assert score.max() == pytest.approx(0.9)


def test_the_command_trains_and_writes_what_it_says(tmp_path, monkeypatch):
    """On a few modules, for three steps."""
    few = ("abc.py", "argparse.py", "copy.py", "glob.py", "shutil.py", "textwrap.py")
    monkeypatch.setattr(pocket_gpt2, "stdlib_sources", lambda: {name: stdlib_sources()[name] for name in few})
    monkeypatch.setattr(pocket_gpt2, "SAMPLES", 4)
    monkeypatch.setattr(pocket_gpt2, "VOCABULARY", 300)
    monkeypatch.setattr(pocket_gpt2, "MODEL", {"t_max": 256, "e": 16, "h": 2, "depth": 2})
    monkeypatch.setattr("sys.argv", ["pocket_gpt2", "--steps", "3", "--to", str(tmp_path)])
    pocket_gpt2.main()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pocket_gpt2", "pocket_gpt2.json"]
    folder = tmp_path / "pocket_gpt2"
    model, tokenizer = gpt2.load(folder), Tokenizer.from_folder(folder)
    assert len(tokenizer) == model.config.n == 300
    written = json.loads((tmp_path / "pocket_gpt2.json").read_text(encoding="utf-8"))
    kept = recorded("pocket_gpt2")
    assert written.keys() == kept.keys() and written["result"].keys() == kept["result"].keys() - {"note"}
    assert written["data"]["held_out_modules"] == 3 and written["curve"][-1]["step"] == 3


def test_it_can_be_tried_and_nothing_is_written(tmp_path, monkeypatch):
    few = ("abc.py", "copy.py")
    monkeypatch.setattr(pocket_gpt2, "stdlib_sources", lambda: {name: stdlib_sources()[name] for name in few})
    monkeypatch.setattr(pocket_gpt2, "VOCABULARY", 280)
    monkeypatch.setattr(pocket_gpt2, "MODEL", {"t_max": 256, "e": 16, "h": 2, "depth": 2})
    monkeypatch.setattr("sys.argv", ["pocket_gpt2", "--try", "--to", str(tmp_path)])
    pocket_gpt2.main()
    assert not list(tmp_path.iterdir())
