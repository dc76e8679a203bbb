"""Diagrams of blocks and of whole models: lessons 7 to 12."""

from __future__ import annotations

from collections.abc import Sequence

from .drawing import NORMAL, SMALL, Sheet


def block_norms() -> Sheet:
    """Lesson 7: the post-norm block beside the pre-norm block."""
    sheet = Sheet.named("block-norms", 478)
    for left, title, source in ((0, "post-norm", "2017"), (180, "pre-norm", "GPT-2")):
        stream, branch = left + 34, left + 118
        first = title == "pre-norm"
        sheet.text(left + 90, 16, title, 15)
        sheet.text(left + 90, 34, source, SMALL, soft=True)
        sheet.tensor(stream + 34, 62, "*x*", "(b, t, e)", "plain", 108)
        sheet.residual((stream, 77), (stream, 422))
        for top, layer in ((84, "attention"), (250, "feed-forward")):
            fork = top + 14
            if first:
                sheet.arrow((stream, fork), (branch, fork), (branch, fork + 22))
                sheet.operation(branch, fork + 35, "norm", 92, 26, "orange")
                sheet.operation(branch, fork + 83, layer, 104, 26, "blue", arrow="")
                sheet.arrow((branch, fork + 96), (branch, fork + 122), (stream + 9, fork + 122))
                sheet.plus(stream, fork + 122)
            else:
                sheet.arrow((stream, fork), (branch, fork), (branch, fork + 22))
                sheet.operation(branch, fork + 35, layer, 104, 26, "blue")
                sheet.arrow((branch, fork + 48), (branch, fork + 82), (stream + 9, fork + 82))
                sheet.plus(stream, fork + 82)
                sheet.operation(stream, fork + 118, "norm", 60, 26, "orange")
    sheet.tensor(68, 437, "output", "(b, t, e)", "plain", 124)
    sheet.tensor(248, 437, "output", "(b, t, e)", "plain", 124)
    sheet.text(248, 464, "a norm after the last block", SMALL, soft=True)
    return sheet


def classifier_flow() -> Sheet:
    """Lesson 8: from the words of a review to the logits of its classes."""
    sheet = Sheet.named("classifier-flow", 500)
    x, aside = 128, 290
    words = ["not", "a", "bad", "film", "·", "·"]
    kinds = ["plain"] * 4 + ["empty"] * 2
    sheet.cells(x - 108, 12, [words], [kinds], 36, 26)
    sheet.note(aside, 18, "ids  (b, t)", "“·” is padding")
    sheet.arrow((x, 38), (x, 64))
    sheet.operation(x, 77, "table of embeddings (n, e)", 216)
    sheet.plus(x, 124, arrow="")
    sheet.tensor(aside, 124, "positions", "(t, e)", "blue", 122)
    sheet.arrow((aside - 61, 124), (x + 9, 124))
    sheet.arrow((x, 133), (x, 168), words="*x*  (b, t, e)")
    for k in (2, 1, 0):
        sheet.box(x + 5 * k, 200 + 5 * k - 5, 190, 50, "blue", 8)
    sheet.text(x, 187, "block")
    sheet.text(x, 204, "pre-norm; several in a row", SMALL, soft=True)
    sheet.tensor(aside + 8, 200, "mask", "(b, t)", "plain", 100)
    sheet.arrow((aside - 42, 200), (x + 106, 200))
    sheet.arrow((x, 230), (x, 262))
    sheet.operation(x, 275, "norm", 100, 26, "orange")
    sheet.operation(x, 335, "mean over the real words", 216, 26, "green", arrow="(b, t, e)")
    sheet.line((aside + 8, 215), (aside + 8, 335))
    sheet.arrow((aside + 8, 334), (aside + 8, 335), (x + 108, 335))
    sheet.operation(x, 395, "linear, e to c", 216, arrow="(b, e)")
    sheet.tensor(x, 455, "logits", "(b, c)", "red", 130, arrow="")
    sheet.text(x, 484, "the softmax is taken inside the loss", SMALL, soft=True)
    return sheet


