"""What students get wrong in lesson 15, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

CUT, KEEP, SHIFT, SCORES, LAYER, MODEL, REACH, BITS = (
    "segments",
    "extend_memory",
    "relative_shift",
    "relative_scores",
    "RelativeAttention",
    "TransformerXL",
    "reach",
    "streaming_bits",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ------------------------------------------------------------------------------------------- segments
    Mistake(CUT, "streams-transposed",
            edit=(("inputs.long().view(b, k, t).transpose(0, 1)", "inputs.long().view(k, b, t)"),
                  ("targets.long().view(b, k, t).transpose(0, 1)", "targets.long().view(k, b, t)")),
            title="rows that continue the row above",
            says="In your batches row 1 continues row 0 of the same batch. Row 1 of the *next* batch has to continue "
                 "row 1 of this one: its memory comes from there. Cut the streams first, then the segments."),
    Mistake(CUT, "target-from-the-segment",
            edit=("targets.long().view(b, k, t).transpose(0, 1)",
                  "inputs.roll(-1, dims=2)"), title="targets that wrap round inside the segment",
            says="The last target of your segments is the first byte of the same segment. It is the byte that follows "
                 "in the text, the first input of the next batch."),
    Mistake(CUT, "not-shifted", edit=("data[1:b * k * t + 1]", "data[:b * k * t]"),
            title="targets are the inputs themselves",
            says="Input and target are the same bytes. The target is the *next* byte."),
    Mistake(CUT, "shifted-backwards", edit=("return inputs, targets", "return targets, inputs"),
            title="inputs and targets exchanged",
            says="Your target is the byte before the input, which the model has just read."),
    Mistake(CUT, "no-room-for-the-last-target",
            edit=(("(len(data) - 1) // (b * t)", "len(data) // (b * t)"),
                  ("data[1:b * k * t + 1]", "data.roll(-1)[:b * k * t]")),
            title="a segment too many",
            says="Where the text is a whole number of batches long, you take one batch too many: its last byte has no "
                 "successor to be its target."),
    Mistake(CUT, "rest-in-front", edit=("data[:b * k * t], data[1:b * k * t + 1]",
                                        "data[len(data) - 1 - b * k * t:-1], data[len(data) - b * k * t:]"),
            title="the rest is left out in front",
            says="You leave out the beginning of the text. What fills no segment is left out at its end."),
    Mistake(CUT, "longer-streams", instead="""
        k, stream = (len(data) - 1) // (b * t), (len(data) - 1) // b
        rows = torch.stack([data[row * stream:row * stream + k * t + 1] for row in range(b)]).long()
        pair = rows[:, :-1], rows[:, 1:]
        return tuple(part.reshape(b, k, t).transpose(0, 1) for part in pair)
    """, title="a rest left out in each stream",
            says="Your streams begin ⌊(length − 1)/b⌋ bytes apart, and each leaves a rest out. Here they are k·t bytes "
                 "apart, so that each stream begins where the one before it ends."),
    Mistake(CUT, "batch-first",
            edit=(("inputs.long().view(b, k, t).transpose(0, 1)", "inputs.long().view(b, k, t)"),
                  ("targets.long().view(b, k, t).transpose(0, 1)", "targets.long().view(b, k, t)")),
            title="streams and batches not exchanged",
            says="Your result is (b, k, t). The batches come first, (k, b, t): entry j is the batch that is read in "
                 "step j."),
    Mistake(CUT, "bytes", edit=(("inputs.long()", "inputs"), ("targets.long()", "targets")),
            title="bytes that stay uint8",
            says="The numbers are right, and their type is not: you return uint8. An embedding and a cross-entropy "
                 "want int64."),
    Mistake(CUT, "two-ahead", edit=("data[1:b * k * t + 1]", "data.roll(-2)[:b * k * t]"),
            title="targets two bytes ahead",
            says="Your targets lie two bytes after the inputs. One."),
    Accepted(CUT, "loops", instead="""
        k = (len(data) - 1) // (b * t)
        at = torch.tensor([[[(row * k + j) * t + i for i in range(t)] for row in range(b)] for j in range(k)])
        return data[at].long(), data[at + 1].long()
    """),
    Accepted(CUT, "permute", instead="""
        k = (len(data) - 1) // (b * t)
        both = data[:b * k * t + 1].to(torch.int64)
        return [part.reshape(b, k, t).permute(1, 0, 2) for part in (both[:-1], both[1:])]
    """),
    # -------------------------------------------------------------------------------------- extend_memory
    # as in a published program for reinforcement learning
    Mistake(KEEP, "unchanged", instead="length = min(memory.shape[1], m)", title="as long as it was before",
            says="Your memory stays as long as the one it was given: one that begins empty stays empty for ever, and "
                 "one that is short never grows. There are m' + t positions to keep from."),
    Mistake(KEEP, "replaced", edit=("length = min(both.shape[1], m)", "length = min(x.shape[1], m)"),
            title="replaced by the last segment",
            says="Your memory is never longer than one segment. Where m is larger than t, what was remembered before "
                 "has to stay in part: append, then keep the newest m."),
    Mistake(KEEP, "no-limit", edit=("length = min(both.shape[1], m)", "length = both.shape[1]"),
            title="everything is kept",
            says="Your memory grows with each segment. At most m positions are kept."),
    Mistake(KEEP, "memory-and-segment", edit=("length = min(both.shape[1], m)", "length = max(x.shape[1], m)"),
            title="at least a segment",
            says="You keep the larger of t and m. It is at most m, and at most what there is."),
    Mistake(KEEP, "oldest", edit=("both[:, both.shape[1] - length:].detach()", "both[:, :length].detach()"),
            title="the oldest are kept",
            says="You keep the first m positions. After a while the memory would not change any more: keep the "
                 "newest."),
    Mistake(KEEP, "segment-first", edit=("torch.cat([memory, x], dim=1)", "torch.cat([x, memory], dim=1)"),
            title="the segment in front of the memory",
            says="You put the segment in front of what came before it. Distances are counted by place: the newest "
                 "stands last."),
    Mistake(KEEP, "minus-m", instead="return both[:, -m:].detach()", title="minus zero is zero",
            says="For m = 0 you keep everything: `[-0:]` is `[0:]`. Count the beginning of the slice from the front."),
    Mistake(KEEP, "not-detached", edit=(".detach()", ""), title="the memory has a gradient",
            says="The numbers are right, and a gradient flows back through your memory. The backward pass of each "
                 "segment would go on through all before it, or fail because their graphs are gone: detach."),
    Mistake(KEEP, "one-too-many", edit=("length = min(both.shape[1], m)", "length = min(both.shape[1], m + 1)"),
            title="one position too many",
            says="You keep m + 1 positions where there are so many."),
    EquivalentMutant(KEEP, "min(both.shape[1], m)", "min(m, both.shape[1])", "the smaller of two"),
    Accepted(KEEP, "slice", instead="return both[:, max(0, both.shape[1] - m):].detach()"),
    Accepted(KEEP, "split", instead="""
        drop = max(memory.shape[1] + x.shape[1] - m, 0)
        with torch.no_grad():
            return both.detach()[:, drop:].clone()
    """),
    Shortcut(KEEP, "finished-part", instead="return finished_memory(memory, x, m)"),
    # ------------------------------------------------------------------------------------- relative_shift
    Mistake(SHIFT, "last-row-dropped", edit=("reread[..., 1:, :]", "reread[..., :-1, :]"),
            title="the last row is dropped and not the first",
            says="After the second reading you drop the last row. What is too much stands in front, where the padding "
                 "is: drop the first."),
    Mistake(SHIFT, "padded-behind", edit=("F.pad(x, (1, 0))", "F.pad(x, (0, 1))"), title="padded at the wrong end",
            says="Your empty column stands at the right. It has to stand in front, so that the last row is the one "
                 "that stays where it is."),
    Mistake(SHIFT, "future-not-cleared", edit=("return shifted.tril(s - t)", "return shifted"),
            title="the future is not cleared",
            says="To the right of each query's own position you return numbers of the next row. They belong to "
                 "distances below zero: set them to 0."),
    Mistake(SHIFT, "square-triangle", edit=("shifted.tril(s - t)", "shifted.tril()"),
            title="the triangle is drawn from the left",
            says="Your triangle begins at the upper left corner, as if there were no memory. The *last* query sees all "
                 "s keys: the diagonal lies s − t further right."),
    Mistake(SHIFT, "not-shifted", instead="return x.tril(x.shape[-1] - x.shape[-2])", title="not shifted at all",
            says="You clear a corner and move nothing. Each row has to move left, the first by t − 1, the last not at "
                 "all."),
    Mistake(SHIFT, "to-the-right", instead="""
        t, s = x.shape[-2:]
        rows = [x[..., i, :].roll(t - 1 - i, dims=-1) for i in range(t)]
        return torch.stack(rows, dim=-2).tril(s - t)
    """, title="shifted to the right",
            says="Your rows move to the right. The nearest distance stands in the last column, and the first query's "
                 "own key further left."),
    Mistake(SHIFT, "one-too-far", instead="""
        t, s = x.shape[-2:]
        rows = [x[..., i, :].roll(i - t, dims=-1) for i in range(t)]
        return torch.stack(rows, dim=-2).tril(s - t)
    """, title="shifted by one too much",
            says="Your rows move left by one place too many. The last one has to stay where it is."),
    Mistake(SHIFT, "all-by-the-same", instead="""
        t, s = x.shape[-2:]
        return x.roll(1 - t, dims=-1).tril(s - t)
    """, title="all rows shifted alike",
            says="You move all rows by the same amount. The first moves by t − 1, the next by one less, the last not "
                 "at all."),
    Mistake(SHIFT, "ascending", edit=("padded = F.pad(x, (1, 0))", "padded = F.pad(x.flip(-1), (1, 0))"),
            title="distances from near to far",
            says="You turn the columns round. Column 0 belongs to the largest distance, s − 1."),
    Mistake(SHIFT, "first-of-the-batch", edit=("return shifted.tril(s - t)",
                                              "return shifted[:1].expand_as(shifted).tril(s - t) if x.dim() > 2 "
                                              "else shifted.tril(s - t)"),
            title="the first sequence for all",
            says="All sequences of your batch come out like the first one."),
    EquivalentMutant(SHIFT, "shifted.tril(s - t)", "shifted.tril(s - t + 1)",
        "on the diagonal after the last stands the padding, "
    "0"),
    Accepted(SHIFT, "loop", instead="""
        t, s = x.shape[-2:]
        rows = []
        for i in range(t):
            left = t - 1 - i
            rows.append(F.pad(x[..., i, left:], (0, left)))
        return torch.stack(rows, dim=-2)
    """),
    Accepted(SHIFT, "gather", instead="""
        t, s = x.shape[-2:]
        i = torch.arange(t, device=x.device)[:, None]
        j = torch.arange(s, device=x.device)
        column = (s - 1 - (i + s - t - j)).clamp(max=s - 1)
        return x.gather(-1, column.expand(x.shape)) * (j <= i + s - t)
    """),
    Accepted(SHIFT, "as-the-authors-do", instead="""
        t, s = x.shape[-2:]
        zeros = torch.zeros_like(x[..., :1])
        long = torch.cat([zeros, x], dim=-1).flatten(-2)[..., t:]
        return torch.tril(long.unflatten(-1, (t, s)), diagonal=s - t)
    """),
    Shortcut(SHIFT, "finished-part", instead="return finished_shift(x)"),
    # ------------------------------------------------------------------------------------ relative_scores
    Mistake(SCORES, "without-a", edit=("(q + u.unsqueeze(1)) @ k.mT", "(0 * q + u.unsqueeze(1)) @ k.mT"),
            title="(a) is missing: content and content",
            says="Term (a) is missing: no query of yours is multiplied with a key. (a) and (c) are (q + u)·k."),
    Mistake(SCORES, "without-b", edit=("(q + v.unsqueeze(1)) @ r.mT", "(0 * q + v.unsqueeze(1)) @ r.mT"),
            title="(b) is missing: content and position",
            says="Term (b) is missing: your queries are not multiplied with the distances. (b) and (d) are (q + v)·r."),
    Mistake(SCORES, "without-c", edit=("(q + u.unsqueeze(1)) @ k.mT", "q @ k.mT"),
            title="(c) is missing: u and the keys",
            says="Term (c) is missing: u, added to the queries before they meet the keys."),
    Mistake(SCORES, "without-d", edit=("(q + v.unsqueeze(1)) @ r.mT", "q @ r.mT"),
            title="(d) is missing: v and the distances",
            says="Term (d) is missing: v, added to the queries before they meet the distances."),
    Mistake(SCORES, "u-and-v-exchanged",
            edit=(("(q + u.unsqueeze(1)) @ k.mT", "(q + v.unsqueeze(1)) @ k.mT"),
                  ("(q + v.unsqueeze(1)) @ r.mT", "(q + u.unsqueeze(1)) @ r.mT")), title="u and v exchanged",
            says="u and v stand in each other's place: u meets the keys, v meets the distances."),
    Mistake(SCORES, "u-on-the-keys",
            edit=(("(q + u.unsqueeze(1)) @ k.mT", "q @ (k + u.unsqueeze(1)).mT"),
                  ("(q + v.unsqueeze(1)) @ r.mT", "q @ (r + v.unsqueeze(1)).mT")), title="u and v added to the keys",
            says="You add u and v on the other side, to the keys and the distances. They stand for the *query's* "
                 "place."),
    Mistake(SCORES, "not-shifted", edit=("finished_shift(by_distance)", "by_distance"),
            title="distances not shifted",
            says="You add the scores by distance as they are, one column a distance, to scores with one column a key. "
                 "They have to be shifted first."),
    Mistake(SCORES, "both-shifted",
            edit=("by_content + finished_shift(by_distance)", "finished_shift(by_content + by_distance)"),
            title="the content shifted too",
            says="You shift the sum of both. The products with the keys stand where they belong; only those with the "
                 "distances have to move."),
    Mistake(SCORES, "ascending", edit=("@ r.mT", "@ r.flip(1).mT"), title="distances from near to far",
            says="You turn the distances round. r goes from s − 1 to 0, which is what the shift expects."),
    Mistake(SCORES, "no-scale", edit=("scores / math.sqrt(q.shape[-1])", "scores"), title="not divided by √d",
            says="Your scores are the right sums, but not divided by √d."),
    Mistake(SCORES, "scale-in-part",
            edit=(("by_content + finished_shift(by_distance)",
                   "by_content / math.sqrt(q.shape[-1]) + finished_shift(by_distance)"),
                  ("return scores / math.sqrt(q.shape[-1])", "return scores")), title="only the content is scaled",
            says="You divide (a) and (c) by √d and not (b) and (d). All four terms are divided."),
    Mistake(SCORES, "scale-by-t", edit=("math.sqrt(q.shape[-1])", "math.sqrt(q.shape[-2])"),
            title="divided by the root of another size",
            says="You divide by the root of the number of queries. d is the last axis, the width of a head."),
    Mistake(SCORES, "detached-positions", edit=("@ r.mT", "@ r.detach().mT"),
            title="no gradient for the distances",
            says="Your scores are right, and no gradient reaches r: the projection of the distances would never "
                 "learn."),
    Mistake(SCORES, "without-c-and-d",
            edit=(("(q + u.unsqueeze(1)) @ k.mT", "q @ k.mT"), ("(q + v.unsqueeze(1)) @ r.mT", "q @ r.mT")),
            title="u and v left out",
            says="Terms (c) and (d) are missing: u and v are used nowhere."),
    Mistake(SCORES, "u-and-v-in-both",
            edit=(("(q + u.unsqueeze(1)) @ k.mT", "(q + u.unsqueeze(1) + v.unsqueeze(1)) @ k.mT"),
                  ("(q + v.unsqueeze(1)) @ r.mT", "(q + u.unsqueeze(1) + v.unsqueeze(1)) @ r.mT")),
            title="u and v in both products",
            says="You add both u and v in both products. u meets the keys alone, v the distances alone."),
    Mistake(SCORES, "v-on-the-distances", edit=("(q + v.unsqueeze(1)) @ r.mT", "q @ (r + v.unsqueeze(1)).mT"),
            title="v added to the distances",
            says="You add v to the distances. It stands for the *query's* place, and is added to the query."),
    EquivalentMutant(SCORES, "q", "k", "both are d wide"),
    EquivalentMutant(SCORES, "q", "v", "both are d wide"),
    EquivalentMutant(SCORES, "v.unsqueeze(1)", "v.unsqueeze(-2)", "of two axes, both are in the middle"),
    EquivalentMutant(SCORES, "u.unsqueeze(1)", "u.unsqueeze(-2)", "of two axes, both are in the middle"),
    Accepted(SCORES, "four-terms", instead="""
        a = torch.einsum("bhid,bhjd->bhij", q, k)
        b = torch.einsum("bhid,hjd->bhij", q, r)
        c = torch.einsum("hd,bhjd->bhj", u, k)[:, :, None]
        d = torch.einsum("hd,hjd->hj", v, r)[None, :, None]
        return (a + c + finished_shift(b + d)) * q.shape[-1] ** -0.5
    """),
    Accepted(SCORES, "masked-already", instead="""
        t, s = q.shape[-2], k.shape[-2]
        content = (q + u[:, None]) @ k.transpose(-1, -2)
        distance = finished_shift((q + v[:, None]) @ r.transpose(-1, -2))
        past = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(s - t)
        return ((content + distance) / q.shape[-1] ** 0.5).masked_fill(~past, -math.inf)
    """),
    Shortcut(SCORES, "finished-part", instead="return finished_scores(q, k, r, u, v)"),
    # ---------------------------------------------------------------------------------- RelativeAttention
    Mistake(LAYER, "memory-behind", edit=("torch.cat([memory, x], dim=1)", "torch.cat([x, memory], dim=1)"),
            title="the memory behind the segment",
            says="You put the memory behind the segment. It came before: distances are counted from the end."),
    Mistake(LAYER, "memory-ignored", edit=("x if memory is None else torch.cat([memory, x], dim=1)", "x"),
            title="the memory is not looked at",
            says="Without a memory your layer is right, and with one it does the same: keys and values have to be made "
                 "of both."),
    Mistake(LAYER, "values-of-the-segment",
            edit=("values = split_heads(self.to_values(both), self.h)",
                  "past_values = self.to_values(both)\n"
                  "        past_values = torch.cat([0 * past_values[:, :s - t], past_values[:, s - t:]], dim=1)\n"
                  "        values = split_heads(past_values, self.h)"), title="no values for the memory",
            says="The memory has keys in your layer, and its values are zeros: it draws weight to itself and gives "
                 "nothing back."),
    Mistake(LAYER, "queries-of-both",
            edit=(("self.to_queries(x)", "self.to_queries(both)"), ("torch.ones(t, s,", "torch.ones(s, s,"),
                  (".tril(s - t)", ".tril()")), title="queries for the memory too",
            says="Your layer makes queries for the memory as well, so m + t rows come out. Only the segment asks."),
    Mistake(LAYER, "triangle-from-the-left", edit=(".tril(s - t)", ".tril()"),
            title="the mask begins at the upper left",
            says="Your triangle begins in the upper left corner, as `is_causal=True` does: the first query sees the "
                 "oldest key alone, and none of the segment. Query i sees up to key i + (s − t)."),
    Mistake(LAYER, "triangle-pasted-left",
            edit=("past = torch.ones(t, s, dtype=torch.bool, device=x.device).tril(s - t)",
                  "past = torch.ones(t, s, dtype=torch.bool, device=x.device)\n"
                  "        past[:, :t] = past[:, :t].tril()"), title="the triangle over the memory",
            says="Your triangle hides part of the memory, and the future of the segment stays open. It belongs over "
                 "the last t columns."),
    Mistake(LAYER, "no-mask", edit=(".masked_fill(~past, -math.inf)", ""), title="no mask",
            says="Nothing is masked: each position sees those behind it."),
    Mistake(LAYER, "near-to-far", edit=(".flip(0)", ""), title="distances from near to far",
            says="Your sinusoids go from distance 0 to s − 1. The scores want them from far to near."),
    Mistake(LAYER, "shared-projection", edit=("self.to_positions(far_to_near)", "self.to_keys(far_to_near)"),
            title="distances projected as keys",
            says="You send the distances through `to_keys`. They have a matrix of their own, `to_positions`."),
    Mistake(LAYER, "not-projected", edit=("self.to_positions(far_to_near)[None]", "far_to_near[None]"),
            title="distances not projected",
            says="Your sinusoids go into the scores as they are. `to_positions` belongs between."),
    Mistake(LAYER, "u-twice", edit=("self.u, self.v)", "self.u, self.u)"), title="u in the place of v",
            says="You hand u over twice, and v nowhere."),
    Mistake(LAYER, "u-and-v-exchanged", edit=("self.u, self.v)", "self.v, self.u)"), title="u and v exchanged",
            says="u and v are handed over in each other's place."),
    Mistake(LAYER, "no-unify", edit=("return self.unify(merge_heads(torch.softmax(scores, dim=-1) @ values))",
                                     "return merge_heads(torch.softmax(scores, dim=-1) @ values)"),
            title="heads not mixed",
            says="The heads are laid side by side and not mixed: `unify` is missing at the end."),
    Mistake(LAYER, "masked-after",
            edit=((".masked_fill(~past, -math.inf)", ""),
                  ("torch.softmax(scores, dim=-1)", "(torch.softmax(scores, dim=-1) * past)")),
            title="masked after the softmax",
            says="You mask after the softmax: the rows no longer add up to 1, and the sum below them knows the future. "
                 "Before it, with −∞ (lesson 5)."),
    Mistake(LAYER, "absolute-positions",
            edit=("scores = finished_scores(q, k, r, self.u, self.v)",
                  "scores = ((q + self.u[:, None]) @ k.mT + (q + self.v[:, None]) @ r.flip(1).mT)\n"
                  "        scores = (scores / math.sqrt(q.shape[-1]))"),
            title="places in the place of distances",
            says="Key j gets the sinusoid of its place j in your scores, whichever query asks. What counts is how far "
                 "away it is."),
    Mistake(LAYER, "biases",
            edit=("self.to_positions = nn.Linear(e, e, bias=False)", "self.to_positions = nn.Linear(e, e)"),
            title="the distances' projection has a bias",
            says="Your `to_positions` has a bias. The four projections have none; only `unify` has one."),
    Mistake(LAYER, "on-the-cpu", edit=("sinusoidal_encoding(s, e, device=x.device)", "sinusoidal_encoding(s, e)"),
            title="sinusoids made on the CPU",
            says="Your sinusoids are made on the CPU, wherever x is. Hand its device over: device=x.device."),
    Mistake(LAYER, "without-itself", edit=(("~past, -math.inf", "~past.tril(s - t - 1), -1e9"),),
            title="a position may not look at itself",
            says="Your mask hides every position from itself. Query i sees up to key i + (s − t), and that one is "
                 "itself."),
    Mistake(LAYER, "scaled-twice",
            edit=("finished_scores(q, k, r, self.u, self.v).masked_fill",
                  "(finished_scores(q, k, r, self.u, self.v) / math.sqrt(q.shape[-1])).masked_fill"),
            title="divided by √d twice",
            says="You divide by √d what `finished_scores` has divided already."),
    Mistake(LAYER, "heads-as-they-lie",
            edit=("merge_heads(torch.softmax(scores, dim=-1) @ values)",
                  "(torch.softmax(scores, dim=-1) @ values).reshape(x.shape)"),
            title="heads and positions mixed up",
            says="You reshape (b, h, t, d) into (b, t, e) as it lies in memory, which mixes positions. The heads have "
                 "to come back beside each other first: `merge_heads`."),
    EquivalentMutant(LAYER, "finished_scores(q, k, r, self.u, self.v).masked_fill(~past, -math.inf)",
          "finished_scores(q, k, r, self.u, self.v).masked_fill_(~past, -math.inf)", "the scores are the layer's own"),
    EquivalentMutant(LAYER, "split_heads(self.to_positions(far_to_near)[None], self.h)[0]",
          "split_heads(self.to_positions(far_to_near)[None], self.h)[-1]", "a batch of one"),
    EquivalentMutant(LAYER, "sinusoidal_encoding(s, e, device=x.device).flip(0)",
          "sinusoidal_encoding(s, e, device=x.device).flip(-2)", "of two axes the first"),
    EquivalentMutant(LAYER, "torch.cat([memory, x], dim=1)", "torch.cat([memory, x], dim=-2)",
        "of three axes the middle one"),
    Accepted(LAYER, "arange", instead=("", """
        b, t, e = x.shape
        past = x[:, :0] if memory is None else memory
        both = torch.cat((past, x), 1)
        s = both.shape[1]
        q, k, v = (split_heads(z, self.h) for z in (self.to_queries(both)[:, s - t:], self.to_keys(both),
                                                    self.to_values(both)))
        r = self.to_positions(sinusoidal_encoding(s, e, x.device).flip(0))
        r = r.reshape(s, self.h, e // self.h).permute(1, 0, 2)
        places = torch.arange(s, device=x.device)
        hidden = places > places[s - t:, None]
        scores = finished_scores(q, k, r, self.u, self.v)
        return self.unify(merge_heads(scores.masked_fill(hidden, -1e9).softmax(-1) @ v))
    """)),
    Accepted(LAYER, "fused", edit=(
        ("scores = finished_scores(q, k, r, self.u, self.v).masked_fill(~past, -math.inf)",
         "scores = finished_scores(q, k, r, self.u, self.v)"),
        ("torch.softmax(scores, dim=-1) @ values",
         "torch.exp(F.log_softmax(scores.where(past, scores.new_tensor(-math.inf)), dim=-1)) @ values"))),
    Shortcut(LAYER, "finished-block", instead=("", """
        whole = TransformerXLBlock(x.shape[2], self.h).attention
        whole.load_state_dict(self.state_dict())
        return whole.to(x.device)(x, memory)
    """)),
    # -------------------------------------------------------------------------------------- TransformerXL
    Mistake(MODEL, "memory-of-outputs",
            edit=("following.append(finished_memory(past, x, m))\n            x = block(x, past)",
                  "x = block(x, past)\n            following.append(finished_memory(past, x, m))"),
            title="the memory holds the block's outputs",
            says="You remember what comes *out* of each block. At the next segment it would be laid beside what goes "
                 "in: off by one layer. Keep the input."),
    Mistake(MODEL, "memory-not-handed-on", edit=("x = block(x, past)", "x = block(x)"),
            title="the blocks get no memory",
            says="You keep a memory and hand it to no block: with and without it your logits are the same."),
    Mistake(MODEL, "new-memory", edit=("x = block(x, past)", "x = block(x, following[-1])"),
            title="the blocks get the memory of the future",
            says="Your blocks get the *new* memory, which holds the segment itself already: each token would be seen "
                 "twice, and the future in the memory. The block looks at the old one."),
    Mistake(MODEL, "one-memory-for-all", edit=("else memory[place]", "else memory[0]"),
            title="the first block's memory for all",
            says="All your blocks look at the memory of the first. Each has its own: its inputs at earlier positions."),
    Mistake(MODEL, "replaced", edit=("finished_memory(past, x, m)", "finished_memory(None, x, m)"),
            title="the memory is replaced",
            says="Your new memory holds the segment alone; what was remembered before is lost, also where m is longer "
                 "than the segment."),
    Mistake(MODEL, "m-ignored", edit=("finished_memory(past, x, m)", "finished_memory(past, x, x.shape[1])"),
            title="m is not used",
            says="Your memory is as long as the segment, whatever m says."),
    Mistake(MODEL, "embeddings-remembered",
            edit=(("x = self.tokens(ids)    # (b, t, e)", "x = embedded = self.tokens(ids)    # (b, t, e)"),
                  ("finished_memory(past, x, m)", "finished_memory(past, embedded, m)")),
            title="the embeddings in every memory",
            says="You remember the embedded tokens for every block. Right for the first; each further one needs what "
                 "comes out of the one below."),
    Mistake(MODEL, "no-norm", edit=("self.to_logits(self.norm(x))", "self.to_logits(x)"),
            title="no norm at the end",
            says="The norm after the last block is missing. The blocks normalise first, so nothing has normalised what "
                 "leaves the last one."),
    Mistake(MODEL, "one-block", edit=("[TransformerXLBlock(e, h) for _ in range(depth)]",
                                      "[TransformerXLBlock(e, h)] * depth"),
            title="one block, used again and again",
            says="Your list holds the same block `depth` times. Each has weights of its own."),
    Mistake(MODEL, "positions-added",
            edit=("x = self.tokens(ids)    # (b, t, e)",
                  "x = self.tokens(ids)\n"
                  "        x = x + sinusoidal_encoding(x.shape[1], x.shape[2], device=x.device)"),
            title="absolute positions added",
            says="You add positions to the tokens, and they begin at 0 in each segment. The attention knows distances; "
                 "nothing is added here."),
    Mistake(MODEL, "old-memory-returned", edit=("self.to_logits(self.norm(x)), following",
                                                "self.to_logits(self.norm(x)), memory if memory else following"),
            title="the old memory comes back",
            says="You return the memory that was given, so it never moves on."),
    Mistake(MODEL, "normalised-memory",
            edit=("finished_memory(past, x, m)", "finished_memory(past, block.norm1(x), m)"),
            title="the memory is normalised already",
            says="You remember the normalised input. The block normalises its memory itself: keep the input as it "
                 "came."),
    Mistake(MODEL, "embeddings-scaled",
            edit=("x = self.tokens(ids)    # (b, t, e)", "x = self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)"),
            title="embeddings times √e",
            says="You multiply the embeddings by √e, as the translation model does. This model takes them as they "
                 "are."),
    Accepted(MODEL, "filled-up", instead=("", """
        memory = memory or [None] * len(self.blocks)
        inputs, x = [], self.tokens(ids)
        for block, past in zip(self.blocks, memory):
            inputs.append(x)
            x = block(x, past)
        logits = self.to_logits(self.norm(x))
        return logits, [finished_memory(past, x, m) for past, x in zip(memory, inputs)]
    """)),
    Accepted(MODEL, "empty-memory", instead=("", """
        x, new = self.tokens(ids), []
        for i in range(len(self.blocks)):
            old = x[:, :0] if memory is None else memory[i]
            kept = torch.cat([old, x], dim=1).detach()
            new.append(kept[:, max(0, kept.shape[1] - m):])
            x = self.blocks[i](x, old)
        return self.to_logits(self.norm(x)), new
    """)),
    # ---------------------------------------------------------------------------------------------- reach
    Mistake(REACH, "itself-too", edit=("first_block = t - 1 + m", "first_block = t + m"),
            title="the position itself is counted",
            says="Your number is larger by one: it counts the last position itself. How many *before* it?"),
    Mistake(REACH, "depth-times-m", edit=("each_further = t * math.ceil(m / t)", "each_further = m"),
            title="m for each block",
            says="You add m for each further block. That is right where m is a whole number of segments. Otherwise the "
                 "oldest remembered state lies inside a segment whose first position looks back from its beginning."),
    Mistake(REACH, "rounded-down", edit=("math.ceil(m / t)", "(m // t)"), title="segments rounded down",
            says="You count whole segments in the memory. Of a segment that is in it with one state only, that state "
                 "already knows the whole segment: round up."),
    Mistake(REACH, "t-for-each-block", edit=("each_further = t * math.ceil(m / t)", "each_further = t"),
            title="a segment for each block",
            says="You add one segment for each further block, however long the memory is."),
    Mistake(REACH, "one-block", edit=("return first_block + (depth - 1) * each_further", "return first_block"),
            title="the depth left out",
            says="Your number is that of one block. What a block finds in its memory has looked back too."),
    Mistake(REACH, "one-block-too-many", edit=("(depth - 1) * each_further", "depth * each_further"),
            title="one block too many",
            says="You count `depth` further blocks. The first one's reach is in t − 1 + m already."),
    Mistake(REACH, "segment-for-each-block",
            edit=("each_further = t * math.ceil(m / t)", "each_further = t - 1 + m"),
            title="t − 1 + m for each block",
            says="You add t − 1 + m for each block. Inside a segment, depth brings nothing new: only the memory does."),
    Mistake(REACH, "rounded-up-throughout", edit=("first_block = t - 1 + m", "first_block = t - 1 + t * -(-m // t)"),
            title="rounded up for the first block too",
            says="You round up for one block too. A single block looks at m remembered positions, whatever segment "
                 "they are of: only what *they* have seen is counted in whole segments."),
    Accepted(REACH, "whole-numbers", instead="return t - 1 + m + (depth - 1) * t * -(-m // t)"),
    Accepted(REACH, "loop", instead="""
        first = 0
        for _ in range(depth - 1):
            oldest = first - m
            first = oldest // t * t
        return t - 1 + m - first
    """),
    # ------------------------------------------------------------------------------------- streaming_bits
    Mistake(BITS, "forgetful", edit=("logits, memory = model(inputs[None], memory, m)",
                                     "logits, memory = model(inputs[None], None, m)"),
            title="the memory is not carried on",
            says="Every segment of yours begins without a memory. Tell the model how much to keep, m, and hand what "
                 "came back to the next call."),
    Alias(BITS, "m-left-out", of="forgetful", edit=("model(inputs[None], memory, m)", "model(inputs[None], memory)")),
    Mistake(BITS, "rest-left-out", edit=("for start in range(0, len(data) - 1, t):",
                                         "for start in range(0, (len(data) - 1) // t * t, t):"),
            title="the last segment is left out",
            says="Where the text is no whole number of segments, its end is never predicted. The last segment may be "
                 "shorter."),
    Mistake(BITS, "border-left-out",
            edit=(("targets = data[start + 1:start + t + 1]", "targets = data[start + 1:start + t]"),),
            title="the first byte of each segment is not predicted",
            says="The target of a segment's last byte is the first byte of the next one. You leave it out, and it is "
                 "the byte for which the memory matters most."),
    Mistake(BITS, "mean-of-means",
            edit=(('reduction="sum").item()', 'reduction="mean").item()'),
                  ("nats / (len(data) - 1)", "nats / math.ceil((len(data) - 1) / t)")),
            title="a mean of means",
            says="You average over segments. A short last one then counts as much as a long one: add up nats, divide "
                 "by the number of bytes."),
    Mistake(BITS, "nats", edit=("/ math.log(2)", ""), title="nats reported as bits",
            says="You return nats per byte. A model without an opinion would have 5.545; in bits it has 8."),
    Mistake(BITS, "total", edit=("nats / (len(data) - 1) / math.log(2)", "nats / math.log(2)"),
            title="the total",
            says="You return the bits of the whole text. Per byte they are divided by how many were predicted."),
    Mistake(BITS, "per-all-bytes", edit=("nats / (len(data) - 1)", "nats / len(data)"),
            title="divided by one byte too many",
            says="You divide by the length of the text. Its first byte is never predicted."),
    Mistake(BITS, "training-mode", edit=("model.eval()", "model.train()"), title="in training mode",
            says="Your model is in training mode while it is measured: with dropout, it would be another model each "
                 "time."),
    Mistake(BITS, "mode-not-restored", edit=("    model.train(training)\n", ""), title="left in evaluation mode",
            says="The bits are right, and the model stays in evaluation mode. Put it back into the mode in which it "
                 "came."),
    Mistake(BITS, "sliding", instead="""
        training = model.training
        model.eval()
        data, nats = data.long(), 0.0
        for i in range(1, len(data)):
            logits, _ = model(data[max(0, i - t):i][None], None, m)
            nats += F.cross_entropy(logits[0, -1], data[i]).item()
        model.train(training)
        return nats / (len(data) - 1) / math.log(2)
    """, title="a sliding window",
            says="You slide a window over the text and forget after each byte. With a memory each byte goes through "
                 "the model once."),
    EquivalentMutant(BITS, "logits[0]", "logits[-1]", "a batch of one"),
    EquivalentMutant(BITS, "range(0, len(data) - 1, t)", "range(0, len(data) - 1 + 1, t)",
        "a segment of no byte adds nothing"),
    EquivalentMutant(BITS, "len(data) - 1", "len(data)", "in the range, where a segment of no byte adds nothing"),
    EquivalentMutant(BITS, "len(data) - 1", "len(data) + 1", "in the range, where a segment of no byte adds nothing"),
    Accepted(BITS, "split", instead="""
        mode, data = model.training, data.long()
        model.eval()
        total, past = 0, None
        for x, y in zip(data[:-1].split(t), data[1:].split(t)):
            logits, past = model(x.unsqueeze(0), past, m=m)
            total = total + F.cross_entropy(logits.squeeze(0), y, reduction="none").sum()
        model.train(mode)
        return total / math.log(2) / (len(data) - 1)
    """),
    Accepted(BITS, "log-softmax", edit=(
        ("nats += F.cross_entropy(logits[0], targets, reduction=\"sum\").item()",
         "nats -= logits[0].log_softmax(-1).gather(1, targets[:, None]).sum().item()"),)),
]
