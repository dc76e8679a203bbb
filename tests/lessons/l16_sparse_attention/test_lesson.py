"""Lesson 16: its stored outputs say what its prose says, and its long run works."""

import re

import numpy as np
import pytest
import torch
from lesson_harness import numbers, printed

from helpers.authoring.build.lesson_source import sources
from helpers.data.recorded import recorded
from helpers.data.toy import digits
from helpers.exercises import load_lesson
from helpers.exercises.aspects import Fault
from helpers.exercises.draw import Draw
from helpers.lessons.l16_sparse_attention.exercises import Operations, no_square, whole_tiles
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
        no_square((6, 12), "w")(in_numpy, Draw("square"))


def test_attention_that_goes_row_by_row_uses_no_tiles():
    def row_by_row(q, k, v, tile):
        return torch.cat([torch.softmax(q[..., i : i + 1, :] @ k.mT, -1) @ v for i in range(q.shape[-2])], dim=-2)

    with pytest.raises(Fault, match="Is there a loop over rows"):
        whole_tiles(row_by_row, Draw("tiles"))


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


def test_time_and_memory_grow_with_the_square():
    time, memory = numbers(printed(SOURCE, "plain = {").splitlines()[-1])
    assert 1.5 < time < 3.5
    assert 1.9 < memory < 2.05


def test_the_root_of_t_is_a_good_stride_and_saves_nearly_all():
    text = printed(SOURCE, "math.isqrt(t)")
    assert re.findall(r"at l = (\d+)", text) == ["64", "64"] and "root of t is 64" in text
    assert all(float(share) < 6 for share in re.findall(r"([\d.]+)% of all", text))


def test_a_stack_of_windows_reaches_as_far_as_the_formula_says():
    for line in printed(SOURCE, "window of 5, depth").splitlines():
        reach, formula = re.search(r": +(\d+) positions back, .*= (\d+)$", line).groups()
        assert reach == formula


def test_the_order_of_the_fixed_halves_decides_what_is_connected():
    found = dict(re.findall(r"^ *(.+): +([\d,]+) of 32,896", printed(SOURCE, "orders = {"), flags=re.M))
    found = {name: int(count.replace(",", "")) for name, count in found.items()}
    assert found["fixed: blocks, then columns"] == 32_896
    assert found["strided: near, then stride"] == found["strided: stride, then near"] == 32_896
    assert found["fixed: columns, then blocks"] == 4_096  # one in eight
    assert LESSON.prediction("fixed_order").truth == "C"
    assert found["the stride twice"] == 2_176  # what one layer of it connects


def test_a_mask_saves_nothing():
    share, times = re.search(r"([\d.]+)% .* takes ([\d.]+) times", printed(SOURCE, "masked / without")).groups()
    assert 2.5 < float(share) < 3.5
    assert float(times) >= 0.95
    assert LESSON.prediction("mask_saves").truth == "A"


def test_the_band_saves_the_more_the_longer_the_text():
    lines = printed(SOURCE, 'band["seconds"].append').splitlines()
    times = [float(re.search(r"takes +([\d.]+) times", line)[1]) for line in lines[:-1]]
    less = [float(re.search(r"keeps +([\d.]+) times", line)[1]) for line in lines[:-1]]
    assert times[-1] > 10 > 4 > times[0] and times[-1] > times[-2] > times[-3]
    assert less[-1] > 8 and 1.8 < less[-1] / less[-2] < 2.2
    time, memory = numbers(lines[-1])
    assert time < 1.5 and 0.9 < memory < 1.1


def test_the_pattern_of_rows_and_columns_is_ahead_on_pictures():
    text = printed(SOURCE, "plots.curves({name: tuple(zip(*run.looks))")
    found = {name: float(bits) for name, bits in re.findall(r"(\w+): ([\d.]+) bits per pixel", text)}
    assert found["strided"] + 0.02 < min(found["full"], found["fixed"])
    assert LESSON.prediction("best_for_pictures").truth == "B"
    alone = float(re.search(r"([\d.]+) bits per pixel", printed(SOURCE, "train_pictures, held_out_pictures"))[1])
    assert max(found.values()) < alone