def teaching_and_writing() -> Sheet:
    """Lesson 9: training on a true text, all positions at once, beside writing, one byte at a time."""
    text = "the cat"
    sheet = Sheet.named("teaching-and-writing", 486)
    wide, left, t = 44, 72, 6
    shown = ["␣" if c == " " else c for c in text]
    sheet.text(8, 18, "Training (teacher forcing)", 15, "start")
    sheet.cells(left, 42, [shown[:t]], [["plain"] * t], wide, 28)
    sheet.text(62, 56, "input", SMALL, "end", True)
    for k in range(t):
        middle = left + (k + 0.5) * wide
        sheet.arrow((middle, 70), (middle, 92))
        sheet.arrow((middle, 120), (middle, 144))
        sheet.text(middle, 186, "loss", SMALL, soft=True)
    sheet.operation(left + t * wide / 2, 106, "one pass; no position looks ahead", t * wide, 28, "blue")
    sheet.cells(left, 144, [shown[1 : t + 1]], [["green"] * t], wide, 28)
    sheet.text(62, 158, "target", SMALL, "end", True)
    sheet.text(left + t * wide / 2, 206, "*t* losses, whatever the model would have said", SMALL, soft=True)
    sheet.text(8, 240, "Writing (generation)", 15, "start")
    for k in range(3):
        y, seen = 276 + 72 * k, 3 + k
        sheet.text(62, y, f"pass {k + 1}", SMALL, "end", True)
        kinds = ["plain"] * 3 + ["orange"] * k
        small = 26
        sheet.cells(left, y - 14, [shown[:seen]], [kinds], small, 28)
        sheet.arrow((left + seen * small, y), (226, y))
        sheet.operation(258, y, "model", 64, 28, "blue")
        sheet.arrow((290, y), (318, y))
        sheet.box(332, y, 28, 28, "orange", 0, words=shown[seen])
        if k < 2:
            sheet.arrow(
                (332, y + 14),
                (332, y + 38),
                (left + (seen + 0.5) * small, y + 38),
                (left + (seen + 0.5) * small, y + 58),
            )
            sheet.text(262, y + 28, "appended", SMALL, soft=True)
    sheet.text(328, 448, "sampled", SMALL, soft=True)
    sheet.text(180, 472, "one pass for each byte: it reads what it wrote", SMALL, soft=True)
    return sheet


def _small_mask(sheet: Sheet, x: float, y: float, rows: int, columns: int, causal: bool, kind: str) -> None:
    kinds = [[kind if j <= i or not causal else "empty" for j in range(columns)] for i in range(rows)]
    sheet.cells(x, y, [[""] * columns] * rows, kinds, 10, 10)


def encoder_decoder_flow() -> Sheet:
    """Lesson 10: the encoder reads, the decoder writes; three attentions and what each may see."""
    sheet = Sheet.named("encoder-decoder-flow", 478)
    a, b = 84, 264
    for x, title, ids, shape in ((a, "encoder", "source", "(b, s)"), (b, "decoder", "target", "(b, t)")):
        sheet.text(x, 16, title, 15)
        sheet.tensor(x, 46, ids, shape, "plain", 124)
        sheet.operation(x, 97, "embed, + positions", 140, arrow="")
    sheet.frame(a, 234, 156, 178)
    sheet.frame(b, 272, 176, 254)
    sheet.arrow((a, 110), (a, 164), words="(b, s, e)", side="left")
    sheet.operation(a, 179, "self-attention", 124, 30, "blue")
    _small_mask(sheet, a - 20, 204, 4, 4, False, "blue")
    sheet.text(a - 26, 224, "sees", SMALL, "end", True)
    sheet.text(a + 26, 224, "all of it", SMALL, "start", True)
    sheet.line((a, 194), (a, 204))
    sheet.arrow((a, 244), (a, 266))
    sheet.operation(a, 281, "feed-forward", 124, 30, "plain")
    sheet.text(a, 310, "a block; several", SMALL, soft=True)
    sheet.arrow((a, 323), (a, 350))
    sheet.tensor(a, 366, "memory", "(b, s, e)", "green", 136)
    sheet.operation(b, 179, "masked self-attention", 156, 30, "blue", arrow="(b, t, e)")
    _small_mask(sheet, b - 15, 200, 3, 3, True, "blue")
    sheet.text(b - 21, 215, "itself and", SMALL, "end", True)
    sheet.text(b + 21, 215, "before", SMALL, "start", True)
    sheet.arrow((b, 230), (b, 254))
    sheet.operation(b, 269, "cross-attention", 156, 30, "green")
    _small_mask(sheet, b - 20, 290, 3, 4, False, "green")
    sheet.text(b - 26, 305, "t rows", SMALL, "end", True)
    sheet.text(b + 26, 305, "s columns", SMALL, "start", True)
    sheet.arrow((b, 320), (b, 344))
    sheet.operation(b, 359, "feed-forward", 156, 30, "plain")
    sheet.text(b, 387, "a block; several", SMALL, soft=True)
    sheet.arrow((152, 366), (169, 366), (169, 269), (186, 269))
    sheet.note(84, 396, "keys and values", "of the cross-attention")
    sheet.note(a, 438, "each layer is", "norm(*x* + layer(*x*))")
    sheet.arrow((b, 399), (b, 422))
    sheet.operation(b, 436, "linear, e to n", 140)
    sheet.text(b, 464, "logits  (b, t, n)", NORMAL)
    return sheet


