"""Lesson 16: its stored outputs say what its prose says, and its long run works."""

import re
from itertools import pairwise

import nbformat
import numpy as np
import pytest
import torch
from lesson_harness import printed

from helpers.authoring.build.lesson_source import sources
from helpers.data.recorded import recorded
from helpers.data.toy import digits
from helpers.exercises import load_lesson
from helpers.exercises.aspects import Fault
from helpers.exercises.attention_inputs import attention_inputs
from helpers.exercises.draw import Draw
from helpers.exercises.operations import LONG, Operations, no_square, whole_part_at_once
from helpers.lessons.l16_sparse_attention.exercises import WHOLE_CHUNK, gated
from helpers.parts import linear_attention
from helpers.training import patterns

SOURCE = sources(["16_sparse_attention"])[0]
LESSON = load_lesson("16_sparse_attention")
pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_a_square_is_seen_where_it_is_made_and_not_where_it_is_only_viewed():
    with Operations() as watched:
        torch.zeros(10, 1).expand(10, 100)
    assert watched.largest == 10
    with Operations() as watched:
        torch.zeros(10, 1) + torch.zeros(100)
    assert watched.largest == 1000


def test_a_square_of_numpy_is_no_way_around_the_measure():
    def in_numpy(q, k, v, w):
        return torch.from_numpy((q.numpy() @ k.mT.numpy()) @ v.numpy())

    with pytest.raises(Fault, match="out of PyTorch"):
        no_square(lambda w: attention_inputs(LONG, w, b=1, h=1), (6, 12), "w")(in_numpy, Draw("square"))


def test_a_loop_over_positions_uses_no_chunks():
    def loop(q, k, v, log_g, size):
        return linear_attention.recurrent_attention(q, k, v, log_g)

    with pytest.raises(Fault, match="Is there a loop over positions"):
        whole_part_at_once(lambda size: gated(192, size, b=1, h=1), WHOLE_CHUNK)(loop, Draw("chunks"))


def test_the_cards_name_the_length_at_which_the_check_measures():
    assert LONG == 256


def test_the_digits_are_of_twenty_faces_of_which_three_are_held_out():
    train, held_out = digits.printed_digits(12, sizes=2)
    assert train.shape == (17 * 100, 12, 12) and held_out.shape == (3 * 100, 12, 12)
    assert len(set(digits.FACES)) == 20 and set(digits.HELD_OUT) < set(digits.FACES)
    for pictures in (train, held_out):
        assert pictures.dtype == np.float32 and pictures.min() >= 0 and pictures.max() <= 1
        ink = pictures.sum(axis=(1, 2))
        assert ink.min() > 3 and ink.max() < 80
        assert (pictures[:, 0].max(axis=1) * pictures[:, -1].max(axis=1)).max() == 0  # nothing is higher than it fits
    seen = {picture.tobytes() for picture in train}
    assert sum(picture.tobytes() in seen for picture in held_out) == 0


def test_both_halves_of_the_strided_pattern_connect_everything():
    text = printed(SOURCE, "drawn = {")
    found = dict(re.findall(r"^ *(.+): two layers connect +([\d,]+) of 1,176", text, flags=re.M))
    found = {name: int(count.replace(",", "")) for name, count in found.items()}
    assert found["strided, both halves"] == 48 * 49 // 2
    assert found["window, w = 7"] == 13 * 48 - 12 * 13 // 2


def test_a_mask_saves_nothing():
    share, times = re.search(r"([\d.]+)% .* takes ([\d.]+) times", printed(SOURCE, "rounds = [")).groups()
    assert 2.5 < float(share) < 3.5
    assert float(times) >= 0.95
    assert LESSON.prediction("mask_saves").truth == "A"


def test_the_band_computes_what_the_mask_does_for_less():
    text = printed(SOURCE, '"mask": lambda')
    assert "the same output: True" in text
    mask, band = [[float(x) for x in row] for row in re.findall(r": +([\d.]+) ms, +([\d.]+) MB", text)]
    assert mask[0] > 8 * band[0] and mask[1] > 8 * band[1]


