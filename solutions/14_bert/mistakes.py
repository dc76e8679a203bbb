"""What students get wrong in lesson 14, and what to tell them."""

from helpers.authoring import Accepted, EquivalentMutant, Mistake, Shortcut

PIECES, PAIR, CORRUPT, LOSS, MODEL, RENAME, FIRST, LOW = (
    "wordpiece",
    "pair_input",
    "corrupt",
    "masked_loss",
    "Bert",
    "rename_bert",
    "label_first_pieces",
    "LowRank",
)

OTHERS = "inputs = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), drawn, ids)"
HIDDEN = "inputs = inputs.masked_fill(chosen & (fate < 0.8), mask_id)"
PUBLISHED_BUG = """
    inputs = torch.where(chance() < 0.1, drawn, ids)
    inputs = inputs.masked_fill(chosen & (chance() < 0.9), mask_id)
"""
SUM = "self.norm(self.tokens(ids) + self.positions(places) + self.segments(segments))"
OPTIONS = "hidden=config.hidden, activation=F.gelu, bias=True"
STEP = "self.scale * (x @ self.A.T @ self.B.T)"

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ------------------------------------------------------------------------------------------ wordpiece
    Mistake(PIECES, "from-the-right", instead="""
        if len(word) > limit:
            return ["[UNK]"]
        pieces, end = [], len(word)
        while end > 0:
            for start in range(end):
                piece = ("##" if start else "") + word[start:end]
                if piece in vocabulary:
                    break
            else:
                return ["[UNK]"]
            pieces.insert(0, piece)
            end = start
        return pieces
    """, title="the longest piece from the right",
            says="You cut from the end of the word. Start at its beginning: the longest piece that the word *begins* "
                 "with comes first. (A published tokenizer cuts from the right, and gets v ##egan for vegan.)"),
    Mistake(PIECES, "pieces-before-unknown", edit=("        else:\n            return [\"[UNK]\"]",
                                                  "        else:\n            return pieces + [\"[UNK]\"]"),
            title="pieces kept before an unknown rest",
            says="Where the rest fits nothing, you return the pieces so far and then [UNK]. The whole word is unknown "
                 "then: one [UNK], and nothing else. (A published tokenizer does the same.)"),
    Mistake(PIECES, "letter-skipped", edit=("        else:\n            return [\"[UNK]\"]\n",
                                           "        else:\n            start += 1\n            continue\n"),
            title="letters that fit nothing left out",
            says="Where the rest begins with no piece, you go on one letter further, and that letter is gone. The "
                 "whole word is unknown then."),
    Mistake(PIECES, "mark-on-the-first", edit=('"##" if start > 0 else ""', '"##"'), title="## on the first piece too",
            says="You look for ## before the first piece as well. The mark is for pieces *inside* a word."),
    Mistake(PIECES, "no-mark", edit=('"##" if start > 0 else ""', '""'), title="no ## inside a word",
            says="You look for pieces inside a word without their mark. After the first piece, look for ## and the "
                 "letters."),
    Mistake(PIECES, "no-mark-either", instead="""
        if len(word) > limit:
            return ["[UNK]"]
        pieces, start = [], 0
        while start < len(word):
            mark = "##" if start > 0 else ""
            for end in range(len(word), start, -1):
                known = [p for p in (mark + word[start:end], word[start:end]) if p in vocabulary]
                if known:
                    break
            else:
                return ["[UNK]"]
            pieces.append(known[0])
            start = end
        return pieces
    """, title="pieces without ## inside a word too",
            says="Where no piece with ## fits, you take one without. A piece without the mark begins a word, and fits "
                 "nowhere else: such a word is unknown."),
    Mistake(PIECES, "mark-left-out", edit=("pieces.append(mark + word[start:end])", "pieces.append(word[start:end])"),
            title="pieces returned without ##",
            says="You find the right pieces, and return those inside a word without ##. The mark belongs "
                 "to the piece."),
    Mistake(PIECES, "shortest", edit=("range(len(word), start, -1)", "range(start + 1, len(word) + 1)"),
            title="the shortest piece",
            says="You take the shortest piece that fits. Try the longest first."),
    Mistake(PIECES, "going-back", instead="""
        if len(word) > limit:
            return ["[UNK]"]

        def cut(start):
            if start == len(word):
                return []
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in vocabulary:
                    rest = cut(end)
                    if rest is not None:
                        return [piece, *rest]
            return None

        found = cut(0)
        return ["[UNK]"] if found is None else found
    """, title="a shorter piece tried where the longest leads nowhere",
            says="Where the longest piece leads to an unknown rest, you go back and try a shorter one. WordPiece never "
                 "goes back: the word is unknown."),
    Mistake(PIECES, "no-limit", edit=('    if len(word) > limit:\n        return ["[UNK]"]\n', ""),
            title="no limit", says="Words of more than `limit` characters are to be [UNK], whatever they hold."),
    Mistake(PIECES, "limit-one-less", edit=("len(word) > limit", "len(word) >= limit"),
            title="the limit is one too low",
            says="A word of exactly `limit` characters is still cut. Only longer ones are unknown."),
    Mistake(PIECES, "limit-fixed", edit=("len(word) > limit", "len(word) > 100"), title="always 100 characters",
            says="You compare with 100, whatever `limit` is."),
    Mistake(PIECES, "last-letter-lost", edit=("while start < len(word):", "while start < len(word) - 1:"),
            title="the last letter left over",
            says="Your loop stops one letter before the word's end."),
    Mistake(PIECES, "whole-word-not-tried", edit=("range(len(word), start, -1)", "range(len(word) - 1, start, -1)"),
            title="a piece never reaches the word's end",
            says="Your pieces end before the last letter. `word[start:end]` stops before `end`, so the first end to "
                 "try is len(word)."),
    Mistake(PIECES, "nothing-for-unknown", edit=("        else:\n            return [\"[UNK]\"]",
                                                "        else:\n            return []"),
            title="nothing for an unknown word",
            says="An unknown word gives an empty list in yours, so it is gone from the text. It becomes [UNK]."),
    EquivalentMutant(PIECES, "range(len(word), start, -1)", "range(len(word) + 1, start, -1)",
          "a slice that goes one beyond the word's end is the same slice"),
    EquivalentMutant(PIECES, "range(len(word), start, -1)", "range(len(word), start - 1, -1)",
        "no vocabulary has an empty piece"),
    Accepted(PIECES, "while-loops", instead="""
        if len(word) > limit:
            return ["[UNK]"]
        out, rest, mark = [], word, ""
        while rest:
            size = len(rest)
            while size and mark + rest[:size] not in vocabulary:
                size -= 1
            if size == 0:
                return ["[UNK]"]
            out.append(mark + rest[:size])
            rest, mark = rest[size:], "##"
        return out
    """),
    Accepted(PIECES, "by-maximum", instead="""
        unknown, pieces, start = ["[UNK]"], [], 0
        if len(word) > limit:
            return unknown
        while start != len(word):
            fits = [p for k in range(start + 1, len(word) + 1)
                    if (p := "##" * bool(start) + word[start:k]) in vocabulary]
            if not fits:
                return unknown
            pieces.append(max(fits, key=len))
            start += len(pieces[-1].removeprefix("##"))
        return pieces
    """),
    Shortcut(PIECES, "finished-part", instead="return finished_bert.wordpiece(word, vocabulary, limit)"),
    # ----------------------------------------------------------------------------------------- pair_input
    Mistake(PAIR, "second-sep-in-0", edit=("[0] * len(first) + [1] * len(rest)",
                                          "[0] * len(first) + ([1] * len(second) + [0] if rest else [])"),
            title="the last [SEP] in segment 0",
            says="Your second [SEP] is in segment 0. It belongs to the text that it ends."),
    Mistake(PAIR, "first-sep-in-1", edit=("[0] * len(first) + [1] * len(rest)",
                                         "[0] * (len(first) - bool(rest)) + [1] * (len(rest) + bool(rest))"),
            title="the first [SEP] in segment 1",
            says="Your first [SEP] is in segment 1. Segment 0 goes up to and with it."),
    Mistake(PAIR, "cls-in-1", edit=("[0] * len(first) + [1] * len(rest)",
                                    "[int(b is not None)] + [0] * (len(first) - 1) + [1] * len(rest)"),
            title="[CLS] in segment 1",
            says="[CLS] is in segment 1 for a pair. Segment 0 goes from [CLS] up to and with the first [SEP]."),
    Mistake(PAIR, "segments-all-0", edit=("[1] * len(rest)", "[0] * len(rest)"), title="segment 0 everywhere",
            says="All your segments are 0. All that comes after the first [SEP] is 1. (A widely used example left them "
                 "out.)"),
    Mistake(PAIR, "segments-from-1", edit=("[0] * len(first) + [1] * len(rest)", "[1] * len(first) + [2] * len(rest)"),
            title="segments from 1", says="Your segments are 1 and 2. They are 0 and 1."),
    Mistake(PAIR, "cls-before-both", edit=("[] if b is None else second + [sep]",
                                          "[] if b is None else [cls] + second + [sep]"),
            title="[CLS] before the second text too",
            says="There is a second [CLS] in your input. It stands once, at the very beginning."),
    Mistake(PAIR, "no-last-sep", edit=("second + [sep]", "second"), title="no [SEP] at the end of a pair",
            says="Each text is ended by [SEP], the second one too."),
    Mistake(PAIR, "no-cls", edit=("[cls] + a + [sep]", "a + [sep]"), title="no [CLS]",
            says="[CLS] is missing: it stands first."),
    Mistake(PAIR, "cut-after-joining",
            edit=(("    while len(a) + len(second) > room:\n        longer = a if len(a) >= len(second) else second\n"
                   "        longer.pop()\n", ""),
                  ("return first + rest, [0] * len(first) + [1] * len(rest)",
                   "return (first + rest)[:t_max], ([0] * len(first) + [1] * len(rest))[:t_max]")),
            title="cut after joining",
            says="You join first and cut the end off, and with it the last [SEP], or the whole second text. Cut the "
                 "two texts before you join them."),
    Mistake(PAIR, "half-each",
            edit=("    while len(a) + len(second) > room:\n        longer = a if len(a) >= len(second) else second\n"
                  "        longer.pop()\n",
                  "    if b is None:\n        a = a[:room]\n    elif len(a) + len(second) > room:\n"
                  "        a, second = a[:room - room // 2], second[:room // 2]\n"),
            title="half of the room for each",
            says="You give each text half of the room, even where one of them needs less. Take tokens from the longer "
                 "one, one at a time."),
    Mistake(PAIR, "second-cut-only", edit=("longer = a if len(a) >= len(second) else second",
                                          "longer = second if second else a"),
            title="only the second text cut",
            says="You cut the second text alone, until nothing of it is left. It is the *longer* one that loses a "
                 "token, each time."),
    Mistake(PAIR, "first-cut-only", edit=("longer = a if len(a) >= len(second) else second",
                                         "longer = a if a else second"),
            title="only the first text cut",
            says="You cut the first text alone, until nothing of it is left. It is the *longer* one that loses a "
                 "token, each time."),
    Mistake(PAIR, "shorter-cut", edit=("len(a) >= len(second)", "len(a) <= len(second)"), title="the shorter one cut",
            says="You take tokens from the shorter text. Take them from the longer one."),
    Mistake(PAIR, "tie-second", edit=("len(a) >= len(second)", "len(a) > len(second)"),
            title="the second one cut where both are equally long",
            says="Where both texts are equally long, the token comes from `a`; yours comes from `b`."),
    Mistake(PAIR, "from-the-beginning", edit=("longer.pop()", "longer.pop(0)"), title="cut at the beginning",
            says="You take tokens from the beginning of a text. Take them from its end."),
    Mistake(PAIR, "room-for-three", edit=("(2 if b is None else 3)", "3"), title="one place too few for a single text",
            says="A single text has two special tokens, [CLS] and one [SEP]; you set three places aside."),
    Mistake(PAIR, "room-for-two", edit=("(2 if b is None else 3)", "2"), title="a pair is one token too long",
            says="A pair has three special tokens; you set two places aside, so that it comes out longer than t_max."),
    Mistake(PAIR, "specials-not-counted", edit=("t_max - (2 if b is None else 3)", "t_max"),
            title="no room for the special tokens",
            says="t_max is for all tokens, [CLS] and [SEP] among them. Yours come on top."),
    Mistake(PAIR, "never-cut", edit=("len(a) + len(second) > room", "False"), title="nothing is cut",
            says="What is too long stays too long. The result has t_max tokens at most."),
    Mistake(PAIR, "callers-lists", edit=("a, second = list(a), list(b or [])", "second = [] if b is None else b"),
            title="the caller's lists are cut",
            says="Your ids are right, and the caller's own lists are shorter afterwards. Cut copies of them."),
    Accepted(PAIR, "lengths-first", instead="""
        n_a, n_b = len(a), 0 if b is None else len(b)
        most = t_max - 2 - (b is not None)
        while n_a + n_b > most:
            if n_a >= n_b:
                n_a -= 1
            else:
                n_b -= 1
        ids = [cls, *a[:n_a], sep]
        kinds = [0 for _ in ids]
        if b is not None:
            ids += [*b[:n_b], sep]
            kinds += [1] * (n_b + 1)
        return ids, kinds
    """),
    Accepted(PAIR, "tensors-of-segments", instead="""
        if b is None:
            ids = [cls, *a[:t_max - 2], sep]
            return ids, [0] * len(ids)
        a, b = [*a], [*b]
        for _ in range(max(0, len(a) + len(b) + 3 - t_max)):
            max((a, b), key=len).pop(-1)
        ids = [cls, *a, sep, *b, sep]
        return ids, [int(place > len(a) + 1) for place in range(len(ids))]
    """),
    Shortcut(PAIR, "finished-part", instead="return finished_bert.pair_input(a, b, cls, sep, t_max)"),
    # -------------------------------------------------------------------------------------------- corrupt
    Mistake(CORRUPT, "unchanged", instead=PUBLISHED_BUG, title="random tokens all over the text",
            says="Of the tokens that are not asked for, one in ten is replaced, [CLS] among them; and of those that "
                 "are, hardly any becomes a random one. Count both."),
    Mistake(CORRUPT, "right-place-wrong-order", instead="""
        inputs = torch.where(chosen & (chance() < 0.1), drawn, ids)
        inputs = inputs.masked_fill(chosen & (chance() < 0.9), mask_id)
    """, title="[MASK] over the random tokens",
            says="The random tokens are now where something is asked. But [MASK] is written afterwards, over nearly "
                 "all of them: 1 % is left. Each chosen token has *one* fate."),
    Mistake(CORRUPT, "right-order-wrong-place", instead="""
        fate = chance()
        inputs = torch.where((fate >= 0.8) & (fate < 0.9), drawn, ids)
        inputs = inputs.masked_fill(chosen & (fate < 0.8), mask_id)
    """, title="random tokens where nothing is asked",
            says="The shares are right where something is asked. But tokens that are not asked for become random ones "
                 "as well."),
    Mistake(CORRUPT, "tenth-of-the-rest", instead="""
        hidden = chosen & (chance() < 0.8)
        random = chosen & ~hidden & (chance() < 0.1)
        inputs = torch.where(random, drawn, ids).masked_fill(hidden, mask_id)
    """, title="10 % of the remaining 20 %",
            says="Your random tokens are a tenth of those that did *not* become [MASK]: 2 %, and 18 % stay. Of these "
                 "it has to be one half. (Published code has had this, with 0.1 in one branch and 0.5 in the other.)"),
    Mistake(CORRUPT, "random-takes-from-mask", instead="""
        inputs = ids.masked_fill(chosen & (chance() < 0.8), mask_id)
        inputs = torch.where(chosen & (chance() < 0.1), drawn, inputs)
    """, title="random tokens over [MASK]",
            says="Your random tokens are drawn apart from [MASK] and written over it: 72 % [MASK], 10 % random "
                 "and 18 % "
                 "kept. Each chosen token has *one* fate."),
    Mistake(CORRUPT, "all-masked", instead="inputs = ids.masked_fill(chosen, mask_id)", title="all become [MASK]",
            says="All chosen tokens become [MASK]. Two in ten keep the look of an ordinary word."),
    Mistake(CORRUPT, "no-random", edit=(OTHERS, "inputs = ids"), title="no random tokens",
            says="None of your chosen tokens becomes a random one: 80 % are [MASK], and 20 % stay."),
    Mistake(CORRUPT, "none-kept", edit=(" & (fate < 0.9)", ""), title="none stays",
            says="One in five of your chosen tokens becomes a random one, and none stays. It is one in ten each."),
    Mistake(CORRUPT, "ten-masked", edit=((OTHERS, "inputs = torch.where(chosen & (fate < 0.8), drawn, ids)"),
                                        (HIDDEN, "inputs = inputs.masked_fill(chosen & (fate >= 0.9), mask_id)")),
            title="80 % random and 10 % [MASK]",
            says="The shares of [MASK] and of random tokens are exchanged."),
    Mistake(CORRUPT, "mask-everywhere", edit=("masked_fill(chosen & (fate < 0.8), mask_id)",
                                             "masked_fill(fate < 0.8, mask_id)"),
            title="[MASK] where nothing is asked",
            says="You put [MASK] on tokens that were not chosen. The fates are for chosen tokens."),
    Mistake(CORRUPT, "one-draw", instead="""
        first = torch.rand(ids.shape, generator=torch.Generator(ids.device).manual_seed(0), device=ids.device)
        chosen = (first < 0.15) & ~special
        targets = ids.masked_fill(~chosen, -100)
        inputs = torch.where(chosen & (first >= 0.8) & (first < 0.9), drawn, ids)
        inputs = inputs.masked_fill(chosen & (first < 0.8), mask_id)
    """, title="one draw for choice and fate",
            says="The same numbers decide who is chosen and what becomes of them: all that is below 0.15 is below 0.8 "
                 "too. Draw once more for the fate."),
    Mistake(CORRUPT, "same-for-every-row", edit=("    fate = chance()\n",
                                                "    fate = chance()[:1].expand(ids.shape)\n"
                                                "    chosen = chosen[:1] & ~special\n"
                                                "    targets = ids.masked_fill(~chosen, -100)\n"),
            title="the same places in every row",
            says="You choose places once and use them for every text. Each token has its own chance."),
    Mistake(CORRUPT, "in-place", edit=(OTHERS, "inputs = ids.copy_(torch.where(chosen & (fate >= 0.8) & (fate < 0.9), "
                                               "drawn, ids))"),
            title="the caller's ids are changed",
            says="The shares are right, and the caller's own ids hold random tokens afterwards. Fill a copy."),
    Mistake(CORRUPT, "targets-without-kept", edit=("    fate = chance()\n",
                                                  "    fate = chance()\n"
                                                  "    targets = targets.masked_fill(fate >= 0.9, -100)\n"),
            title="what stays is not asked for",
            says="Tokens that stay as they are have −100 for a target in yours. They are asked for as well: otherwise "
                 "an ordinary word would never be in question."),
    Mistake(CORRUPT, "asked-everywhere", edit=("    fate = chance()\n",
                                               "    fate = chance()\n    targets = ids.clone()\n"),
            title="everything is asked for",
            says="Your targets hold an id at every position. Only chosen tokens are asked for; all others have −100."),
    EquivalentMutant(CORRUPT, "inputs.masked_fill(chosen & (fate < 0.8), mask_id)",
          "inputs.masked_fill_(chosen & (fate < 0.8), mask_id)", "inputs are the function's own since torch.where"),
    EquivalentMutant(CORRUPT, "fate < 0.8", "fate <= 0.8", "one number in 2²⁴ is exactly that"),
    EquivalentMutant(CORRUPT, "fate < 0.9", "fate <= 0.9", "one number in 2²⁴ is exactly that"),
    EquivalentMutant(CORRUPT, "fate >= 0.8", "fate > 0.8", "one number in 2²⁴ is exactly that"),
    EquivalentMutant(CORRUPT, "fate < 0.9", "fate > 0.9", "the last tenth is as good as the one before it"),
    EquivalentMutant(CORRUPT, "chosen & (fate >= 0.8)", "chosen", "what lies below 0.8 becomes [MASK] afterwards"),
    Accepted(CORRUPT, "half-of-the-rest", instead="""
        hidden = chosen & (chance() < 0.8)
        random = chosen & ~hidden & (chance() < 0.5)
        inputs = ids.clone()
        inputs[hidden] = mask_id
        inputs = torch.where(random, drawn, inputs)
    """),
    Accepted(CORRUPT, "three-kinds", instead="""
        kind = torch.randint(10, ids.shape, generator=generator, device=ids.device)
        inputs = torch.where(chosen & (kind == 9), drawn, torch.where(chosen & (kind > 0) & (kind < 9), mask_id, ids))
    """),
    Shortcut(CORRUPT, "finished-part", instead="""
        return finished_bert.corrupt(ids, special, mask_id, n, generator)
    """),
    # ---------------------------------------------------------------------------------------- masked_loss
    Mistake(LOSS, "nan-where-nothing", instead="return F.cross_entropy(logits.flatten(0, 1), targets.flatten())",
            title="NaN where nothing is asked",
            says="Where nothing is asked, your mean is 0/0. Take the sum, and divide by a count that is 1 at least."),
    Mistake(LOSS, "mean-over-all", edit=("(targets != -100).sum().clamp(min=1)", "targets.numel()"),
            title="the mean over all positions",
            says="You divide by the number of all positions. Divide by how many are asked."),
    Mistake(LOSS, "zero-is-nothing", instead="""
        total = F.cross_entropy(logits.flatten(0, 1), targets.flatten().clamp(min=0), reduction="sum", ignore_index=0)
        return total / (targets > 0).sum().clamp(min=1)
    """, title="0 taken for nothing asked",
            says="You leave out the target 0, which is a class like any other. (A published BERT did so, "
                 "for words and for "
                 "\"does it follow?\" alike, and never learned what 0 meant.)"),
    Mistake(LOSS, "sum", edit=(" / (targets != -100).sum().clamp(min=1)", ""), title="the sum, not the mean",
            says="You return the sum over what is asked. The mean is wanted."),
    Mistake(LOSS, "one-more", edit=(".sum().clamp(min=1)", ".sum() + 1"), title="divided by one more than is asked",
            says="You add 1 to the count, to be safe from 0. Then every mean is a little too small."),
    Mistake(LOSS, "count-of-rows", edit=("(targets != -100).sum().clamp(min=1)",
                                        "(targets != -100).any(dim=1).sum().clamp(min=1)"),
            title="divided by the number of texts",
            says="You divide by the number of texts in which something is asked. Count positions."),
    Mistake(LOSS, "mean-of-rows", instead="""
        each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").sum(dim=1)
        return (each / (targets != -100).sum(dim=1).clamp(min=1)).mean()
    """, title="the mean of each text's mean",
            says="You take a mean for each text, and the mean of those. Every position that is asked counts the same, "
                 "in whatever text it stands."),
    Mistake(LOSS, "minus-one-clamped", instead="""
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten().clamp(min=0))
    """, title="−100 turned into class 0",
            says="You turn −100 into 0, so that class 0 is asked for wherever nothing was asked."),
    Mistake(LOSS, "constant-zero", instead="""
        if (targets == -100).all():
            return torch.tensor(0.0)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    """, title="a 0 without a gradient",
            says="Where nothing is asked, your 0 is a new number that knows nothing of the logits, so `backward()` "
                 "fails. Sum over nothing instead: that is 0, and has a gradient of zeros."),
    EquivalentMutant(LOSS, "return total / (targets != -100).sum().clamp(min=1)",
          "return (total / (targets != -100).sum().clamp(min=1)).mT", "a single number is its own transpose"),
    EquivalentMutant(LOSS, "return total / (targets != -100).sum().clamp(min=1)",
          "return (total / (targets != -100).sum().clamp(min=1)).squeeze()", "a single number has no axes"),
    EquivalentMutant(LOSS, "(targets != -100).sum().clamp(min=1)", "(targets != -100).sum().clamp_(min=1)",
          "the sum is the function's own"),
    Accepted(LOSS, "log-probabilities", instead="""
        asked = targets != -100
        chances = logits.log_softmax(dim=-1).gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        return -(chances * asked).sum() / asked.sum().clamp(min=1)
    """),
    Accepted(LOSS, "nan-to-num", instead="""
        each = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none", ignore_index=-100)
        count = (targets != -100).sum()
        return each.sum() / torch.where(count > 0, count, 1)
    """),
    Shortcut(LOSS, "finished-part", instead="return finished_bert.masked_loss(logits, targets)"),
    # ----------------------------------------------------------------------------------------------- Bert
    Mistake(MODEL, "pre-norm", edit=(OPTIONS, "pre_norm=True, " + OPTIONS), title="norm first",
            says="Your blocks have their norms first, as GPT-2's. BERT's have them last."),
    Mistake(MODEL, "tanh-gelu", edit=("activation=F.gelu", 'activation=lambda x: F.gelu(x, approximate="tanh")'),
            title="GELU by tanh",
            says="Your GELU is the approximation by tanh, which is GPT-2's. BERT's is the exact one."),
    Mistake(MODEL, "relu", edit=("activation=F.gelu, ", ""), title="ReLU",
            says="Your feed-forward networks have ReLU. BERT's have GELU."),
    Mistake(MODEL, "no-bias", edit=("bias=True", "bias=False"), title="no bias in the projections",
            says="Your queries, keys and values have no bias. BERT's layers all have one."),
    Mistake(MODEL, "epsilon-of-blocks", edit=(",\n                          epsilon=epsilon)", ")"),
            title="the blocks' epsilon left at 1e-5",
            says="The norms in your blocks have PyTorch's epsilon. Theirs is config.epsilon too."),
    Mistake(MODEL, "epsilon-of-norm", edit=("LayerNorm(e, epsilon)", "LayerNorm(e)"),
            title="the first norm's epsilon left at 1e-5",
            says="The norm after the sum has PyTorch's epsilon. Its own is config.epsilon."),
    Mistake(MODEL, "epsilon-fixed", edit=("e, epsilon = config.e, config.epsilon", "e, epsilon = config.e, 1e-12"),
            title="epsilon fixed at 1e-12",
            says="Your epsilon is 1e-12 whatever the config says. Take config.epsilon."),
    Mistake(MODEL, "hidden-fixed", edit=("hidden=config.hidden, ", ""), title="hidden layers of 4e",
            says="Your hidden layers are 4e wide whatever the config says. Take config.hidden, which may be None for "
                 "4e."),
    Mistake(MODEL, "no-segment-for-one", instead=("", """
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(places)
        if segments is not None:
            x = x + self.segments(segments)
        x = self.norm(x)
        seen = None if mask is None else mask.unsqueeze(1)
        for block in self.blocks:
            x = block(x, seen)
        return x, torch.tanh(self.pooler(x[:, 0]))
    """), title="no segment vector where no segments are given",
            says="Without segments you add none. All are 0 then, and row 0 of the table is added."),
    Mistake(MODEL, "segments-unused", edit=(" + self.segments(segments)", ""), title="segments are not used",
            says="Your table of segments is never looked at. Its vectors are added too."),
    Mistake(MODEL, "always-segment-0", edit=("        if segments is None:\n            segments", "        segments"),
            title="segment 0 whatever is given",
            says="You set all segments to 0, also where some are given."),
    Mistake(MODEL, "mean-of-three", edit=(SUM, SUM[:-1].replace("self.norm(", "self.norm((") + ") / 3)"),
            title="the mean of the three vectors",
            says="You take the mean of token, position and segment. They are added, and the norm's epsilon makes a "
                 "difference between the two."),
    Mistake(MODEL, "tokens-scaled", edit=("self.tokens(ids)", "config.e**0.5 * self.tokens(ids)"
                                          .replace("config", "self.config")),
            title="tokens multiplied by √e",
            says="You multiply the token vectors by √e, as the model of lesson 10 does. BERT adds them as they are."),
    Mistake(MODEL, "no-norm-after-sum", edit=(SUM, SUM[len("self.norm("):-1]), title="no norm after the sum",
            says="The sum of token, position and segment goes through `norm` before the first block."),
    Mistake(MODEL, "norm-before-sum",
            edit=(SUM, "self.norm(self.tokens(ids)) + self.positions(places) + self.segments(segments)"),
            title="only the tokens are normalised",
            says="You normalise the token vectors and add the rest afterwards. The norm is for the sum."),
    Mistake(MODEL, "norm-at-the-end", edit=((SUM, SUM[len("self.norm("):-1]),
                                           ("return x, torch.tanh(self.pooler(x[:, 0]))",
                                            "x = self.norm(x)\n        return x, torch.tanh(self.pooler(x[:, 0]))")),
            title="the norm at the end",
            says="Your norm stands after the blocks, as GPT-2's does. BERT's stands before them, after the sum."),
    Mistake(MODEL, "positions-from-1", edit=("self.positions(places)", "self.positions(places + 1)"),
            title="positions from 1", says="Your positions start at 1. They start at 0."),
    Mistake(MODEL, "no-positions", edit=(" + self.positions(places)", ""), title="positions are not used",
            says="Your table of positions is never looked at."),
    Mistake(MODEL, "padding-seen", edit=("None if mask is None else mask.unsqueeze(1)", "None"),
            title="padding is not hidden",
            says="Your blocks get no mask, so that all tokens look at padding."),
    Mistake(MODEL, "mask-turned-round", edit=("else mask.unsqueeze(1)", "else ~mask.unsqueeze(1)"),
            title="the mask turned round",
            says="Your blocks hide what is real and show the padding. The mask is True at real tokens, and a block's "
                 "is True where one may look."),
    Mistake(MODEL, "mask-of-queries", edit=("mask.unsqueeze(1)", "mask.unsqueeze(2) & mask.unsqueeze(1)"),
            title="padding may look nowhere",
            says="You hide all from the positions of padding, so that their vectors are others than BERT's. The mask "
                 "says who is looked at: (b, 1, t)."),
    Mistake(MODEL, "causal", edit=("            x = block(x, seen)",
                                  "            t = ids.shape[1]\n"
                                  "            left = torch.ones(1, t, t, dtype=torch.bool, device=x.device).tril()\n"
                                  "            x = block(x, left if seen is None else seen & left)"),
            title="only the left is seen",
            says="There is a triangle in your model: each position sees only what stands before it. BERT reads both "
                 "ways."),
    Mistake(MODEL, "no-tanh", edit=("torch.tanh(self.pooler(x[:, 0]))", "self.pooler(x[:, 0])"),
            title="the pooler without tanh", says="tanh is missing after the pooler's linear layer."),
    Mistake(MODEL, "pooler-on-mean", edit=("self.pooler(x[:, 0])", "self.pooler(x.mean(dim=1))"),
            title="the pooler on the mean",
            says="Your pooler reads the mean of all vectors. It reads that of the first token, [CLS], alone."),
    Mistake(MODEL, "pooler-on-last", edit=("x[:, 0]", "x[:, -1]"), title="the pooler on the last token",
            says="Your pooler reads the last token, as a model from the left would. [CLS] stands first."),
    Mistake(MODEL, "pooler-unused", edit=("torch.tanh(self.pooler(x[:, 0]))", "x[:, 0]"), title="no pooler",
            says="The vector for the whole is the [CLS] vector as it is in yours: the pooler is missing."),
    Mistake(MODEL, "one-block", edit=("nn.ModuleList([\n            FinishedBlock(e, config.h, " + OPTIONS +
                                     ",\n                          epsilon=epsilon) for _ in range(config.depth)])",
                                     "nn.ModuleList([FinishedBlock(e, config.h, " + OPTIONS +
                                     ", epsilon=epsilon)] * config.depth)"),
            title="one block, many times",
            says="All your blocks are the same one, with the same weights. Make a new one for each place."),
    Mistake(MODEL, "made-anew", edit=("torch.tanh(self.pooler(x[:, 0]))",
                                     "torch.tanh(nn.Linear(x.shape[-1], x.shape[-1], device=x.device)(x[:, 0]))"),
            title="a layer made anew in forward",
            says="You make the pooler inside `forward`: new random weights at every call, which nothing trains and "
                 "nothing loads. (A much-read tutorial makes all its projections so.)"),
    Mistake(MODEL, "no-blocks", edit=("            x = block(x, seen)", "            pass"),
            title="the blocks are not used",
            says="The vectors never go through your blocks."),
    Mistake(MODEL, "order-of-results", edit=("return x, torch.tanh(self.pooler(x[:, 0]))",
                                            "return torch.tanh(self.pooler(x[:, 0])), x"),
            title="results exchanged",
            says="You return the vector for the whole first. The vectors of all tokens come first."),
    EquivalentMutant(MODEL, "mask.unsqueeze(1)", "mask.unsqueeze(-2)",
        "a mask has two axes, and -2 comes between them"),
    Accepted(MODEL, "written-out", instead=("""
        self.segments = nn.Embedding(config.segments, config.e)
        self.tokens, self.positions = nn.Embedding(config.n, config.e), nn.Embedding(config.t_max, config.e)
        options = dict(hidden=config.hidden, activation=nn.GELU(), bias=True, epsilon=config.epsilon)
        self.blocks = nn.ModuleList(FinishedBlock(config.e, config.h, **options) for _ in range(config.depth))
        self.norm, self.pooler = LayerNorm(config.e, config.epsilon), nn.Linear(config.e, config.e)
    """, """
        b, t = ids.shape
        kinds = ids.new_zeros(b, t) if segments is None else segments
        x = self.segments(kinds) + self.tokens(ids) + self.positions.weight[:t]
        x = self.norm(x)
        seen = mask[:, None, :] if mask is not None else None
        for k in range(len(self.blocks)):
            x = self.blocks[k](x, seen)
        return x, self.pooler(x[:, 0, :]).tanh()
    """)),
    Accepted(MODEL, "always-a-mask", edit=("None if mask is None else mask.unsqueeze(1)",
                                      "(torch.ones_like(ids).bool() if mask is None else mask)[:, None]")),
    Shortcut(MODEL, "finished-part", instead=("", "return finished_bert.Bert.forward(self, ids, segments, mask)")),
    # ---------------------------------------------------------------------------------------- rename_bert
    Mistake(RENAME, "gamma-left", edit=("        for theirs, ours in OURS.items():\n            name",
                                       "        for theirs, ours in list(OURS.items())[:-2]:\n            name"),
            title="gamma and beta left as they are",
            says="Old files call a norm's weight gamma and its bias beta. Left so, the norms stay at 1 and 0, and "
                 "`strict=False` says nothing of it."),
    Mistake(RENAME, "gamma-is-bias", edit=("            name = name.replace(theirs, ours)",
                                          "            name = name.replace(theirs, {'.weight': '.bias', '.bias': "
                                          "'.weight'}.get(ours, ours))"),
            title="gamma and beta exchanged",
            says="Your gamma becomes the bias. Gamma multiplies: it is the weight."),
    Mistake(RENAME, "position-ids-kept", edit=(' or name.endswith("position_ids")', ""), title="position_ids kept",
            says="position_ids is in your dict. It holds the integers 0, 1, 2, …, and is no weight."),
    Mistake(RENAME, "heads-kept", edit=('name.startswith("cls.") or ', ""), title="the heads kept",
            says="Names under cls. are in your dict: the output layers of the training, which the encoder has not."),
    Mistake(RENAME, "prefix-needed", edit=('        name = name.removeprefix("bert.")\n',
                                          '        if not name.startswith("bert."):\n            continue\n'
                                          '        name = name.removeprefix("bert.")\n'),
            title="only files with the prefix",
            says="You pass over every name without bert. before it, and so over a whole file that has no prefixes."),
    Mistake(RENAME, "prefix-left", edit=('name.removeprefix("bert.")', "name"), title="the prefix is left",
            says="Your names still begin with bert."),
    Mistake(RENAME, "query-key-exchanged",
            edit=("            name = name.replace(theirs, ours)",
                  "            name = name.replace(theirs, {'attention.to_queries.': 'attention.to_keys.', "
                  "'attention.to_keys.': 'attention.to_queries.'}.get(ours, ours))"),
            title="queries and keys exchanged",
            says="Queries and keys are exchanged in yours. Their shapes are the same, so nothing complains."),
    Mistake(RENAME, "norms-exchanged",
            edit=("            name = name.replace(theirs, ours)",
                  "            name = name.replace(theirs, {'norm1.': 'norm2.', 'norm2.': 'norm1.'}.get(ours, ours))"),
            title="norms exchanged",
            says="The two norms of a block are exchanged in yours. attention.output.LayerNorm is the first."),
    Mistake(RENAME, "pooler-left-out", edit=('name.startswith("cls.")', 'name.startswith(("cls.", "pooler."))'),
            title="the pooler left out",
            says="The pooler is part of the model, and is missing in your dict."),
    Mistake(RENAME, "segments-left-out", edit=('name.startswith("cls.")',
                                               'name.startswith("cls.") or "token_type" in name'),
            title="segments left out",
            says="The table of segments is missing in your dict. Row 0 is added to every text."),
    Mistake(RENAME, "short-names-first", edit=("in OURS.items():",
                                               "in sorted(OURS.items(), key=lambda pair: len(pair[0])):"),
            title="short names replaced first",
            says="You replace short names before the long ones that end in them: output.dense is the end of "
                 "attention.output.dense. Keep the order of OURS."),
    Mistake(RENAME, "callers-dict", edit=("    renamed = {}\n    for name, tensor in published.items():",
                                         "    renamed = {}\n    for name in list(published):\n"
                                         "        tensor = published.pop(name)"),
            title="the caller's dict is emptied",
            says="Your dict is right, and the caller's is empty afterwards."),
    Accepted(RENAME, "by-comprehension", instead="""
        def ours_of(name):
            name = name.replace("bert.", "", 1) if name.startswith("bert.") else name
            for theirs in OURS:
                name = OURS[theirs].join(name.split(theirs))
            return name

        return {ours_of(name): published[name] for name in published
                if not name.startswith("cls.") and "position_ids" not in name}
    """),
    Accepted(RENAME, "copies", edit=("renamed[name] = tensor", "renamed[name] = tensor.clone()")),
    Shortcut(RENAME, "finished-part", instead="return finished_bert.rename_bert(published)"),
    # --------------------------------------------------------------------------------- label_first_pieces
    Mistake(FIRST, "every-piece", edit=("    first[1:] &= words[1:] != words[:-1]\n", ""), title="every piece labelled",
            says="All pieces of a word have its label in yours. Only the first one has; the others have −100."),
    Mistake(FIRST, "special-labelled-0", edit=("torch.where(first, labels[words], -100)",
                                              "torch.where(first, labels[words], -100).masked_fill(words < 0, 0)"),
            title="special tokens have label 0",
            says="Special tokens have the label 0 in yours, which is a label like any other. They have −100."),
    Mistake(FIRST, "special-minus-1", edit=("torch.where(first, labels[words], -100)",
                                            "torch.where(first, labels[words], torch.where(words < 0, -1, -100))"),
            title="special tokens have -1",
            says="Special tokens come out as −1. Nothing is asked there, and the sign for that is −100."),
    Mistake(FIRST, "special-last-label", instead="""
        first = torch.ones_like(words, dtype=torch.bool)
        first[1:] = words[1:] != words[:-1]
        return torch.where(first, labels[words], -100)
    """, title="special tokens have the last word's label",
            says="An index of −1 takes the last label, so that special tokens have one in yours. They have −100."),
    Mistake(FIRST, "last-piece", instead="""
        last = words >= 0
        last[:-1] &= words[1:] != words[:-1]
        return torch.where(last, labels[words], -100)
    """, title="the label at the last piece",
            says="You put the label at each word's last piece. It belongs at the first."),
    Mistake(FIRST, "others-0", edit=("labels[words], -100)", "labels[words], 0)"), title="0 where nothing is asked",
            says="Where nothing is asked you have 0, which is a label. −100 is what the loss leaves out."),
    Mistake(FIRST, "first-never", edit=("    first[1:] &= words[1:] != words[:-1]",
                                       "    first[1:] &= words[1:] != words[:-1]\n    first[0] = False"),
            title="the first token is never labelled",
            says="Your first token never has a label. Where no special token stands before it, it is the first piece "
                 "of a word."),
    Mistake(FIRST, "in-the-order", instead="""
        targets = torch.full_like(words, -100)
        targets[: len(labels)] = labels
        return targets
    """, title="labels laid side by side",
            says="You lay the labels on the first tokens, one after the other, whatever word they are of."),
    Mistake(FIRST, "words-changed", edit=("    first = words >= 0\n",
                                         "    first = words >= 0\n    before = words.clone()\n"
                                         "    words[words < 0] = 0\n    words, ids = before, words\n"),
            title="the caller's words are changed",
            says="Your targets are right, and the caller's `words` hold other numbers afterwards."),
    EquivalentMutant(FIRST, "return torch.where(first, labels[words], -100)",
          "return torch.where(first, labels[words], -100).detach()", "integers have no gradient"),
    Accepted(FIRST, "loop", instead="""
        targets, before = [], -1
        for word in words.tolist():
            targets.append(int(labels[word]) if word >= 0 and word != before else -100)
            before = word
        return torch.tensor(targets, device=words.device)
    """),
    Accepted(FIRST, "padded-before", instead="""
        before = torch.cat([words.new_full((1,), -1), words[:-1]])
        asked = (words != before) & (words != -1)
        return labels[words.clamp(min=0)].masked_fill(~asked, -100)
    """),
    Shortcut(FIRST, "finished-part", instead="return finished_bert.label_first_pieces(labels, words)"),
    # -------------------------------------------------------------------------------------------- LowRank
    Mistake(LOW, "both-zero", edit=("torch.randn(rank, n_in) / math.sqrt(n_in)", "torch.zeros(rank, n_in)"),
            title="A and B both 0",
            says="Your A and B both start at 0. Then both gradients are 0, and the step never learns anything."),
    Mistake(LOW, "b-random", edit=("torch.zeros(n_out, rank)", "torch.randn(n_out, rank)"), title="B random",
            says="Your B starts at random numbers, so that the layer begins away from what was published. B starts "
                 "at 0."),
    Mistake(LOW, "a-zero-b-random", edit=(("torch.randn(rank, n_in) / math.sqrt(n_in)", "torch.zeros(rank, n_in)"),
                                         ("torch.zeros(n_out, rank)", "torch.randn(n_out, rank)")),
            title="A is 0 and B random",
            says="Your A starts at 0 and your B at random numbers. It is the other way round here."),
    Mistake(LOW, "a-ones", edit=("torch.randn(rank, n_in) / math.sqrt(n_in)", "torch.ones(rank, n_in)"),
            title="all rows of A alike",
            says="All rows of your A are alike, so that all of them learn the same: a step of rank 1. Draw them."),
    Mistake(LOW, "layer-of-its-own", edit=("linear.requires_grad_(False)",
                                           "nn.Linear(n_in, n_out).requires_grad_(False)"),
            title="a new layer in the place of the given one",
            says="Your layer makes an nn.Linear of its own, with random weights. It has to keep the one that it is "
                 "given: what was trained is in there."),
    Mistake(LOW, "not-frozen", edit=("linear.requires_grad_(False)", "linear"), title="the given weight learns too",
            says="The given layer still learns in yours. It is frozen; only A and B learn."),
    Mistake(LOW, "bias-not-frozen", edit=("self.linear = linear.requires_grad_(False)",
                                         "self.linear = linear\n        self.linear.weight.requires_grad_(False)"),
            title="the bias learns too",
            says="The given layer's bias still learns in yours. Freeze it with the weight."),
    Mistake(LOW, "no-scale", edit=("alpha / rank, False", "1.0, False"), title="no scale",
            says="Your step has no factor α/r."),
    Mistake(LOW, "alpha-alone", edit=("alpha / rank, False", "alpha, False"), title="α without r",
            says="Your step has the factor α. It is α/r."),
    Mistake(LOW, "rank-over-alpha", edit=("alpha / rank, False", "rank / alpha, False"), title="r/α",
            says="Your factor is r/α. It is α/r."),
    Mistake(LOW, "root-of-rank", edit=("alpha / rank, False", "alpha / math.sqrt(rank), False"), title="α/√r",
            says="You divide by the root of the rank. Here it is the rank itself."),
    Mistake(LOW, "no-step", edit=("y if self.merged else y + " + STEP, "y"), title="no step in forward",
            says="Your forward gives what the frozen layer gives. The step is added beside it."),
    Mistake(LOW, "step-alone", edit=("y if self.merged else y + " + STEP, "y if self.merged else " + STEP),
            title="the step alone",
            says="Your forward gives the step alone, without what the frozen layer gives."),
    Mistake(LOW, "twice-after-merge", edit=("y if self.merged else y + ", "y + "),
            title="the step twice after merging",
            says="After merge() your forward adds the step once more, though it is in the weight already."),
    Mistake(LOW, "merged-twice", edit=("        if not self.merged:\n"
                                       "            self.linear.weight += self.scale * self.B @ "
                                      "self.A\n            self.merged = True\n        return",
                                      "        self.linear.weight += self.scale * self.B @ self.A\n"
                                      "        self.merged = True\n        return"),
            title="merged a second time",
            says="A second merge() adds the step to the weight once more. If it is in there, leave it."),
    Mistake(LOW, "merge-no-scale", edit=("self.linear.weight += self.scale * self.B @ self.A",
                                        "self.linear.weight += self.B @ self.A"),
            title="the scale forgotten in merge",
            says="Your merge() adds B A without the factor α/r, so that the merged layer gives other outputs."),
    Mistake(LOW, "merge-not-noted", edit=("            self.merged = True\n", ""), title="the merging is not noted",
            says="Your merge() does not note that the step is in the weight now, so that forward adds it once more, "
                 "and so does the next merge()."),
    Mistake(LOW, "merge-minus", edit=("self.linear.weight += self.scale", "self.linear.weight -= self.scale"),
            title="the step subtracted in merge", says="Your merge() subtracts the step. It is added."),
    Mistake(LOW, "merge-nothing", edit=("            self.linear.weight += self.scale * self.B @ self.A\n", ""),
            title="nothing is merged",
            says="Your merge() returns the layer as it was given, without the step in it."),
    Mistake(LOW, "merged-without-bias", edit=("        return self.linear\n",
                                             "        plain = nn.Linear(self.linear.in_features, "
                                             "self.linear.out_features, "
                                             "bias=False)\n        plain.weight.copy_(self.linear.weight)\n"
                                             "        return plain\n"),
            title="the bias lost in merging",
            says="The layer that your merge() returns has no bias, where the given one has."),
    Mistake(LOW, "unmerge-nothing", edit=("            self.linear.weight -= self.scale * self.B @ self.A\n", ""),
            title="nothing is taken back",
            says="Your unmerge() notes that the step is out, and leaves it in the weight."),
    Mistake(LOW, "unmerge-always", edit=("        if self.merged:\n"
                                         "            self.linear.weight -= self.scale * self.B @ "
                                        "self.A\n            self.merged = False",
                                        "        self.linear.weight -= self.scale * self.B @ self.A\n"
                                        "        self.merged = False"),
            title="taken back though it was not in there",
            says="Your unmerge() subtracts the step even where it was never merged."),
    Mistake(LOW, "unmerge-not-noted", edit=("            self.merged = False\n", ""),
            title="the unmerging is not noted",
            says="After unmerge() your layer still takes itself for merged, and leaves the step out of forward."),
    Mistake(LOW, "unmerge-no-scale", edit=("self.linear.weight -= self.scale * self.B @ self.A",
                                          "self.linear.weight -= self.B @ self.A"),
            title="the scale forgotten in unmerge",
            says="Your unmerge() takes back B A without the factor α/r, which is not what merge() added."),
    EquivalentMutant(LOW, "self.A", "self.A.detach()", "in merge and unmerge there is no gradient"),
    EquivalentMutant(LOW, "self.B", "self.B.detach()", "in merge and unmerge there is no gradient"),
    EquivalentMutant(LOW, "torch.randn(rank, n_in) / math.sqrt(n_in)", "math.sqrt(n_in) / torch.randn(rank, n_in)",
          "how large A starts is free"),
    EquivalentMutant(LOW, "torch.randn(rank, n_in) / math.sqrt(n_in)", "torch.randn(rank, n_in)",
        "how large A starts is free"),
    EquivalentMutant(LOW, "torch.randn(rank, n_in) / math.sqrt(n_in)", "torch.randn(rank, n_in) * math.sqrt(n_in)",
          "how large A starts is free"),
    EquivalentMutant(LOW, "math.sqrt(n_in)", "n_in", "how large A starts is free"),
    Accepted(LOW, "a-new-layer", instead=("""
        self.linear, self.factor = linear, alpha / rank
        for parameter in linear.parameters():
            parameter.requires_grad = False
        self.B = nn.Parameter(torch.zeros(n_out, rank))
        self.A = nn.Parameter(nn.init.kaiming_uniform_(torch.empty(rank, n_in), a=math.sqrt(5)))
    """, """
        return self.linear(x) + F.linear(F.linear(x, self.A), self.B) * self.factor
    """, """
        new = nn.Linear(self.linear.in_features, self.linear.out_features, bias=self.linear.bias is not None)
        new.weight.copy_(self.linear.weight + self.factor * (self.B @ self.A))
        if self.linear.bias is not None:
            new.bias.copy_(self.linear.bias)
        return new
    """, "pass")),
    Accepted(LOW, "the-weight-at-once", edit=("return y if self.merged else y + " + STEP,
                                         "if self.merged:\n            return y\n"
                                         "        return F.linear(x, self.linear.weight + "
                                         "self.scale * self.B @ self.A, "
                                         "self.linear.bias)")),
    Shortcut(LOW, "finished-part", instead=("", "return finished_bert.LowRank.forward(self, x)", "", "")),
]