def teacher_forcing() -> Sheet:
    """Lesson 10: in training the decoder reads the true target, moved by one; in translation what it wrote itself."""
    sheet = Sheet.named("teacher-forcing", 474)
    given, wanted = ["START", "ein", "hundert"], ["ein", "hundert", "STOP"]
    left, wide = 66, 62
    sheet.tensor(180, 24, "memory of “one hundred”", "", "green", 240)
    sheet.text(8, 62, "Training: one pass", 15, "start")
    sheet.cells(left, 82, [given], [["plain"] * 3], wide, 28)
    sheet.text(58, 96, "reads", SMALL, "end", True)
    for k in range(3):
        middle = left + (k + 0.5) * wide
        sheet.arrow((middle, 110), (middle, 132))
        sheet.arrow((middle, 160), (middle, 182))
    sheet.operation(left + 1.5 * wide, 146, "decoder", 3 * wide, 28, "blue")
    sheet.arrow((300, 24), (330, 24), (330, 146), (left + 3 * wide, 146))
    sheet.cells(left, 182, [wanted], [["orange"] * 3], wide, 28)
    sheet.text(58, 196, "to give", SMALL, "end", True)
    sheet.text(left + 1.5 * wide, 226, "the true words, whatever it would have said", SMALL, soft=True)
    sheet.text(8, 262, "Translation: one pass a word, same memory", 15, "start")
    for k in range(3):
        y = 298 + 58 * k
        sheet.text(22, y, f"{k + 1}", SMALL, soft=True)
        sheet.cells(36, y - 13, [given[: k + 1]], [["plain"] + ["orange"] * k], 52, 26)
        sheet.arrow((36 + 52 * (k + 1), y), (216, y))
        sheet.operation(248, y, "decoder", 64, 28, "blue")
        sheet.arrow((280, y), (304, y))
        sheet.box(330, y, 52, 26, "orange", 0, words=wanted[k], size=SMALL)
        if k < 2:
            sheet.arrow((330, y + 13), (330, y + 29), (36 + 52 * (k + 1.5), y + 29), (36 + 52 * (k + 1.5), y + 45))
    sheet.text(180, 456, "each word it gives is read in the next pass; STOP ends it", SMALL, soft=True)
    return sheet


def _letters(token: str) -> str:
    return token.replace(" ", "·").replace("Ġ", "·").replace("\n", "¶")


def _replay(
    word: str, merges: Sequence[tuple[str, str]], leftmost: bool = False
) -> list[tuple[list[str], tuple[str, str] | None, int]]:
    """(pieces, the pair that was merged, its place in the list) at the start and after each merge that applies.

    Of several pairs the one that was learned first goes first; with leftmost, the one that stands first in the word.
    """
    order = {tuple(pair): place for place, pair in reversed(list(enumerate(merges)))}
    pieces = list(word)
    steps: list[tuple[list[str], tuple[str, str] | None, int]] = [(pieces, None, -1)]
    while True:
        pairs = [pair for pair in zip(pieces, pieces[1:], strict=False) if pair in order]
        if not pairs:
            return steps
        best = pairs[0] if leftmost else min(pairs, key=order.__getitem__)
        merged, k = [], 0
        while k < len(pieces):
            step = 2 if tuple(pieces[k : k + 2]) == best else 1
            merged.append("".join(pieces[k : k + step]))
            k += step
        pieces = merged
        steps.append((pieces, best, order[best]))