def test_chunks_are_cheaper_than_the_loop_and_all_pairs():
    found = re.findall(r"^ *(.+): +([\d.]+) ms, +([\d.]+) MB", printed(SOURCE, '"state, a loop"'), re.M)
    (pair_ms, pair_kept), (loop_ms, _), (chunk_ms, chunk_kept) = [[float(x) for x in row[1:]] for row in found]
    assert chunk_ms < pair_ms / 3 and chunk_kept < pair_kept / 10 and loop_ms > 3 * chunk_ms


def test_a_wider_state_holds_more_values():
    shares = [float(share) for share in re.findall(r"right for (\d\.\d\d) of 32", printed(SOURCE, "def share_read"))]
    small, middle, large = shares
    assert 0.28 < small < 0.38 and small < middle < large and 0.87 < large < 0.95


def test_the_delta_rule_is_ahead_of_the_gate_and_of_its_keys_alone():
    rows = printed(SOURCE, 'memories["state, delta rule"]').splitlines()[-3:]
    unit, with_unit_keys, delta = ([float(x) for x in re.findall(r"\d\.\d\d", row)] for row in rows)
    assert len(unit) == len(delta) == 3 and min(delta) > 0.98 and max(unit) < 0.92
    gate = re.search(r"state, gate: (.+)$", printed(SOURCE, "found[kind, seed][which]"), re.M)[1]
    assert max(unit) < float(gate.split(",")[0]) < min(delta)
    assert len(with_unit_keys) == 3 and {0.92, 0.93} >= set(with_unit_keys), (
        "the keys' length does nothing for the gate"
    )