def test_tiles_make_little_and_keep_much():
    text = printed(SOURCE, "class Largest")
    rows = {
        name.strip(): numbers(rest) for name, rest in re.findall(r"^ *(mask|band|tiles of|SDPA)(.*)$", text, flags=re.M)
    }
    rows = {name: found[-3:] for name, found in rows.items()}  # ms, MB made, MB kept
    (mask_ms, mask_made, mask_kept), (tile_ms, tile_made, tile_kept) = rows["mask"], rows["tiles of"]
    sdpa_ms, sdpa_made, sdpa_kept = rows["SDPA"]
    assert mask_made > 20 * tile_made > 40 * sdpa_made
    assert tile_kept > mask_kept > 20 * sdpa_kept
    assert mask_ms > tile_ms > 2 * sdpa_ms
    assert rows["band"][0] < sdpa_ms
    assert float(re.search(r"at most (\S+)", text)[1]) < 1e-5


def test_flex_attention_is_the_band():
    text = printed(SOURCE, "flex_attention(q, k, v")
    assert "the same as the band: True" in text


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


def test_the_windows_of_text_lie_anywhere_in_it():
    text = torch.arange(40, dtype=torch.uint8)
    draw, generator = patterns.windows_of(text, 8), torch.Generator().manual_seed(0)
    rows = torch.cat([draw(generator) for _ in range(60)])
    assert rows.shape == (60 * patterns.BATCH, 8) and rows.dtype == torch.int64
    assert (rows.diff(dim=1) == 1).all()
    assert set(rows[:, 0].tolist()) == set(range(33))


def test_the_bits_of_a_run_are_told_by_pattern_and_in_the_mean():
    by_pattern = patterns.by_pattern({0: {"full": 1.0, "fixed": 2.0}, 1: {"full": 3.00004, "fixed": 2.5}})
    assert by_pattern == {"full": [1.0, 3.0], "fixed": [2.0, 2.5]}
    assert patterns.means(by_pattern, "byte") == {"full_bits_a_byte": 2.0, "fixed_bits_a_byte": 2.25}


def at_the_end(kind, of="pictures"):
    """Recorded bits after the last step, by seed."""
    result, unit = recorded("patterns")["result"], {"pictures": "pixel", "text": "byte"}[of]
    assert result[f"{kind}_bits_a_{unit}"] == pytest.approx(np.mean(result[of][kind]), abs=1e-4)
    return np.array(result[of][kind])


def test_the_recorded_patterns_say_what_the_lesson_says_of_pictures():
    full, local, strided, fixed = (at_the_end(kind) for kind in ("full", "local", "strided", "fixed"))
    assert len(full) == 4 and all(strided < full) and all(full < fixed)
    assert sum(strided < local) == 3 and all(local < full)
    curve = recorded("patterns")["curve"]
    last = [point for point in curve if point["step"] == recorded("patterns")["settings"]["steps"]]
    for point in last:
        seconds = [point[f"{kind}_seconds"] for kind in ("full", "local", "strided", "fixed")]
        assert max(seconds) < 1.05 * min(seconds), "a mask saves nothing"
        assert point["strided_bits"] == pytest.approx(strided[point["seed"]], abs=1e-4)


def test_the_recorded_patterns_say_what_the_lesson_says_of_text():
    full, local, strided, fixed = (at_the_end(kind, "text") for kind in ("full", "local", "strided", "fixed"))
    assert len(full) == 2 and all(fixed < local) and all(local < strided) and all(strided + 0.2 < full)


def test_the_recorded_curves_cross_where_the_figures_words_say():
    points = recorded("patterns")["curve"]
    mean = {
        (kind, step): np.mean([point[f"{kind}_bits"] for point in points if point["step"] == step])
        for kind in ("full", "local", "strided", "fixed")
        for step in (100, 200, 300, 600)
    }
    ends = [mean[kind, 600] for kind in ("fixed", "full", "local", "strided")]
    assert [round(bits, 2) for bits in ends] == [0.45, 0.41, 0.37, 0.36]
    assert mean["strided", 200] > mean["local", 200] and mean["strided", 300] < mean["local", 300]
    assert mean["full", 100] > mean["fixed", 100] and mean["full", 200] < mean["fixed", 200]