def merges_in_two_orders(word: str, merges: Sequence[tuple[str, str]]) -> Sheet:
    """Lesson 11: byte-pair merges on a word, the leftmost pair first and the pair that was learned first.

    word    up to 8 characters; a space at its front, or GPT-2's sign for one, is drawn as ·.
    merges  pairs of tokens, the first learned first.
    """
    if not 0 < len(word) <= 8:
        raise ValueError(f"A word of 1 to 8 characters can be drawn, and this one has {len(word)}.")
    ways = {"leftmost pair first": _replay(word, merges, True), "first learned first": _replay(word, merges)}
    told = " ".join(
        f"{name.capitalize()}: "
        + "".join(
            f"merge {place} joins {_letters(pair[0])} and {_letters(pair[1])}; " for _, pair, place in steps[1:] if pair
        )
        + f"the tokens are {', '.join(map(_letters, steps[-1][0]))}."
        for name, steps in ways.items()
    )
    longest = max(map(len, ways.values()))
    sheet = Sheet(
        f"orders-{'-'.join(f'{ord(letter):x}' for letter in word)}-{longest}",
        f"Byte-pair merges on the word {_letters(word)}, in two orders",
        f"The word begins as its characters, {' '.join(map(_letters, word))}. {told}",
        62 + 62 * longest,
    )
    wide = min(34, 150 / len(word))
    for middle, (name, steps) in zip((90, 270), ways.items(), strict=True):
        sheet.text(middle, 16, name)
        for k, (pieces, pair, place) in enumerate(steps):
            y, x = 50 + 62 * k, middle - wide * len(word) / 2
            if pair:
                sheet.arrow((middle, y - 46), (middle, y - 15))
                sheet.text(middle - 8, y - 31, f"merge {place}", SMALL, "end", True)
                sheet.text(middle + 8, y - 31, f"{_letters(pair[0])} + {_letters(pair[1])}", NORMAL, "start")
            for piece in pieces:
                span = wide * len(piece)
                joined = pair is not None and piece == pair[0] + pair[1]
                kind = "orange" if joined else "blue" if len(piece) > 1 else "plain"
                sheet.box(x + span / 2, y, span - 3, 28, kind, words=_letters(piece))
                x += span
        sheet.text(middle, 50 + 62 * (len(steps) - 1) + 34, f"tokens: {', '.join(map(_letters, steps[-1][0]))}", SMALL)
    return sheet