def test_the_delta_rule_in_three_lines_is_its_recurrence():
    q, k, v = torch.randn(3, 2, 1, 20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    k = torch.nn.functional.normalize(k, dim=-1)
    state, outputs = torch.zeros(2, 1, 8, 8, dtype=torch.float64), []
    for i in range(20):
        key = k[:, :, i : i + 1]
        state = state + key.mT @ (v[:, :, i : i + 1] - key @ state)
        outputs.append(q[:, :, i : i + 1] @ state)
    text = SOURCE.script.read_text(encoding="utf-8")
    there = {"torch": torch, "F": torch.nn.functional}
    exec(text[text.index("def delta_attention") : text.index("# %%", text.index("def delta_attention"))], there)
    torch.testing.assert_close(there["delta_attention"](q, k, v), torch.cat(outputs, dim=2))


def test_what_each_model_forgets():
    text = printed(SOURCE, "found[kind, seed][which]")
    found = {
        kind: [float(share) for share in re.findall(r"\d\.\d\d", shares)]
        for kind, shares in re.findall(r"^ *(.+): (.+)$", text, flags=re.M)
    }
    by_distance = {kind: shares[3:5] for kind, shares in found.items()}
    old = {kind: shares[5] for kind, shares in found.items()}
    assert old["state, no gate"] > 0.97 > old["state, gate"] > 0.8 and old["window"] < 0.2, "wrong, but an old value"
    found = {kind: shares[:3] for kind, shares in found.items()}
    assert all(len(shares) == 3 for shares in found.values())
    order = ("window", "state, no gate", "state, gate", "full")
    for worse, better in pairwise(order):
        assert max(found[worse]) < min(found[better]), f"{better} is ahead of {worse} with every seed"
    assert LESSON.prediction("same_memory").truth == "B"
    assert min(by_distance["full"]) > 0.95
    near, far = by_distance["window"]
    assert near > 0.95 and far < 0.1 and far == min(row[1] for row in by_distance.values())
    near, far = by_distance["state, no gate"]
    assert near < far < 0.9
    near, far = by_distance["state, gate"]
    assert 0.8 < far < near


def test_a_window_and_a_state_keep_equally_many_numbers():
    text = SOURCE.script.read_text(encoding="utf-8")
    w = int(re.search(r'"window": lambda .* in_window\(q, k, v, (\d+)\)', text)[1])
    d = int(re.search(r"def __init__\(self, kind, d=(\d+)", text)[1])
    length = int(re.search(r"VARIABLES, VALUES, LENGTH = .*, (\d+)\n", text)[1])
    assert 2 * w * d == d * d == 1_024 and 2 * length * d == 4_096


def further(line):
    """What the one cell of *Measured further* printed whose source contains `line`."""
    cells = [cell for cell in nbformat.read(SOURCE.further, as_version=4).cells if line in cell.source]
    (cell,) = (cell for cell in cells if cell.cell_type == "code")
    return "".join(output.get("text", "") for output in cell.outputs)


def test_a_state_is_as_large_as_the_cache_of_64_positions():
    assert "16,384 times" in further("numbers per head")


def test_more_memory_gives_more_right_answers():
    rows = re.findall(r"(\d\.\d\d) +(\d\.\d\d) +(\d\.\d\d)$", further("class SmallMemory"), re.M)
    assert len(rows) == 3 and all(small < middle < large for small, middle, large in rows)


def test_twice_the_variables_need_a_state_that_is_twice_as_wide():
    rows = [re.findall(r"\d\.\d\d", row) for row in further("VARIABLES = 64").splitlines()[-3:]]
    full, narrow, wide = ([float(share) for share in row] for row in rows)
    assert len(full) == len(narrow) == len(wide) == 3
    assert max(narrow) < min(full) - 0.02 and min(wide) > 0.97 and min(full) > 0.96


def test_all_patterns_of_the_long_run_get_the_same_weights_and_batches(monkeypatch):
    monkeypatch.setattr(patterns, "MODEL", {"e": 8, "depth": 1})
    masks = patterns.patterns(4)
    assert set(masks) == {"full", "local", "strided", "fixed"} and {m.shape for m in masks.values()} == {(4, 16, 16)}
    first, second = (patterns.TimedTraining(masks[name], 4, seed=1, steps=5, n=3).model for name in ("full", "fixed"))
    for mine, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(mine, other)
    train, points = torch.randint(3, (40, 16)), []
    draw = patterns.some_of(train)
    last = patterns.run_seed(draw, train[:7], 4, 1, steps=4, n=3, look=lambda **point: points.append(point))
    assert [point["step"] for point in points] == [1, 2, 3, 4]
    assert last == {name: points[-1][f"{name}_bits"] for name in masks}
    assert points[-1]["strided_seconds"] > 0 and len(set(last.values())) == 4


def test_the_bits_of_a_run_are_told_by_pattern_and_in_the_mean():
    by_pattern = patterns.by_pattern({0: {"full": 1.0, "fixed": 2.0}, 1: {"full": 3.00004, "fixed": 2.5}})
    assert by_pattern == {"full": [1.0, 3.0], "fixed": [2.0, 2.5]}
    assert patterns.means(by_pattern) == {"full_bits_a_pixel": 2.0, "fixed_bits_a_pixel": 2.25}


def at_the_end(kind):
    """Recorded bits after the last step, by seed."""
    result = recorded("patterns")["result"]
    assert result[f"{kind}_bits_a_pixel"] == pytest.approx(np.mean(result["pictures"][kind]), abs=1e-4)
    return np.array(result["pictures"][kind])


def test_the_recorded_patterns_say_what_the_lesson_says_of_pictures():
    full, local, strided, fixed = (at_the_end(kind) for kind in ("full", "local", "strided", "fixed"))
    assert len(full) == 4 and all(strided < full) and all(full < fixed)
    assert sum(strided < local) == 3 and all(local < full)
    assert LESSON.prediction("fewer_pairs").truth == "C"
    curve = recorded("patterns")["curve"]
    last = [point for point in curve if point["step"] == recorded("patterns")["settings"]["steps"]]
    for point in last:
        seconds = [point[f"{kind}_seconds"] for kind in ("full", "local", "strided", "fixed")]
        assert max(seconds) < 1.05 * min(seconds), "a mask saves nothing"
        assert point["strided_bits"] == pytest.approx(strided[point["seed"]], abs=1e-4)


def test_the_recorded_curves_lie_as_the_figures_words_say():
    points = recorded("patterns")["curve"]
    mean = {
        (kind, step): np.mean([point[f"{kind}_bits"] for point in points if point["step"] == step])
        for kind in ("full", "local", "strided")
        for step in (100, 200, 300, 400, 500, 600)
    }
    ends = [mean[kind, 600] for kind in ("full", "local", "strided")]
    assert [round(bits, 2) for bits in ends] == [0.41, 0.37, 0.36]
    for step in (100, 200, 300, 400, 500, 600):
        assert mean["full", step] > max(mean["local", step], mean["strided", step])
