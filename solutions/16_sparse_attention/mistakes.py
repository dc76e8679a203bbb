"""What students get wrong in lesson 16, and what to tell them."""

from helpers.authoring import Accepted, EquivalentMutant, Mistake, Shortcut

LOCAL, STRIDED, FIXED, PAIRS, CONNECTED, BAND, MERGE, TILED = (
    "local_mask",
    "strided_masks",
    "fixed_masks",
    "attended_pairs",
    "connected",
    "banded_attention",
    "merge",
    "tiled_attention",
)
MADE_ON_THE_CPU = "Your mask is made on the CPU, whatever device was asked for. Hand device=device to the arange."

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ---------------------------------------------------------------------------------------- local_mask
    # as `transformers` handed it to the flash kernel
    Mistake(LOCAL, "unchanged", instead="return (j <= i) & (j >= i - w)", title="w + 1 positions",
            says="A row of yours sees w + 1 positions: from i − w to i, both counted. With w = 1 a position should see "
                 "itself alone."),
    Mistake(LOCAL, "one-too-few", instead="return (j <= i) & (j > i - w + 1)", title="w − 1 positions",
            says="A row of yours sees w − 1 positions. The window counts the position itself: with w = 1 it sees "
                 "itself."),
    Mistake(LOCAL, "looks-ahead", instead="return (j - i).abs() < w", title="a window on both sides",
            says="Your window reaches as far ahead as back. It is causal: j ≤ i."),
    Mistake(LOCAL, "without-itself", instead="return (j < i) & (j >= i - w)", title="a position may not see itself",
            says="Your window holds w positions before i and not i itself. It counts the position itself."),
    Mistake(LOCAL, "transposed", instead="return (i <= j) & (i > j - w)", title="rows and columns exchanged",
            says="Your mask is the transposed one: position i sees itself and what comes *after*. Row i is for the "
                 "position that looks."),
    Mistake(LOCAL, "no-far-end", instead="return j <= i", title="no window at all",
            says="Yours is the whole causal triangle. What lies w or more back has to be hidden."),
    Mistake(LOCAL, "far-end-alone", instead="return j > i - w", title="the future is open",
            says="Nothing stops your window on the right: each position sees all that comes later."),
    Mistake(LOCAL, "chunks", instead="return (j <= i) & (j // w == i // w)", title="blocks in place of a window",
            says="Your positions see their own block of w. A window moves along with the position: the last row of a "
                 "block has one, the first has none."),
    Mistake(LOCAL, "on-the-cpu", edit=("torch.arange(t, device=device)", "torch.arange(t)"),
            title="made on the CPU", says=MADE_ON_THE_CPU),
    EquivalentMutant(LOCAL, "return (j <= i) & (j > i - w)", "return ((j <= i) & (j > i - w)).detach()",
          "booleans have no gradient"),
    Accepted(LOCAL, "two-triangles", instead="""
        everything = torch.ones(t, t, dtype=torch.bool, device=device)
        return everything.tril() & everything.triu(1 - w)
    """),
    Accepted(LOCAL, "distance", instead="""
        distance = i - j
        return torch.logical_and(distance >= 0, distance < w)
    """),
    # ------------------------------------------------------------------------------------- strided_masks
    Mistake(STRIDED, "sum-of-places", edit=("distance % l == 0", "(places[:, None] + places) % l == 0"),
            title="i + j in place of i − j",
            says="Your second half asks for (i + j) mod l. Positions l apart have the same remainder when their "
                 "*distance* is a multiple of l."),
    Mistake(STRIDED, "window-of-l", edit=("distance <= l", "distance < l"), title="a window of l in place of l + 1",
            says="Your first half has l positions. The paper's set goes from i − l to i, both counted: l + 1."),
    Mistake(STRIDED, "stride-ahead", edit=("past & (distance % l == 0)", "distance % l == 0"),
            title="the stride looks ahead",
            says="Your second half reaches into the future: in PyTorch −3 % 3 is 0 too. Both halves are causal."),
    Mistake(STRIDED, "near-ahead", edit=("past & (distance <= l)", "distance <= l"), title="the near half looks ahead",
            says="In your first half all later positions can be seen, for their distance is negative and so below l."),
    Mistake(STRIDED, "stride-twice", edit=("past & (distance <= l)", "past & (distance % l == 0)"),
            title="the stride in both halves",
            says="Both your halves are the stride. Then positions of different remainders never meet; the first half "
                 "is what is near."),
    Mistake(STRIDED, "near-twice", edit=("past & (distance % l == 0)", "past & (distance <= l)"),
            title="the near half twice", says="Both your halves are what is near. The second one is every l-th "
                                              "position back from i."),
    Mistake(STRIDED, "exchanged",
            edit=("[past & (distance <= l), past & (distance % l == 0)]",
                  "[past & (distance % l == 0), past & (distance <= l)]"), title="the halves exchanged",
            says="Your halves are the right ones in the other order: first what is near, then the stride."),
    Mistake(STRIDED, "without-itself", edit=("distance >= 0", "distance > 0"), title="a position may not see itself",
            says="In your masks no position sees itself. Distance 0 belongs to both halves."),
    Mistake(STRIDED, "columns", edit=("distance % l == 0", "places % l == 0"), title="columns in place of diagonals",
            says="Your second half holds every l-th *column*, the same for all rows. Strided attention counts from "
                 "the position that looks."),
    Mistake(STRIDED, "union", edit=("torch.stack([past & (distance <= l), past & (distance % l == 0)])",
                                    "past & ((distance <= l) | (distance % l == 0))"), title="both halves in one mask",
            says="You return one mask, (t, t), which is both halves at once. Two are asked for, (2, t, t), for two "
                 "kinds of heads."),
    Mistake(STRIDED, "on-the-cpu", edit=("torch.arange(t, device=device)", "torch.arange(t)"),
            title="made on the CPU", says=MADE_ON_THE_CPU),
    Mistake(STRIDED, "block", edit=("past & (distance <= l)", "past & (places[:, None] // l == places // l)"),
            title="blocks in place of what is near",
            says="Your first half is the block that i stands in: that is the fixed pattern. Here it is what is near, "
                 "from i − l to i."),
    EquivalentMutant(STRIDED, "return torch.stack([past & (distance <= l), past & (distance % l == 0)])",
          "return torch.stack([past & (distance <= l), past & (distance % l == 0)]).detach()",
          "booleans have no gradient"),
    Accepted(STRIDED, "loops", instead="""
        masks = torch.zeros(2, t, t, dtype=torch.bool, device=device)
        for i in range(t):
            masks[0, i, max(0, i - l):i + 1] = True
            masks[1, i, i % l:i + 1:l] = True
        return masks
    """),
    Accepted(STRIDED, "triangles", instead="""
        i, j = torch.arange(t, device=device).unsqueeze(-1), torch.arange(t, device=device)
        near = torch.ones(t, t, dtype=torch.bool, device=device).tril().triu(-l)
        far = ((i - j).remainder(l) == 0).tril()
        return torch.stack((near, far), dim=0)
    """),
    # --------------------------------------------------------------------------------------- fixed_masks
    Mistake(FIXED, "columns-in-front", edit=("places % l >= l - c", "places % l < c"),
            title="the first columns of each block",
            says="Your summary columns stand at the beginning of each block, where nothing of the block has been read. "
                 "They are its last c."),
    Mistake(FIXED, "one-column-too-many", edit=("places % l >= l - c", "places % l >= l - c - 1"),
            title="c + 1 columns", says="Your blocks have c + 1 summary columns. The last c are those from l − c to "
                                        "l − 1."),
    Mistake(FIXED, "one-column-too-few", edit=("places % l >= l - c", "places % l > l - c"), title="c − 1 columns",
            says="Your blocks have c − 1 summary columns: with c = 1 there is none."),
    Mistake(FIXED, "wraps", edit=("places % l >= l - c", "(places % l >= l - c) | (places % l == 0)"),
            title="the next block's first column too",
            says="Your summary columns go one too far and wrap into the next block's first. They are l − c to l − 1."),
    Mistake(FIXED, "c-ignored", edit=("places % l >= l - c", "places % l >= l - 1"), title="c is not used",
            says="With c = 1 your masks are right, and with other c they are the same. The last c columns are the "
                 "summary."),
    Mistake(FIXED, "blocks-from-one", edit=("places[:, None] // l == places // l",
                                            "(places[:, None] + 1) // l == (places + 1) // l"),
            title="blocks counted from 1",
            says="Your first block is one position short: you count positions from 1. They begin at 0."),
    Mistake(FIXED, "block-ahead", edit=("past & same_block", "same_block"), title="the block looks ahead",
            says="In your first half a position sees its whole block, also what comes later. Both halves are causal."),
    Mistake(FIXED, "summary-ahead", edit=("past & summary", "summary.expand(t, t)"),
            title="summaries of the future",
            says="Your second half shows the summary columns of later blocks too. Both halves are causal."),
    Mistake(FIXED, "window", edit=("past & same_block", "past & (places[:, None] - places < l)"),
            title="a window in place of the block",
            says="Your first half is a window of l positions. The fixed pattern's block stands still: the first "
                 "position of a block sees itself alone."),
    Mistake(FIXED, "summary-rows", edit=("summary = places % l >= l - c", "summary = (places % l >= l - c)[:, None]"),
            title="summary rows in place of columns",
            says="In your second half the summary positions *see* everything. They are to *be seen*: a column each, "
                 "not a row."),
    Mistake(FIXED, "exchanged", edit=("[past & same_block, past & summary]", "[past & summary, past & same_block]"),
            title="the halves exchanged", says="Your halves are the right ones in the other order: first the block, "
                                               "then the summary columns."),
    Mistake(FIXED, "itself-added", edit=("past & summary])",
                                         "past & summary | torch.eye(t, dtype=torch.bool, device=device)])"),
            title="the diagonal in the second half",
            says="In your second half each position sees itself too. The set holds the summary columns and nothing "
                 "else; rows may be empty."),
    Mistake(FIXED, "without-itself", edit=("places[:, None] >= places", "places[:, None] > places"),
            title="a position may not see itself",
            says="In your masks no position sees itself. It is in its own block, and j = i is allowed."),
    Mistake(FIXED, "on-the-cpu", edit=("torch.arange(t, device=device)", "torch.arange(t)"),
            title="made on the CPU", says=MADE_ON_THE_CPU),
    EquivalentMutant(FIXED, "return torch.stack([past & same_block, past & summary])",
          "return torch.stack([past & same_block, past & summary]).detach()", "booleans have no gradient"),
    Accepted(FIXED, "loops", instead="""
        rows = [[[j <= i and j // l == i // l for j in range(t)] for i in range(t)],
                [[j <= i and j % l in range(l - c, l) for j in range(t)] for i in range(t)]]
        return torch.tensor(rows, device=device)
    """),
    Accepted(FIXED, "tril", instead="""
        block = torch.arange(t, device=device).div(l, rounding_mode="floor")
        column = torch.arange(t, device=device).remainder(l)
        same = (block.unsqueeze(0) == block.unsqueeze(1)).tril()
        summary = (column > l - c - 1).repeat(t, 1).tril()
        return torch.stack([same, summary])
    """),
    # ------------------------------------------------------------------------------------ attended_pairs
    Mistake(PAIRS, "not-causal", edit=("t * (t + 1) // 2", "t * t"), title="full: both triangles",
            says="You count all t² pairs as full. It is causal: row i has i + 1."),
    Mistake(PAIRS, "full-without-itself", edit=("t * (t + 1) // 2", "t * (t - 1) // 2"),
            title="full: without the diagonal",
            says="Your triangle leaves the diagonal out. A position sees itself: 1 + 2 + … + t."),
    Mistake(PAIRS, "local-without-corner", edit=("return t * l - l * (l - 1) // 2", "return t * l"),
            title="local: the first rows are shorter",
            says="You give every row l pairs in the window. The first l − 1 rows have fewer, for nothing stands "
                 "before the text."),
    Mistake(PAIRS, "local-corner-one-larger",
            edit=("return t * l - l * (l - 1) // 2", "return t * l - l * (l + 1) // 2"),
            title="local: too much taken off",
            says="You take 1 + … + l off the window. The first row lacks l − 1, the next l − 2: 1 + … + (l − 1)."),
    Mistake(PAIRS, "near-of-l", edit=("near = t * (l + 1) - (l + 1) * l // 2", "near = t * l - l * (l - 1) // 2"),
            title="strided: a window of l",
            says="Your near half is a window of l. From i − l to i there are l + 1 positions."),
    Mistake(PAIRS, "stride-full", edit=("return near + l * blocks * (blocks + 1) // 2", "return near + t * blocks"),
            title="strided: each row a whole stride",
            says="You give each row t/l pairs on the stride. Row 0 has one: the stride goes back only."),
    Mistake(PAIRS, "stride-without-itself",
            edit=("return near + l * blocks * (blocks + 1) // 2", "return near + l * blocks * (blocks - 1) // 2"),
            title="strided: the stride without its own position",
            says="Your stride leaves the position itself out. Its distance, 0, is a multiple of l, and the halves are "
                 "counted each by itself."),
    Mistake(PAIRS, "union", edit=("return near + l * blocks * (blocks + 1) // 2",
                                  "return near + l * blocks * (blocks + 1) // 2 - t - (t - l)"),
            title="strided: the union",
            says="You count what is in both halves once. The halves are two masks in two kinds of heads: add them up."),
    Mistake(PAIRS, "square-blocks", edit=("blocks * l * (l + 1) // 2", "blocks * l * l"),
            title="fixed: blocks that look ahead", says="You count l² pairs in a block. It is a causal triangle."),
    Mistake(PAIRS, "own-summary-missing",
            edit=("l * blocks * (blocks - 1) // 2 + blocks", "l * blocks * (blocks - 1) // 2"),
            title="fixed: a summary does not see itself",
            says="In your second half the last position of a block does not see its own column. It does: j ≤ i."),
    Mistake(PAIRS, "summary-of-own-block",
            edit=("l * blocks * (blocks - 1) // 2 + blocks", "l * blocks * (blocks + 1) // 2"),
            title="fixed: summaries of the future",
            says="You let every position see the summary column of its own block. For all but the last it lies in the "
                 "future."),
    Mistake(PAIRS, "block-alone",
            edit=("return triangles + l * blocks * (blocks - 1) // 2 + blocks", "return triangles"),
            title="fixed: one half alone", says="You count the blocks alone. The summary columns are the other half."),
    Mistake(PAIRS, "magnitude", instead="""
        if kind == "full":
            return t * t
        return t * l if kind == "local" else t * (l + t // l)
    """, title="the order of magnitude",
            says="Yours are the orders of magnitude, l + t/l a row. The first rows have fewer pairs; add up what each "
                 "row really has."),
    Accepted(PAIRS, "sums", instead="""
        rest = range(l)
        if kind == "full":
            return (t * t + t) // 2
        if kind == "local":
            return sum(a + 1 for a in rest) + (t - l) * l
        n = t // l
        if kind == "strided":
            return sum(a + 1 for a in rest) + (t - l) * (l + 1) + l * sum(range(1, n + 1))
        return n * sum(a + 1 for a in rest) + l * sum(range(n)) + n
    """),
    Accepted(PAIRS, "fractions", instead="""
        n = t / l
        found = {"full": 0.5 * t * (t + 1), "local": l * (t - 0.5 * (l - 1)),
                 "strided": (l + 1) * (t - 0.5 * l) + 0.5 * t * (n + 1),
                 "fixed": 0.5 * t * (l + 1) + 0.5 * t * (n - 1) + n}
        return int(found[kind])
    """),
    # ----------------------------------------------------------------------------------------- connected
    Mistake(CONNECTED, "no-shortcut", edit=("(mask | itself).float()", "mask.float()"),
            title="the residual connection forgotten",
            says="In your product a position that does not see itself loses what it knew. The residual connection "
                 "keeps it: each layer passes on to itself, whatever its mask says."),
    Mistake(CONNECTED, "order",
            edit=("(mask | itself).float() @ reach.float()", "reach.float() @ (mask | itself).float()"),
            title="the layers in the wrong order",
            says="You multiply from the other side, as if the last layer came first. The output reads through the last "
                 "layer: it stands on the left."),
    Mistake(CONNECTED, "one-hop", edit=("(mask | itself).float() @ reach.float() > 0", "reach | mask"),
            title="one step in any layer",
            says="You join the masks: a pair is connected when one layer connects it. What is handed on from layer to "
                 "layer is missing, and that is what depth is for."),
    Mistake(CONNECTED, "counts", edit=("return reach", "return (masks[-1] | itself).float() @ reach.float()"),
            title="counts in place of booleans", says="You return how many ways there are. Asked is whether there is "
                                                      "one: booleans."),
    Mistake(CONNECTED, "last-layer", edit=("(mask | itself).float() @ reach.float() > 0", "mask | itself"),
            title="the last layer alone", says="Your loop forgets what the layers below did: yours is the mask of the "
                                               "last layer."),
    Mistake(CONNECTED, "first-layer-alone", edit=("return reach", "return masks[0] | itself"),
            title="the first layer alone", says="You return what the first layer connects; the others are left out."),
    Mistake(CONNECTED, "transposed", edit=("return reach", "return reach.T"), title="rows and columns exchanged",
            says="Your result is the transposed one. Row i is for the output, as in the masks."),
    Mistake(CONNECTED, "same-layer", edit=("for mask in masks:", "for mask in [masks[-1]] * len(masks):"),
            title="the last layer's mask in every layer",
            says="You use one mask for all layers. Each layer has its own."),
    Mistake(CONNECTED, "every-way", edit=("@ reach.float() > 0", "@ reach.float() == 1"), title="exactly one way",
            says="You ask for exactly one way. Where there are several, the pair is connected too."),
    EquivalentMutant(CONNECTED, "return reach", "return reach.detach()", "booleans have no gradient"),
    EquivalentMutant(CONNECTED, "masks[0]", "masks[-1]", "all masks are of one size and on one device"),
    EquivalentMutant(CONNECTED, "masks[0].shape[0]", "masks[0].shape[1]", "a mask is square"),
    EquivalentMutant(CONNECTED, "masks[0].shape[0]", "masks[0].shape[-1]", "a mask is square"),
    Accepted(CONNECTED, "any", instead="""
        t = masks[0].shape[-1]
        found = torch.eye(t, dtype=torch.bool, device=masks[0].device)
        for mask in masks:
            through = (mask[:, :, None] & found[None]).any(dim=1)
            found = through | found
        return found
    """),
    Accepted(CONNECTED, "backwards", instead="""
        t = masks[0].shape[-1]
        found = torch.eye(t, device=masks[0].device)
        for mask in reversed(masks):
            found = found @ (mask + torch.eye(t, device=mask.device)).clamp(max=1)
        return found.bool()
    """),
    # ---------------------------------------------------------------------------------- banded_attention
    Mistake(BAND, "zeros-as-keys",
            edit=("    seen[0] &= j >= w                                           # nothing before chunk 0\n", ""),
            title="the padding in front is looked at",
            says="Your first chunk gives weight to the zeros in front of the text. A key of zeros has the score 0 and "
                 "takes its share: mask it."),
    Mistake(BAND, "islands", edit=("seen[0] &= j >= w", "seen &= j >= w"), title="each chunk by itself",
            says="Your chunks do not see the chunk before. The window of most queries reaches into it."),
    Mistake(BAND, "window-of-chunks", edit=("(j <= i) & (j > i - w)", "(j <= i)"), title="up to 2w positions",
            says="Your queries see the whole chunk before, up to 2w positions in all. The window is w wide for each."),
    Mistake(BAND, "one-too-many", edit=("j > i - w", "j >= i - w"), title="w + 1 positions",
            says="Your window holds w + 1 positions: itself and w more. It counts itself."),
    Mistake(BAND, "one-too-few", edit=("j > i - w)", "j > i - w + 1)"), title="w − 1 positions",
            says="Your window holds w − 1 positions. With w = 1 a position sees itself."),
    Mistake(BAND, "looks-ahead", edit=("(j <= i) & (j > i - w)", "(j > i - w)"), title="the rest of the chunk is seen",
            says="Your queries see what comes later in their own chunk."),
    Mistake(BAND, "all-pairs", instead="""
        t, d = q.shape[-2:]
        places = torch.arange(t, device=q.device)
        distance = places[:, None] - places
        seen = (distance >= 0) & (distance < w)
        scores = (q @ k.mT / math.sqrt(d)).masked_fill(~seen, -math.inf)
        return torch.softmax(scores, dim=-1) @ v
    """, title="all pairs, and a mask",
            says="Your numbers are right, and you compute all t² scores to get them. Gather the keys of each chunk: "
                 "nothing larger than (b, h, t/w, w, 2w) has to be made."),
    Mistake(BAND, "no-scale", edit=("queries @ keys / math.sqrt(d)", "queries @ keys"), title="not divided by √d",
            says="Your scores are not divided by √d."),
    Mistake(BAND, "scale-by-w", edit=("math.sqrt(d) ", "math.sqrt(w) "), title="divided by another root",
            says="You divide by the root of w. It is the width d of a head."),
    Mistake(BAND, "values-of-the-next", edit=("F.pad(v, (0, 0, w, rest))", "F.pad(v, (0, 0, 0, rest + w))"),
            title="values cut differently from keys",
            says="Your values are not cut as the keys are: a weight meets the value of another position. Pad both in "
                 "front."),
    Mistake(BAND, "next-chunk", edit=(("F.pad(k, (0, 0, w, rest))", "F.pad(k, (0, 0, 0, rest + w))"),
                                      ("F.pad(v, (0, 0, w, rest))", "F.pad(v, (0, 0, 0, rest + w))")),
            title="the next chunk in place of the one before",
            says="You padded behind, so each chunk meets itself and the *next* one. It needs the one before: pad in "
                 "front."),
    Mistake(BAND, "not-cut", edit=("[:, :, :t]", ""), title="the padding comes out too",
            says="Where w does not divide t, your result has more than t rows: the padding is still there."),
    Mistake(BAND, "last-chunk-dropped",
            edit=((".reshape(b, h, chunks * w, d)[:, :, :t]",
                   ".reshape(b, h, chunks * w, d)[:, :, :max(w, t // w * w)][:, :, :t]"),),
            title="the last chunk is dropped",
            says="Where w does not divide t, the last positions are missing from your result. Fill the last chunk up, "
                 "and cut the padding off at the end."),
    Mistake(BAND, "softmax-over-queries",
            edit=("-math.inf), dim=-1)", "-1e9), dim=-2)"), title="softmax over the queries",
            says="Your weights add up to 1 over the queries of a chunk. Each query's weights over its keys do."),
    Mistake(BAND, "masked-after", edit=("torch.softmax(scores.masked_fill(~seen, -math.inf), dim=-1)",
                                        "torch.softmax(scores, dim=-1) * seen"), title="masked after the softmax",
            says="You mask after the softmax, so the weights no longer add up to 1. Before it, with −∞."),
    Mistake(BAND, "detached", edit=("F.pad(v, (0, 0, w, rest))", "F.pad(v.detach(), (0, 0, w, rest))"),
            title="no gradient for the values", says="Your result is right, and no gradient reaches the values."),
    EquivalentMutant(BAND, "scores.masked_fill(~seen, -math.inf)", "scores.masked_fill_(~seen, -math.inf)",
          "the scores are the function's own"),
    EquivalentMutant(BAND, "q", "k", "of one shape, and on one device"),
    EquivalentMutant(BAND, "q", "v", "of one shape, and on one device"),
    Accepted(BAND, "a-window-for-each-query", instead="""
        t, d = q.shape[-2:]
        places = torch.arange(t, device=q.device)[:, None] - torch.arange(w, device=q.device)    # (t, w)
        near = places.clamp(min=0)
        scores = torch.einsum("bhtd,bhtwd->bhtw", q, k[:, :, near]) / d ** 0.5
        weights = scores.masked_fill(places < 0, -math.inf).softmax(-1)
        return torch.einsum("bhtw,bhtwd->bhtd", weights, v[:, :, near])
    """),
    Accepted(BAND, "loop-over-chunks", instead="""
        parts = []
        for start in range(0, q.shape[2], w):
            first = max(0, start - w)
            a, c, x = q[:, :, start:start + w], k[:, :, first:start + w], v[:, :, first:start + w]
            i = torch.arange(start, start + a.shape[2], device=q.device)[:, None]
            j = torch.arange(first, first + c.shape[2], device=q.device)
            seen = (j <= i) & (i - j < w)
            parts.append(F.scaled_dot_product_attention(a, c, x, attn_mask=seen))
        return torch.cat(parts, dim=2)
    """),
    Accepted(BAND, "window-by-unfold", instead="""
        t, d = q.shape[-2:]
        keys = F.pad(k, (0, 0, w - 1, 0)).unfold(2, w, 1)    # (b, h, t, d, w)
        values = F.pad(v, (0, 0, w - 1, 0)).unfold(2, w, 1)
        i = torch.arange(t, device=q.device)[:, None]
        real = i - (w - 1) + torch.arange(w, device=q.device) >= 0
        scores = (q.unsqueeze(-2) @ keys).squeeze(-2) / math.sqrt(d)
        weights = torch.softmax(scores.where(real, scores.new_tensor(-1e30)), -1)
        return (values @ weights.unsqueeze(-1)).squeeze(-1)
    """),
    Shortcut(BAND, "flex", instead="""
        def near(batch, head, i, j):
            return (j <= i) & (i - j < w)
        t = q.shape[2]
        return flex_attention(q, k, v, block_mask=create_block_mask(near, None, None, t, t, device=str(q.device)))
    """),
    # --------------------------------------------------------------------------------------------- merge
    Mistake(MERGE, "sum-not-rescaled", edit=("keep_a * l_a + keep_b * l_b", "l_a + l_b"),
            title="the sums are not rescaled",
            says="You add the sums as they are. Each was taken relative to its own maximum: bring both to the new one "
                 "first."),
    Mistake(MERGE, "output-not-rescaled", edit=("keep_a[..., None] * o_a + keep_b[..., None] * o_b", "o_a + o_b"),
            title="the outputs are not rescaled",
            says="Your sum is right, and the weighted sums are added as they are. They need the same factors."),
    Mistake(MERGE, "the-wrong-way", edit=("torch.exp(m_a - finite), torch.exp(m_b - finite)",
                                          "torch.exp(finite - m_a), torch.exp(finite - m_b)"),
            title="rescaled the wrong way",
            says="Your factors are e^(m' − m), which is 1 or more. What was summed relative to a smaller maximum is "
                 "too large and has to shrink."),
    Mistake(MERGE, "nan", edit=("m.masked_fill(m == -math.inf, 0.0)", "m"), title="−∞ − (−∞)",
            says="Where both parts have seen nothing, you compute −∞ − (−∞), which is NaN. Take any finite reference "
                 "there."),
    Mistake(MERGE, "newest-maximum", edit=("torch.maximum(m_a, m_b)", "m_b"), title="the second maximum alone",
            says="You take the second part's maximum for both. The larger of the two is the maximum of all; otherwise "
                 "the powers overflow."),
    Mistake(MERGE, "first-maximum", edit=("torch.maximum(m_a, m_b)", "m_a"), title="the first maximum alone",
            says="You keep the first part's maximum. If the second has larger scores, their powers overflow."),
    Mistake(MERGE, "from-zero", edit=("m = torch.maximum(m_a, m_b)", "m = torch.maximum(m_a, m_b).clamp(min=0)"),
            title="a maximum of at least 0",
            says="Your maximum never falls below 0. Where all scores are very negative, all powers vanish and 0/0 is "
                 "left."),
    Mistake(MERGE, "divided", edit=("return m, total, keep_a[..., None] * o_a + keep_b[..., None] * o_b",
                                    "return m, total, (keep_a[..., None] * o_a + keep_b[..., None] * o_b)"
                                    " / total[..., None]"), title="divided already",
            says="You divide by the sum in every merge. What is merged are sums; the division comes once, at the very "
                 "end."),
    Mistake(MERGE, "averaged", edit=("keep_a[..., None] * o_a + keep_b[..., None] * o_b", "(o_a + o_b) / 2"),
            title="the mean of both", says="You return the mean of the weighted sums. They have to be rescaled and "
                                           "added."),
    Mistake(MERGE, "weighted-by-sums", edit=("keep_a[..., None] * o_a + keep_b[..., None] * o_b",
                                             "(keep_a * l_a)[..., None] * o_a + (keep_b * l_b)[..., None] * o_b"),
            title="multiplied with the sums",
            says="You multiply the weighted sums with ℓ, as if they were divided by it. They are not."),
    Mistake(MERGE, "maxima-added", edit=("return m, total", "return m_a + m_b, total"), title="maxima added up",
            says="You return the sum of the maxima. The maximum over all keys is the larger of the two."),
    Mistake(MERGE, "powers-of-two", edit=("torch.exp(m_a - finite), torch.exp(m_b - finite)",
                                          "torch.exp2(m_a - finite), torch.exp2(m_b - finite)"),
            title="powers of 2",
            says="Your factors are powers of 2. The scores stand in the exponent of e."),
    Mistake(MERGE, "logarithm", edit=("return m, total", "return m, total.log() + m"), title="the logarithm of the sum",
            says="Your second entry is the logarithm of the whole sum. A useful number; asked is ℓ, relative to m."),
    EquivalentMutant(MERGE, "torch.maximum(m_a, m_b)", "torch.maximum(m_b, m_a)", "the larger of two"),
    EquivalentMutant(MERGE, "0.0", "1.0", "any finite reference will do"),
    Accepted(MERGE, "where", instead="""
        (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
        m = torch.where(m_a > m_b, m_a, m_b)
        reference = m.clamp(min=torch.finfo(m.dtype).min)
        f, g = (m_a - reference).exp(), (m_b - reference).exp()
        return (m, f * l_a + g * l_b, o_a * f.unsqueeze(-1) + o_b * g.unsqueeze(-1))
    """),
    Accepted(MERGE, "stacked", instead="""
        m_both, l_both = torch.stack([a[0], b[0]]), torch.stack([a[1], b[1]])
        m = m_both.amax(0)
        factors = torch.exp(m_both - torch.where(m.isinf(), torch.zeros_like(m), m))
        out = (factors.unsqueeze(-1) * torch.stack([a[2], b[2]])).sum(0)
        return m, (factors * l_both).sum(0), out
    """),
    Shortcut(MERGE, "finished-part", instead="return finished_merge(a, b)"),
    # ----------------------------------------------------------------------------------- tiled_attention
    Mistake(TILED, "no-mask", edit=("if causal:", "if False:"), title="the future is seen",
            says="Nothing is masked in your tiles: each query sees all keys, causal or not."),
    Mistake(TILED, "always-causal", edit=("if causal:", "if True:"), title="causal whatever was asked",
            says="With causal=False your queries still cannot look ahead."),
    Mistake(TILED, "upper-left", edit=("[:, None] + s - t", "[:, None]"), title="aligned in the upper left corner",
            says="With more keys than queries your triangle begins in the upper left corner: the first query sees key "
                 "0 alone. The last query sees all s keys: i + (s − t)."),
    Mistake(TILED, "diagonal-hidden", edit=("j > i,", "j >= i,"), title="a position may not see itself",
            says="Your mask hides each query's own position."),
    Mistake(TILED, "within-the-tile", edit=("torch.arange(start, start + keys.shape[-2], device=q.device)",
                                            "torch.arange(keys.shape[-2], device=q.device)"),
            title="places counted from each tile's beginning",
            says="In every tile your keys are counted from 0. The first tile is right; in the later ones the triangle "
                 "stands in the wrong place."),
    Mistake(TILED, "last-tile-dropped", edit=("range(0, s, tile)", "range(0, max(s - tile, 0) + 1, tile)"),
            title="a shorter last tile is left out",
            says="Where the tile does not divide s, your loop ends too early: the last keys are never seen."),
    Mistake(TILED, "nan", edit=("m.masked_fill(m == -math.inf, 0.0)", "m"), title="−∞ − (−∞)",
            says="In a tile that a query may not see at all, the maximum is −∞, and −∞ − (−∞) is NaN."),
    Mistake(TILED, "not-divided", edit=("return out / total[..., None]", "return out"), title="not divided by ℓ",
            says="Your result is o. The attention is o/ℓ."),
    Mistake(TILED, "divided-in-every-tile",
            edit=("powers @ values)",
                  "powers @ values / powers.sum(dim=-1, keepdim=True).clamp(min=1e-9))"),
            title="divided in every tile",
            says="You divide within each tile already, so every tile counts alike. What is merged are sums; divide "
                 "once, at the end."),
    Mistake(TILED, "no-scale", edit=("q @ keys.mT / math.sqrt(d)", "q @ keys.mT"), title="not divided by √d",
            says="Your scores are not divided by √d."),
    Mistake(TILED, "scale-by-tile", edit=("/ math.sqrt(d) ", "/ math.sqrt(keys.shape[-2]) "),
            title="divided by another root",
            says="You divide by the root of the tile's length. It is the width d of a head."),
    Mistake(TILED, "no-maximum", edit=("powers = torch.exp(scores - finite[..., None])",
                                       "m = torch.zeros_like(m)\n        powers = torch.exp(scores)"),
            title="no maximum subtracted",
            says="You take powers of the bare scores. That is right until a score is above 88, where e^88 no longer "
                 "fits: subtract the maximum."),
    Mistake(TILED, "from-zero", edit=("m = scores.amax(dim=-1)", "m = scores.amax(dim=-1).clamp(min=0)"),
            title="a maximum of at least 0",
            says="Your maximum never falls below 0. Where all scores of a query are very negative, all its powers "
                 "vanish, and 0/0 is NaN."),
    Mistake(TILED, "not-merged", edit=("state = finished_merge(state, (m, powers.sum(dim=-1), powers @ values))",
                                       "state = (m, state[1] + powers.sum(dim=-1), state[2] + powers @ values)"),
            title="tiles added without rescaling",
            says="You add the tiles up as they are. Each was summed relative to its own maximum: merge them."),
    Mistake(TILED, "last-tile-only",
            edit=("finished_merge(state, (m, powers.sum(dim=-1), powers @ values))",
                  "(m, powers.sum(dim=-1), powers @ values)"), title="only the last tile counts",
            says="Each tile of yours replaces the state: only the last one counts, and a query that sees nothing of it "
                 "is left with 0/0. Merge them."),
    Mistake(TILED, "all-pairs", instead="""
        t, s, d = q.shape[-2], k.shape[-2], q.shape[-1]
        scores = q @ k.mT / math.sqrt(d)
        if causal:
            scores = scores.masked_fill(torch.ones(t, s, dtype=torch.bool, device=q.device).triu(s - t + 1), -math.inf)
        return torch.softmax(scores, dim=-1) @ v
    """, title="all pairs at once",
            says="Your numbers are right, and all t·s scores stand in one tensor. The point is never to have them all: "
                 "a tile of keys at a time."),
    Mistake(TILED, "detached", edit=("scores.amax(dim=-1)", "scores.amax(dim=-1)\n        values = values.detach()"),
            title="no gradient for the values", says="Your result is right, and no gradient reaches the values."),
    EquivalentMutant(TILED, "0.0", "1.0", "any finite reference will do"),
    EquivalentMutant(TILED, "scores.masked_fill(j > i, -math.inf)", "scores.masked_fill_(j > i, -math.inf)",
          "the scores are the function's own"),
    EquivalentMutant(TILED, "finished_merge(state, (m, powers.sum(dim=-1), powers @ values))",
          "finished_merge((m, powers.sum(dim=-1), powers @ values), state)", "which is first does not matter"),
    EquivalentMutant(TILED, "q", "k", "as wide, and on one device"),
    EquivalentMutant(TILED, "q", "v", "as wide, and on one device"),
    EquivalentMutant(TILED, "k", "v", "there are as many keys as values"),
    EquivalentMutant(TILED, "keys", "values", "a tile has as many keys as values"),
    EquivalentMutant(TILED, "0", "1", "each component has the shape that is wanted"),
    Accepted(TILED, "by-hand", instead="""
        t, s = q.shape[-2], k.shape[-2]
        m = torch.full(q.shape[:-1], -1e30, device=q.device)
        total, out = torch.zeros_like(m), torch.zeros_like(q)
        for keys, values, places in zip(k.split(tile, -2), v.split(tile, -2),
                                        torch.arange(s, device=q.device).split(tile)):
            scores = q @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5
            if causal:
                scores = scores.masked_fill(places > torch.arange(s - t, s, device=q.device)[:, None], -math.inf)
            new = torch.maximum(m, scores.amax(-1))
            powers, shrink = torch.exp(scores - new.unsqueeze(-1)), torch.exp(m - new)
            total = total * shrink + powers.sum(-1)
            out = out * shrink.unsqueeze(-1) + powers @ values
            m = new
        return out / total.unsqueeze(-1)
    """),
    Accepted(TILED, "query-by-query", instead="""
        t, s, d = q.shape[-2], k.shape[-2], q.shape[-1]
        rows = []
        for i in range(t):
            end = i + 1 + s - t if causal else s
            scores = (k[..., :end, :] @ q[..., i, :, None])[..., 0] / math.sqrt(d)
            rows.append((torch.softmax(scores, dim=-1)[..., None, :] @ v[..., :end, :])[..., 0, :])
        return torch.stack(rows, dim=-2)
    """),
    Shortcut(TILED, "sdpa", instead="""
        t, s = q.shape[-2], k.shape[-2]
        seen = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(s - t) if causal else None
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    """),
]
# fmt: on