def gpt2_flow(
    tokens: Sequence[str],
    ids: Sequence[int],
    vectors: Sequence[Sequence[Sequence[float]]],
    predicted: Sequence[tuple[str, float]],
    sizes: tuple[int, int, int],
) -> Sheet:
    """Lesson 12: three tokens on their way through a GPT-2, to the next token after each of them.

    vectors: the first two components at each position, three times: of the rows of the table of tokens, of what enters
    the first block, and after the last norm. predicted: the likeliest next token after each position, and its
    probability. sizes: n, e and depth. ValueError for more or fewer than three tokens.
    """
    if len(tokens) != 3:
        raise ValueError(f"The sheet has room for three tokens, and these are {len(tokens)}.")
    n, e, depth = sizes
    text = "".join(tokens).replace("·", " ")
    ends = [f"{token} ({chance:.0%})" for token, chance in predicted]
    told = {"text": text, "tokens": ", ".join(tokens), "ids": ", ".join(map(str, ids)), "depth": depth}
    sheet = Sheet.named("gpt2-flow", 578, **told, n=n, e=e, predicted=", ".join(ends))
    columns, middle, wide = (44, 116, 188), 116, 208

    def numbers(y: float, rows: Sequence[Sequence[float]], kind: str) -> None:
        for x, row in zip(columns, rows, strict=True):
            for k, value in enumerate(row):
                sheet.box(x, y + 20 * k, 64, 20, kind, 0, _signed(value), SMALL)

    def down(top: float, bottom: float) -> None:
        for x in columns:
            sheet.arrow((x, top), (x, bottom))

    sheet.text(middle, 16, f"“{text}”", NORMAL)
    sheet.arrow((middle, 27), (middle, 42))
    sheet.operation(middle, 55, "byte-pair encoding", wide)
    down(68, 84)
    for x, token, number in zip(columns, tokens, ids, strict=True):
        sheet.box(x, 96, 64, 24, words=token)
        sheet.text(x, 118, str(number), SMALL, soft=True)
    sheet.text(232, 118, "ids  (1, 3)", SMALL, "start", True)
    down(128, 144)
    numbers(154, vectors[0], "orange")
    sheet.box(294, 164, 112, 46, "orange")
    sheet.text(294, 155, "tokens")
    sheet.text(294, 173, f"({n}, {e})", SMALL)
    sheet.arrow((238, 164), (222, 164))
    down(184, 197)
    for x in columns:
        sheet.plus(x, 206)
    sheet.tensor(282, 206, "positions", "", "blue", 92, 26)
    for start, end in ((236, 197), (179, 125), (107, 53)):
        sheet.arrow((start, 206), (end, 206))
    down(215, 230)
    numbers(240, vectors[1], "plain")
    sheet.text(232, 250, f"*x*  (1, 3, {e})", SMALL, "start", True)
    down(270, 289)
    for k in (2, 1, 0):
        sheet.box(middle + 5 * k, 322 + 5 * k, wide, 64, "blue", 8)
    sheet.text(middle, 302, f"{depth} blocks, each of them")
    sheet.text(middle, 321, "norm, causal attention, +", SMALL)
    sheet.text(middle, 340, "norm, feed-forward, +", SMALL)
    down(364, 380)
    sheet.operation(middle, 393, "norm", wide)
    down(406, 420)
    numbers(430, vectors[2], "plain")
    sheet.text(232, 440, f"(1, 3, {e})", SMALL, "start", True)
    down(460, 475)
    sheet.operation(middle, 488, "dot products with all rows", wide, 26, "orange")
    sheet.tie((340, 187), (340, 488), (middle + wide / 2, 488))
    sheet.note(334, 374, "the same table:", "tied weights", anchor="end")
    down(501, 529)
    sheet.note(232, 508, "logits", f"(1, 3, {n})", anchor="start")
    for x, (token, chance) in zip(columns, predicted, strict=True):
        sheet.box(x, 541, 64, 24, "green", words=token)
        sheet.text(x, 564, f"{100 * chance:.0f} %", SMALL)
    sheet.note(232, 545, "likeliest next", "token", anchor="start")
    return sheet


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def cache_growing(words: Sequence[str], keys: Sequence[Sequence[float]]) -> Sheet:
    """Lesson 12: the keys that each pass of a model that writes needs, and which of them it had before.

    words: the tokens, up to six. keys: for each pass one number of the key at each position that it reads, computed
    anew. ValueError where there are more words than fit.
    """
    if len(words) > 6:
        raise ValueError(f"The sheet has room for six tokens, and these are {len(words)}.")
    prompt = len(keys[0])
    told = {"text": ", ".join(words), "prompt": prompt, "kept": ", ".join(str(len(row)) for row in keys)}
    sheet = Sheet.named("cache-growing", 400, **told)
    left, wide, high = 80, 46, 26
    sheet.text(left, 16, "one number of the key at each position", NORMAL, "start")
    for j, word in enumerate(words):
        sheet.text(left + (j + 0.5) * wide, 40, word, SMALL, soft=True)
    sheet.text(72, 40, "queries", SMALL, "end", True)
    y = 54.0
    for step, row_of_keys in enumerate(keys):
        seen = len(row_of_keys)
        new = prompt if step == 0 else 1
        for row in range(new):
            query, middle = seen - new + row, y + (row + 0.5) * high
            sheet.tensor(46, middle, words[query], "", "orange", 56, 21)
            for j, value in enumerate(row_of_keys):
                kind = "empty" if j > query else "blue" if j >= seen - new else "plain"
                number = "" if j > query else _signed(value)
                sheet.box(left + (j + 0.5) * wide, middle, wide, high, kind, 0, number, SMALL)
        sheet.text(9, y + new * high / 2, f"{step + 1}", 15)
        y += new * high
        sheet.text(left, y + 11, f"pass {step + 1} leaves s = {seen} in the cache", SMALL, "start", True)
        y += 32
    for x, kind, words_beside in (
        (20, "blue", "new in this pass"),
        (156, "plain", "from the cache"),
        (276, "empty", "not seen"),
    ):
        sheet.box(x, y + 10, 20, 16, kind, 0)
        sheet.text(x + 15, y + 10, words_beside, SMALL, "start", True)
    sheet.text(180, y + 36, "without a cache each pass computes all of them again", SMALL, soft=True)
    return sheet
