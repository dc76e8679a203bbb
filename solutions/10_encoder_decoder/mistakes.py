"""What students get wrong in lesson 10, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

MASKS, CROSS, BLOCK, MODEL, LOSS, GREEDY, BEAM = (
    "make_masks",
    "CrossAttention",
    "DecoderBlock",
    "EncoderDecoder",
    "smoothed_loss",
    "greedy_decode",
    "beam_search",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ----------------------------------------------------------------------------------------- make_masks
    # as a widely watched tutorial has it
    Mistake(MASKS, "unchanged", instead="""
        source_words = (source != pad).unsqueeze(1)
        past = causal_mask(target.shape[1], target.device)
        past = past.expand(len(target), -1, -1)
        return source_words, past, source_words
    """, title="the target's mask without padding",
            says="Your mask of target on target hides what is to come, and shows the padding. Two conditions have to "
                 "hold at once: not later, and a word."),
    Mistake(MASKS, "target-without-padding-or-batch", edit=("past & target_words", "past"),
            title="the target's mask is the triangle alone",
            says="Your mask of target on target is the triangle, (t, t), the same for every sentence. Each sentence "
                 "has padding of its own, which must be hidden too: (b, t, t)."),
    Mistake(MASKS, "target-sees-the-future",
            edit=("past & target_words", "target_words.expand(-1, target.shape[1], -1)"),
            title="the target may look ahead",
            says="Your mask of target on target hides the padding, and shows what is to come. In training the next "
                 "word would stand there to be copied."),
    Mistake(MASKS, "either-condition", edit=("past & target_words", "past | target_words"),
            title="one of the two conditions is enough",
            says="You let a position be seen if it is earlier *or* a word. Both have to hold."),
    Mistake(MASKS, "query-side",
            edit=("target_words = (target != pad).unsqueeze(1)", "target_words = (target != pad).unsqueeze(2)"),
            title="padding masked on the side that looks",
            says="You forbid the padding to look. What matters is that no position looks *at* it: the axis of length 1 "
                 "stands for the positions that look, in front of the one for those that are looked at."),
    Mistake(MASKS, "triangle-upside-down",
            edit=("past = causal_mask(target.shape[1], target.device)",
                  "past = causal_mask(target.shape[1], target.device).T"), title="the triangle upside down",
            says="Your target looks at what is to come and not at what has been. Row i may look at the columns j ≤ i."),
    Mistake(MASKS, "true-means-hidden", instead="""
        real, words = (source == pad).unsqueeze(1), (target == pad).unsqueeze(1)
        return real, ~causal_mask(target.shape[1], target.device) | words, real
    """, title="True and False exchanged",
            says="Your masks are True where something is hidden, as PyTorch's own modules have it. In this course True "
                 'means "may look".'),
    Mistake(MASKS, "cross-from-target", edit=("target_words, source_words", "target_words, target_words"),
            title="the third mask made of the target",
            says="Your third mask hides the target's padding. There the target looks *at the source*, so it is the "
                 "source's padding that must be hidden."),
    Mistake(MASKS, "cross-shows-padding",
            edit=("target_words, source_words", "target_words, torch.ones_like(source_words)"),
            title="the third mask shows the source's padding",
            says="With your third mask the target may look at the padding of the source. It is the same padding that "
                 "your first mask hides."),
    Mistake(MASKS, "padding-is-zero", edit=(("(source != pad)", "(source != 0)"), ("(target != pad)", "(target != 0)")),
            title="padding taken to be 0",
            says="You compare with 0. The id of the padding is an argument, and here it is another one; 0 is an "
                 "ordinary word."),
    Mistake(MASKS, "an-axis-short",
            edit=("source_words = (source != pad).unsqueeze(1)", "source_words = (source != pad)"),
            title="no axis for those who look",
            says="Your masks over the source are (b, s). They need an axis of length 1 between, (b, 1, s), for the "
                 "positions that look: otherwise b would be taken for it."),
    Mistake(MASKS, "source-causal",
            edit=("return source_words, past",
                  "return source_words & causal_mask(source.shape[1], source.device), past"),
            title="a triangle over the source",
            says="Your first mask keeps the source from looking ahead. The source is given whole, and each of its "
                 "words may look at all of them, earlier or later."),
    Mistake(MASKS, "triangle-of-the-source",
            edit=("causal_mask(target.shape[1], target.device)", "causal_mask(source.shape[1], target.device)"),
            title="a triangle as large as the source",
            says="Your triangle is as large as the source. It is about the target looking at the target: (t, t)."),
    Mistake(MASKS, "without-itself",
            edit=("causal_mask(target.shape[1], target.device)",
                  "causal_mask(target.shape[1], target.device).tril(-1)"),
            title="a position may not look at itself",
            says="Your mask of target on target hides every position from itself. j ≤ i includes j = i."),
    Mistake(MASKS, "one-too-far",
            edit=("causal_mask(target.shape[1], target.device)",
                  "torch.ones_like(causal_mask(target.shape[1], target.device)).tril(1)"),
            title="the target sees one token too many",
            says="Your mask of target on target shows the next token, which is the one that has to be guessed."),
    Mistake(MASKS, "first-sentence-for-all",
            edit=(("(source != pad).unsqueeze(1)", "(source[:1] != pad).expand_as(source).unsqueeze(1)"),
                  ("(target != pad).unsqueeze(1)", "(target[:1] != pad).expand_as(target).unsqueeze(1)")),
            title="the first sentence's padding for all",
            says="You hide in every sentence what is padding in the first one. Each has padding of its own."),
    Mistake(MASKS, "numbers", edit=("return source_words, past & target_words, source_words",
                                    "return source_words.float(), (past & target_words).float(), source_words.float()"),
            title="0 and 1 instead of booleans",
            says="Your masks hold the numbers 0 and 1. Booleans are asked for: a number would be added to the scores."),
    Mistake(MASKS, "on-the-cpu", edit=("causal_mask(target.shape[1], target.device)", "causal_mask(target.shape[1])"),
            title="a triangle made on the CPU",
            says="Your triangle is made on the CPU, wherever the ids are. Tell causal_mask the device: target.device."),
    EquivalentMutant(MASKS, "target", "source", "both are on one device, and nothing else is asked of it"),
    EquivalentMutant(MASKS, "(target != pad).unsqueeze(1)", "(target != pad).unsqueeze(-2)",
          "of two axes, both are in the middle"),
    EquivalentMutant(MASKS, "(source != pad).unsqueeze(1)", "(source != pad).unsqueeze(-2)",
          "of two axes, both are in the middle"),
    Accepted(MASKS, "tril", instead="""
        b, t = target.shape
        words = target.ne(pad)[:, None, :].expand(b, t, t)
        visible = source.ne(pad)[:, None]
        return visible, torch.tril(words), visible.clone()
    """),
    Accepted(MASKS, "comparing-places", instead="""
        places = torch.arange(target.shape[1], device=target.device)
        earlier = places[None, :] <= places[:, None]
        target_mask = torch.logical_and(earlier[None], ~(target == pad)[:, None])
        source_mask = torch.logical_not(source == pad).unsqueeze(-2)
        return [source_mask, target_mask, source_mask]
    """),
    Accepted(MASKS, "loops", instead="""
        b, t = target.shape
        mask = torch.zeros(b, t, t, dtype=torch.bool, device=target.device)
        for i in range(t):
            for j in range(i + 1):
                mask[:, i, j] = target[:, j] != pad
        return (source != pad).view(b, 1, -1), mask, (source != pad).view(b, 1, -1)
    """),
    Shortcut(MASKS, "finished-part", instead="return finished_masks(source, target, pad)"),
    # ------------------------------------------------------------------------------------- CrossAttention
    Mistake(CROSS, "all-from-the-target",
            edit=(("self.to_keys(memory)", "self.to_keys(x)"), ("self.to_values(memory)", "self.to_values(x)")),
            title="keys and values from the decoder",
            says="Your queries, keys and values all come from x: this is self-attention, and the memory is never "
                 "looked at. What x asks, memory answers."),
    Mistake(CROSS, "keys-from-the-target", edit=("self.to_keys(memory)", "self.to_keys(x)"),
            title="keys from the decoder",
            says="Your keys are made of x and your values of memory. A key belongs to a value: both come from what is "
                 "looked at."),
    Mistake(CROSS, "values-from-the-target", edit=("self.to_values(memory)", "self.to_values(x)"),
            title="values from the decoder",
            says="You compare with the memory, and then average vectors of x. What is fetched must come from where you "
                 "looked."),
    Mistake(CROSS, "the-other-way",
            edit=(("self.to_queries(x)", "self.to_queries(memory)"),
                  ("self.to_keys(memory)", "self.to_keys(x)"),
                  ("self.to_values(memory)", "self.to_values(x)")), title="the memory asks",
            says="In your code the memory asks and x is looked at, so that the output is as long as the source. It is "
                 "the other way round."),
    Mistake(CROSS, "all-from-the-memory", edit=("self.to_queries(x)", "self.to_queries(memory)"),
            title="queries from the memory",
            says="Your queries are made of the memory too, so x plays no part. The decoder asks: queries come from x."),
    Mistake(CROSS, "mask-ignored", edit=("attn_mask=mask", "attn_mask=None"), title="the mask is not used",
            says="A mask is given and you do not use it: the decoder looks at padding."),
    Mistake(CROSS, "mask-turned", edit=("mask = mask.unsqueeze(1) ", "mask = ~mask.unsqueeze(1) "),
            title="the mask the wrong way round",
            says='You show what is to be hidden and hide the rest. True means "may look", here and in '
                 "F.scaled_dot_product_attention."),
    Mistake(CROSS, "mask-after-softmax",
            edit=("y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
                  "w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)\n"
                  "        y = (w if mask is None else w * mask) @ v"),
            title="the mask after the softmax",
            says="You clear weights after the softmax, so what is left of a row no longer adds up to 1. Hide scores "
                 "before it."),
    Mistake(CROSS, "not-scaled", edit=("attn_mask=mask", "attn_mask=mask, scale=1.0"), title="scores not divided by √d",
            says="Your scores are not divided by √d, the root of one head's width."),
    Mistake(CROSS, "scaled-by-e", edit=("attn_mask=mask", "attn_mask=mask, scale=x.shape[-1] ** -0.5"),
            title="divided by √e instead of √d",
            says="You divide by the root of the whole width. Each head compares vectors of width d = e/h."),
    Mistake(CROSS, "one-head",
            edit=(("split_heads(self.to_queries(x), self.h)", "self.to_queries(x).unsqueeze(1)"),
                  ("split_heads(self.to_keys(memory), self.h)", "self.to_keys(memory).unsqueeze(1)"),
                  ("split_heads(self.to_values(memory), self.h)", "self.to_values(memory).unsqueeze(1)")),
            title="one head only",
            says="You compute one attention of the whole width. There are h of them, each of width e/h."),
    Mistake(CROSS, "heads-scrambled", edit=("merge_heads(y)", "y.reshape(x.shape)"),
            title="heads and positions scrambled at the end",
            says="Your y is (b, h, t, d), and a reshape to (b, t, e) cuts it up in that order: positions and heads are "
                 "mixed. The axis of the heads has to move behind t first, as merge_heads does."),
    Mistake(CROSS, "not-unified", edit=("self.unify(merge_heads(y))", "merge_heads(y)"),
            title="the heads are not mixed at the end",
            says="`unify` is not used: the heads' outputs stand beside each other and are never mixed."),
    Mistake(CROSS, "shortcut-inside", edit=("return self.unify", "return x + self.unify"),
            title="a shortcut inside the layer",
            says="You add x to the result. The shortcut belongs to the block, which would then add x twice."),
    Mistake(CROSS, "mask-turned-by-hand",
            edit=("y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
                  "w = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])\n"
                  "        w = w if mask is None else w.masked_fill(mask, -torch.inf)\n"
                  "        y = torch.softmax(w, dim=-1) @ v"),
            title="the mask the wrong way round",
            says='You hide what is to be shown and show the rest. The mask is True where a position may be looked at; '
                 "masked_fill fills where its mask is True."),
    Mistake(CROSS, "zero-for-hidden",
            edit=("y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
                  "w = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])\n"
                  "        w = w if mask is None else w.masked_fill(~mask, 0.0)\n"
                  "        y = torch.softmax(w, dim=-1) @ v"),
            title="0 for hidden scores",
            says="You give hidden positions a score of 0, which is a score like any other. What must get no weight has "
                 "a score of −∞ before the softmax."),
    Mistake(CROSS, "mask-added", edit=("attn_mask=mask", "attn_mask=None if mask is None else mask.to(q.dtype)"),
            title="a mask of numbers added to the scores",
            says="Your mask is 0 or 1 and is added to the scores, which hides nothing. As booleans it hides; as "
                 "numbers the hidden ones would have to be −∞, the others 0."),
    Mistake(CROSS, "softmax-over-the-target",
            edit=("y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
                  "w = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])\n"
                  "        w = w if mask is None else w.masked_fill(~mask, -1e9)\n"
                  "        y = torch.softmax(w, dim=-2) @ v"),
            title="softmax over the positions that ask",
            says="Your weights add up to 1 over the target's positions. Each target position shares its weight among "
                 "the positions of the memory: the last axis of the scores."),
    Mistake(CROSS, "softmax-twice",
            edit=("y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
                  "w = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])\n"
                  "        w = w if mask is None else w.masked_fill(~mask, -torch.inf)\n"
                  "        y = torch.softmax(torch.softmax(w, dim=-1), dim=-1) @ v"),
            title="softmax twice",
            says="Your weights go through a softmax twice, which makes them nearly even. Once."),
    Mistake(CROSS, "values-through-keys", edit=("self.to_values(memory)", "self.to_keys(memory)"),
            title="values made with the matrix of the keys",
            says="Your values are made with `to_keys`. They have a matrix of their own, `to_values`."),
    Mistake(CROSS, "keys-through-queries", edit=("self.to_keys(memory)", "self.to_queries(memory)"),
            title="keys made with the matrix of the queries",
            says="Your keys are made with `to_queries`. They have a matrix of their own, `to_keys`."),
    Mistake(CROSS, "keys-and-values-exchanged",
            edit=(("k = split_heads(self.to_keys", "v = split_heads(self.to_keys"),
                  ("v = split_heads(self.to_values", "k = split_heads(self.to_values")),
            title="keys and values exchanged",
            says="Your keys are made with `to_values` and your values with `to_keys`: exchange them."),
    Mistake(CROSS, "heads-by-reshape",
            edit=(("split_heads(self.to_queries(x), self.h)",
                   "self.to_queries(x).view(len(x), self.h, x.shape[1], -1)"),
                  ("split_heads(self.to_keys(memory), self.h)",
                   "self.to_keys(memory).view(len(x), self.h, memory.shape[1], -1)"),
                  ("split_heads(self.to_values(memory), self.h)",
                   "self.to_values(memory).view(len(x), self.h, memory.shape[1], -1)")),
            title="heads split by a reshape",
            says="You cut (b, t, e) into (b, h, t, d) by a view, which mixes positions and heads. First (b, t, h, d), "
                 "then the axes are exchanged, as split_heads does."),
    Mistake(CROSS, "divided-by-d", edit=("attn_mask=mask", "attn_mask=mask, scale=1 / q.shape[-1]"),
            title="divided by d instead of √d",
            says="Your scores are divided by d, the width of one head. It is the root of it."),
    Mistake(CROSS, "no-softmax",
            edit=("y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
                  "w = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])\n"
                  "        y = (w if mask is None else w.masked_fill(~mask, 0.0)) @ v"),
            title="no softmax",
            says="Your scores weigh the values as they are. A softmax makes weights of them, which add up to 1."),
    Mistake(CROSS, "graph-cut",
            edit=("return self.unify(merge_heads(y))", "return self.unify(merge_heads(y)).detach()"),
            title="the gradient is cut off",
            says="No gradient flows from your result back to the inputs and the weights. Something cuts the graph: "
                 "`detach()`, `.data`, or `no_grad()`."),
    EquivalentMutant(CROSS, "mask.unsqueeze(1)", "mask.unsqueeze(-2)", "(b, 1, s) becomes (b, 1, 1, s) either way"),
    EquivalentMutant(CROSS, "1", "2", "(b, 1, s) becomes (b, 1, 1, s) either way"),
    Accepted(CROSS, "by-hand", instead="""
        layers = (self.to_queries, x), (self.to_keys, memory), (self.to_values, memory)
        q, k, v = (split_heads(to(y), self.h) for to, y in layers)
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None], float("-inf"))
        return self.unify(merge_heads(torch.softmax(scores, dim=-1) @ v))
    """),
    Accepted(CROSS, "head-by-head", instead="""
        d = x.shape[-1] // self.h
        q, k, v = self.to_queries(x), self.to_keys(memory), self.to_values(memory)
        outputs = []
        for i in range(self.h):
            part = slice(i * d, (i + 1) * d)
            scores = q[..., part] @ k[..., part].transpose(1, 2) * d ** -0.5
            if mask is not None:
                scores = torch.where(mask, scores, -1e9)
            outputs.append(scores.softmax(-1) @ v[..., part])
        return self.unify(torch.cat(outputs, dim=-1))
    """),
    Accepted(CROSS, "additive-mask", instead="""
        b, t, e = x.shape
        q = self.to_queries(x).view(b, t, self.h, -1).transpose(1, 2)
        k = self.to_keys(memory).view(b, -1, self.h, e // self.h).transpose(1, 2)
        v = self.to_values(memory).view(b, -1, self.h, e // self.h).transpose(1, 2)
        bias = None
        if mask is not None:
            bias = torch.zeros(b, 1, 1, mask.shape[-1], device=x.device)
            bias = bias.masked_fill(~mask.unsqueeze(1), torch.finfo(x.dtype).min)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.unify(y.transpose(1, 2).reshape(b, t, e))
    """),
    Shortcut(CROSS, "finished-part", instead="return FinishedCrossAttention.forward(self, x, memory, mask)"),
    # --------------------------------------------------------------------------------------- DecoderBlock
    Mistake(BLOCK, "memory-never-asked",
            edit=("self.cross_attention(x, memory, cross_mask)", "self.cross_attention(x, x, self_mask)"),
            title="cross-attention that looks at the target",
            says="Your cross-attention gets x twice, so the block never sees the source. Its second argument is the "
                 "memory."),
    Mistake(BLOCK, "no-cross-attention",
            edit=("x = self.norm2(x + self.cross_attention(x, memory, cross_mask))", "x = self.norm2(x)"),
            title="no cross-attention",
            says="The cross-attention is never called: a block of the decoder has three layers, and the second one "
                 "looks at the source."),
    Mistake(BLOCK, "self-mask-forgotten", edit=("self.self_attention(x, self_mask)", "self.self_attention(x)"),
            title="the target's mask is not handed on",
            says="`self_mask` comes in and goes nowhere: the target looks at what is to come, and at padding. Nothing "
                 "raises, because a mask may be left out."),
    Mistake(BLOCK, "cross-mask-forgotten", edit=("memory, cross_mask)", "memory)"),
            title="the source's mask is not handed on",
            says="`cross_mask` comes in and goes nowhere: the target looks at the source's padding."),
    Mistake(BLOCK, "masks-exchanged",
            edit=(("(x, self_mask)", "(x, cross_mask)"), ("memory, cross_mask)", "memory, self_mask)")),
            title="the two masks exchanged",
            says="The self-attention gets the mask of the source and the cross-attention that of the target. Where "
                 "both are of the same length nothing raises."),
    Mistake(BLOCK, "cross-first", instead="""
        x = self.norm2(x + self.cross_attention(x, memory, cross_mask))
        x = self.norm1(x + self.self_attention(x, self_mask))
        return self.norm3(x + self.feed_forward(x))
    """, title="cross-attention before self-attention",
            says="You look at the source first and at the target second. The self-attention comes first: what is asked "
                 "depends on all that has been written."),
    Mistake(BLOCK, "network-between", instead="""
        x = self.norm1(x + self.self_attention(x, self_mask))
        x = self.norm3(x + self.feed_forward(x))
        return self.norm2(x + self.cross_attention(x, memory, cross_mask))
    """, title="the network before the cross-attention",
            says="Your feed-forward network comes second. It comes last, after both attentions."),
    Mistake(BLOCK, "no-shortcut-across",
            edit=("self.norm2(x + self.cross_attention(x, memory, cross_mask))",
                  "self.norm2(self.cross_attention(x, memory, cross_mask))"),
            title="no shortcut around the cross-attention",
            says="What the cross-attention gives replaces x, and what has been written is lost. It is added to x, like "
                 "the other two."),
    Mistake(BLOCK, "no-shortcuts", instead="""
        x = self.norm1(self.self_attention(x, self_mask))
        x = self.norm2(self.cross_attention(x, memory, cross_mask))
        return self.norm3(self.feed_forward(x))
    """, title="no shortcuts",
            says="No layer has a shortcut: what goes into a layer has to be added to what comes out of it."),
    Mistake(BLOCK, "memory-normalised",
            edit=("self.cross_attention(x, memory, cross_mask)",
                  "self.cross_attention(x, self.norm2(memory), cross_mask)"), title="the memory normalised",
            says="You normalise the memory before it is looked at. It goes into every block as the encoder left it."),
    Mistake(BLOCK, "norm-first", instead="""
        x = x + self.self_attention(self.norm1(x), self_mask)
        x = x + self.cross_attention(self.norm2(x), memory, cross_mask)
        return x + self.feed_forward(self.norm3(x))
    """, title="norm first",
            says="You normalise what goes into each layer, as GPT-2 does. Here it is the order of 2017: the norm of "
                 "the sum."),
    Mistake(BLOCK, "norm-of-the-layer", instead="""
        x = x + self.norm1(self.self_attention(x, self_mask))
        x = x + self.norm2(self.cross_attention(x, memory, cross_mask))
        return x + self.norm3(self.feed_forward(x))
    """, title="the norm over the layer's output, not over the sum",
            says="You normalise what each layer gives and add x afterwards. The norm comes after the *sum*."),
    Mistake(BLOCK, "one-norm",
            edit=(("self.norm2(x + self.cross", "self.norm1(x + self.cross"),
                  ("self.norm3(x + self.feed", "self.norm1(x + self.feed")), title="one norm for all layers",
            says="You use `norm1` three times. Each layer has a norm of its own."),
    Mistake(BLOCK, "one-attention",
            edit=("self.cross_attention(x, memory, cross_mask)",
                  "FinishedCrossAttention.forward(self.self_attention, x, memory, cross_mask)"),
            title="one attention for both",
            says="You look at the source with the weights of the self-attention. The block has two attentions, with "
                 "weights of their own."),
    Mistake(BLOCK, "side-by-side", instead="""
        x = self.norm2(x + self.self_attention(x, self_mask) + self.cross_attention(x, memory, cross_mask))
        return self.norm3(x + self.feed_forward(x))
    """, title="both attentions read the same x",
            says="Your cross-attention asks with the x that came into the block. It comes second: it asks with what "
                 "the self-attention and its norm have left."),
    Mistake(BLOCK, "memory-asks",
            edit=("self.cross_attention(x, memory, cross_mask)", "self.cross_attention(memory, x, cross_mask)"),
            title="the memory asks",
            says="You hand the memory to the cross-attention first and x second, so the source asks and the target is "
                 "looked at. What asks comes first: x."),
    Mistake(BLOCK, "shortcut-from-the-memory",
            edit=("x + self.cross_attention(x, memory, cross_mask)",
                  "memory + self.cross_attention(x, memory, cross_mask)"),
            title="the memory added instead of x",
            says="Around the cross-attention you add the memory. The shortcut adds what goes in and is changed, x: "
                 "the memory is as long as the source."),
    Mistake(BLOCK, "asks-with-the-old-x",
            edit=(("x = self.norm1(x + self.self_attention(x, self_mask))",
                   "old, x = x, self.norm1(x + self.self_attention(x, self_mask))"),
                  ("self.cross_attention(x, memory, cross_mask)", "self.cross_attention(old, memory, cross_mask)")),
            title="the cross-attention asks with the old x",
            says="Your cross-attention asks with the x that came into the block. It asks with what the line before "
                 "has left."),
    Mistake(BLOCK, "adds-the-old-x",
            edit=(("x = self.norm1(x + self.self_attention(x, self_mask))",
                   "old, x = x, self.norm1(x + self.self_attention(x, self_mask))"),
                  ("self.norm2(x + self.cross", "self.norm2(old + self.cross")),
            title="the shortcut across starts from the old x",
            says="Around the cross-attention you add the x that came into the block. Each line starts from the x that "
                 "the line before has left."),
    Mistake(BLOCK, "no-network", edit=("return self.norm3(x + self.feed_forward(x))", "return x"),
            title="no feed-forward network",
            says="The block ends after its two attentions. The feed-forward network and the third norm are missing."),
    Mistake(BLOCK, "no-shortcut-at-the-network",
            edit=("self.norm3(x + self.feed_forward(x))", "self.norm3(self.feed_forward(x))"),
            title="no shortcut around the network",
            says="What the feed-forward network gives replaces x. It is added to x, like the other two."),
    Mistake(BLOCK, "no-shortcut-at-the-self-attention",
            edit=("self.norm1(x + self.self_attention(x, self_mask))", "self.norm1(self.self_attention(x, self_mask))"),
            title="no shortcut around the self-attention",
            says="What the self-attention gives replaces x. It is added to x, like the other two."),
    Mistake(BLOCK, "no-first-norm",
            edit=("self.norm1(x + self.self_attention(x, self_mask))", "x + self.self_attention(x, self_mask)"),
            title="no norm after the self-attention",
            says="`norm1` is missing: each of the three sums is normalised."),
    Mistake(BLOCK, "no-second-norm",
            edit=("self.norm2(x + self.cross_attention(x, memory, cross_mask))",
                  "x + self.cross_attention(x, memory, cross_mask)"),
            title="no norm after the cross-attention",
            says="`norm2` is missing: each of the three sums is normalised."),
    Mistake(BLOCK, "no-third-norm", edit=("self.norm3(x + self.feed_forward(x))", "x + self.feed_forward(x)"),
            title="no norm at the end",
            says="`norm3` is missing: each of the three sums is normalised."),
    Mistake(BLOCK, "norms-exchanged",
            edit=(("self.norm2(x + self.cross", "self.norm3(x + self.cross"),
                  ("self.norm3(x + self.feed", "self.norm2(x + self.feed")),
            title="the second and third norm exchanged",
            says="`norm2` belongs to the cross-attention and `norm3` to the feed-forward network."),
    Mistake(BLOCK, "no-masks",
            edit=(("(x, self_mask)", "(x)"), ("memory, cross_mask)", "memory)")), title="no mask is handed on",
            says="Two masks come in and go nowhere: neither attention gets one. Nothing raises, because a mask may be "
                 "left out."),
    Mistake(BLOCK, "shortcut-around-the-block",
            edit=(("x = self.norm1(x + self.self_attention(x, self_mask))",
                   "old, x = x, self.norm1(x + self.self_attention(x, self_mask))"),
                  ("return self.norm3(", "return old + self.norm3(")),
            title="a shortcut around the whole block",
            says="You add what came into the block to what leaves it. Each layer has a shortcut of its own; the block "
                 "has none."),
    Mistake(BLOCK, "graph-cut",
            edit=("return self.norm3(x + self.feed_forward(x))",
                  "return self.norm3(x + self.feed_forward(x)).detach()"),
            title="the gradient is cut off",
            says="No gradient flows from your result back to the inputs and the weights. Something cuts the graph: "
                 "`detach()`, `.data`, or `no_grad()`."),
    Mistake(BLOCK, "in-place",
            edit=("x = self.norm1(x + self.self_attention(x, self_mask))",
                  "x += self.self_attention(x, self_mask)\n        x = self.norm1(x)"),
            title="the input changed in place",
            says="`x += ...` writes into the caller's tensor. `x + ...` makes a new one."),
    Accepted(BLOCK, "names-for-steps", instead="""
        looked_back = self.self_attention(x, mask=self_mask)
        written = self.norm1(looked_back + x)
        looked_across = self.cross_attention(written, memory, mask=cross_mask)
        both = self.norm2(torch.add(written, looked_across))
        return self.norm3(self.feed_forward(both) + both)
    """),
    Accepted(BLOCK, "one-helper", instead="""
        layers = [(self.norm1, lambda y: self.self_attention(y, self_mask)),
                  (self.norm2, lambda y: self.cross_attention(y, memory, cross_mask)),
                  (self.norm3, self.feed_forward)]
        for norm, layer in layers:
            x = norm(x + layer(x))
        return x
    """),
    Accepted(BLOCK, "pytorchs-norm", instead="""
        def normal(y, norm):
            return F.layer_norm(y, y.shape[-1:], norm.weight, norm.bias, 1e-5)
        x = normal(x + self.self_attention(x, self_mask), self.norm1)
        x = normal(x + self.cross_attention(x, memory, cross_mask), self.norm2)
        return normal(x + self.feed_forward.narrow(torch.relu(self.feed_forward.widen(x))), self.norm3)
    """),
    Shortcut(BLOCK, "finished-part", instead="""
        self.pre_norm, self.dropout = False, nn.Identity()
        return FinishedDecoderBlock.forward(self, x, memory, self_mask, cross_mask)
    """),
    # ------------------------------------------------------------------------------------- EncoderDecoder
    Mistake(MODEL, "not-shifted", edit=("self.decode(sentence[:, :-1], ", "self.decode(sentence[:, 1:], "),
            title="decoder input not shifted",
            says="Your decoder reads the very tokens that it is asked for, and will learn to copy them. At position i "
                 "it reads token i and is asked for token i + 1."),
    Mistake(MODEL, "targets-not-shifted",
            edit=("finished_loss(logits, sentence[:, 1:], ", "finished_loss(logits, sentence[:, :-1], "),
            title="targets not shifted",
            says="Your decoder is asked for the token that it has just read. The target at position i is token i + 1."),
    Mistake(MODEL, "shifted-the-wrong-way",
            edit=(("self.decode(sentence[:, :-1], ", "self.decode(sentence[:, 1:], "),
                  ("finished_loss(logits, sentence[:, 1:], ", "finished_loss(logits, sentence[:, :-1], ")),
            title="shifted the wrong way",
            says="Your decoder reads token i + 1 and is asked for token i: it learns to write backwards. Exchange what "
                 "is cut off."),
    Mistake(MODEL, "padding-counts",
            edit=("return finished_loss(logits, sentence[:, 1:], smoothing, self.pad)",
                  "return F.cross_entropy(logits.transpose(1, 2), sentence[:, 1:], label_smoothing=smoothing)"),
            title="the loss counts padding",
            says="Your loss is a mean over all positions, padding included: the model is paid for predicting padding. "
                 "`finished_loss` leaves it out."),
    Mistake(MODEL, "smoothing-forgotten", edit=("smoothing, self.pad)", "0.0, self.pad)"),
            title="smoothing is not handed on",
            says="`loss` is told how much to smooth and does not tell the loss."),
    Mistake(MODEL, "wrong-table-for-source",
            edit=("self.embed(self.source_tokens, source)", "self.embed(self.target_tokens, source)"),
            title="the source embedded with the target's table",
            says="You look up the source's words in the table of the target. Each language has a table of its own."),
    Mistake(MODEL, "source-mask-forgotten", edit=("            x = block(x, mask)", "            x = block(x)"),
            title="the encoder looks at padding",
            says="Your encoder's blocks get no mask, so words look at padding, and what is made of a sentence depends "
                 "on how long its neighbours are."),
    Mistake(MODEL, "encoder-causal",
            edit=("mask = (source != self.pad).unsqueeze(1)    # (b, 1, s)",
                  "mask = finished_masks(source, source, self.pad)[1]"), title="the encoder may not look ahead",
            says="Your encoder is causal: a word of the source sees only the words before it. The source is given "
                 "whole, and everybody in it may see everybody."),
    Mistake(MODEL, "encoder-parallel", instead=("""
        mask = (source != self.pad).unsqueeze(1)
        start = self.embed(self.source_tokens, source)
        for block in self.encoder:
            x = block(start, mask)
        return x
    """,
                                                "",
                                                ""), title="every encoder block reads the embeddings",
            says="Each of your encoder blocks starts from the embeddings again, so only the last one counts. Each "
                 "reads what the one before has left."),
    Mistake(MODEL, "first-block-only", instead=("""
        mask = (source != self.pad).unsqueeze(1)
        x = self.embed(self.source_tokens, source)
        for block in self.encoder:
            return block(x, mask)
    """,
                                                "",
                                                ""), title="only the first block is run",
            says="Your encoder returns inside its loop, after the first block."),
    Mistake(MODEL, "memory-replaced",
            edit=("            x = block(x, memory, self_mask, cross_mask)",
                  "            x = block(x, memory, self_mask, cross_mask)\n            memory = F.pad(x, (0, 0, 0, "
                  "source.shape[1] - x.shape[1]))"), title="the memory replaced by a block's output",
            says="Your second block looks at something else than the first one did. Every block of the decoder gets "
                 "the memory that the encoder has made."),
    Mistake(MODEL, "self-mask-forgotten",
            edit=("block(x, memory, self_mask, cross_mask)", "block(x, memory, None, cross_mask)"),
            title="the decoder may look ahead",
            says="Your decoder's blocks get no mask for the target, so each position sees what it is asked for."),
    Mistake(MODEL, "cross-mask-forgotten",
            edit=("block(x, memory, self_mask, cross_mask)", "block(x, memory, self_mask)"),
            title="the decoder looks at the source's padding",
            says="Your decoder's blocks get no mask for the source, so the target looks at its padding."),
    Mistake(MODEL, "padding-is-zero-in-encode",
            edit=("mask = (source != self.pad).unsqueeze(1)    # (b, 1, s)",
                  "mask = (source != 0).unsqueeze(1)    # (b, 1, s)"),
            title="padding taken to be 0 in `encode`",
            says="In `encode` you compare with 0. The model knows the id of its padding, `self.pad`; 0 is an ordinary "
                 "word here."),
    Mistake(MODEL, "padding-is-zero-in-decode",
            edit=("finished_masks(source, target, self.pad)", "finished_masks(source, target, 0)"),
            title="padding taken to be 0 in `decode`",
            says="In `decode` your masks are made with 0 as padding. The model knows the id of its padding, "
                 "`self.pad`; 0 is an ordinary word here."),
    Mistake(MODEL, "reads-again-in-decode",
            edit=("x = self.embed(self.target_tokens, target)",
                  "memory = self.encode(source)\n        x = self.embed(self.target_tokens, target)"),
            title="`decode` reads the source again",
            says="Your `decode` encodes the source itself and does not use the memory that it is given. The source "
                 "comes along for its padding only: it has been read already."),
    Mistake(MODEL, "decoder-without-triangle",
            edit=("        _, self_mask, cross_mask = finished_masks(source, target, self.pad)",
                  "        cross_mask = (source != self.pad).unsqueeze(1)\n"
                  "        self_mask = (target != self.pad).unsqueeze(1)"),
            title="the decoder may look ahead",
            says="Your decoder's mask hides the target's padding, and shows what is to come. finished_masks makes one "
                 "that hides both."),
    Mistake(MODEL, "decoder-shows-target-padding",
            edit=("        _, self_mask, cross_mask = finished_masks(source, target, self.pad)",
                  "        cross_mask = (source != self.pad).unsqueeze(1)\n"
                  "        self_mask = torch.ones(len(target), target.shape[1], target.shape[1], "
                  "dtype=torch.bool, device=target.device).tril()"),
            title="the decoder sees the target's padding",
            says="Your decoder's mask is the triangle alone, so the target's padding may be looked at. finished_masks "
                 "makes one that hides both."),
    Mistake(MODEL, "wrong-table-for-target",
            edit=("self.embed(self.target_tokens, target)",
                  "self.embed(self.source_tokens, target % len(self.source_tokens.weight))"),
            title="the target embedded with the source's table",
            says="You look up the target's words in the table of the source. Each language has a table of its own."),
    Mistake(MODEL, "decoder-first-block-only",
            edit=("            x = block(x, memory, self_mask, cross_mask)",
                  "            x = block(x, memory, self_mask, cross_mask)\n            break"),
            title="only the first block of the decoder is run",
            says="Your `decode` runs the first block and leaves the others out. Each reads what the one before has "
                 "left."),
    Mistake(MODEL, "scaled-twice",
            edit=("x = self.embed(self.source_tokens, source)",
                  "x = self.embed(self.source_tokens, source) * math.sqrt(self.positions.shape[1])"),
            title="the source's vectors scaled twice",
            says="In `encode` you multiply by √e after `embed`, which has done it already."),
    Mistake(MODEL, "positions-twice",
            edit=("x = self.embed(self.source_tokens, source)",
                  "x = self.embed(self.source_tokens, source) + self.positions[:source.shape[1]]"),
            title="the source's positions added twice",
            says="In `encode` you add the positions after `embed`, which has done it already."),
    Mistake(MODEL, "graph-cut",
            edit=("return finished_loss(logits, sentence[:, 1:], smoothing, self.pad)",
                  "return finished_loss(logits, sentence[:, 1:], smoothing, self.pad).detach()"),
            title="the gradient is cut off",
            says="No gradient flows from your loss back to the weights: nothing could be learned from it. Something "
                 "cuts the graph: `detach()`, `.data`, `.item()` or `no_grad()`."),
    Mistake(MODEL, "source-not-scaled",
            edit=("x = self.embed(self.source_tokens, source)",
                  "x = self.source_tokens(source) + self.positions[:source.shape[1]]"),
            title="the source's vectors not scaled",
            says="In `encode` you add the positions to the bare token vectors. `self.embed` multiplies these by √e "
                 "first."),
    Mistake(MODEL, "target-without-positions",
            edit=("x = self.embed(self.target_tokens, target)",
                  "x = self.target_tokens(target) * math.sqrt(self.positions.shape[1])"),
            title="the target without positions",
            says="In `decode` the positions are missing. `self.embed` scales the token vectors and adds the "
                 "positions."),
    Mistake(MODEL, "log-softmax", edit=("return self.to_logits(x)", "return self.to_logits(x).log_softmax(dim=-1)"),
            title="log-probabilities instead of logits",
            says="`decode` ends in a log-softmax. Logits are asked for; the loss takes its own logarithm of a softmax "
                 "of them."),
    Mistake(MODEL, "decoder-parallel",
            edit=("            x = block(x, memory, self_mask, cross_mask)\n        return self.to_logits(x)",
                  "            y = block(x, memory, self_mask, cross_mask)\n        return self.to_logits(y)"),
            title="every decoder block reads the embeddings",
            says="Each of your decoder blocks starts from the embeddings again, so only the last one counts. Each "
                 "reads what the one before has left."),
    Alias(MODEL, "graph-cut-in-decode", of="graph-cut",
          edit=("return self.to_logits(x)", "return self.to_logits(x).detach()")),
    Mistake(MODEL, "memory-cut-off", edit=("            x = block(x, mask)\n        return x",
                                           "            x = block(x, mask)\n        return x.detach()"),
            title="the gradient is cut off in `encode`",
            says="No gradient flows back into the encoder, so it would never learn. Look at what `encode` returns: "
                 "`detach()`, `.data` and `no_grad()` cut the graph."),
    Mistake(MODEL, "probabilities", edit=("return self.to_logits(x)", "return self.to_logits(x).softmax(dim=-1)"),
            title="probabilities instead of logits",
            says="`decode` ends in a softmax. The loss takes logits, and takes its own logarithm of a softmax of "
                 "them."),
    Mistake(MODEL, "no-output-layer", edit=("return self.to_logits(x)", "return x @ self.target_tokens.weight.T"),
            title="the output layer is not used",
            says="You compare the last vectors with the token vectors. The paper shares these weights; this model has "
                 "an output layer of its own, `to_logits`, with a bias."),
    Mistake(MODEL, "tokens-without-positions",
            edit=(("x = self.embed(self.source_tokens, source)", "x = self.source_tokens(source)"),
                  ("x = self.embed(self.target_tokens, target)", "x = self.target_tokens(target)")),
            title="token vectors without scale and positions",
            says="You take the bare vectors of the tokens. `self.embed` scales them and adds the positions; without "
                 "these the model sees a set of words."),
    EquivalentMutant(MODEL, "return finished_loss(logits, sentence[:, 1:], smoothing, self.pad)",
          "return finished_loss(logits, sentence[:, 1:], smoothing, self.pad).mT",
          "one number has no axes to exchange"),
    EquivalentMutant(MODEL, "return finished_loss(logits, sentence[:, 1:], smoothing, self.pad)",
          "return finished_loss(logits, sentence[:, 1:], smoothing, self.pad).squeeze()", "one number has no axes"),
    EquivalentMutant(MODEL, "(source != self.pad).unsqueeze(1)", "(source != self.pad).unsqueeze(-2)",
          "of two axes, both are in the middle"),
    Accepted(MODEL, "other-words", instead=("""
        visible = finished_masks(source, source, self.pad)[0]
        memory = self.embed(self.source_tokens, source)
        for k in range(len(self.encoder)):
            memory = self.encoder[k](memory, mask=visible)
        return memory
    """, """
        masks = finished_masks(source, target, self.pad)
        y = self.embed(self.target_tokens, target)
        for layer in self.decoder:
            y = layer(y, memory, self_mask=masks[1], cross_mask=masks[2])
        return y @ self.to_logits.weight.T + self.to_logits.bias
    """, """
        given, wanted = sentence[:, :-1], sentence[:, 1:]
        return finished_loss(self(source, given), wanted, smoothing, self.pad)
    """)),
    Accepted(MODEL, "own-masks", instead=("", """
        t = target.shape[1]
        earlier = torch.ones(t, t, device=target.device, dtype=torch.bool).tril()
        x = self.embed(self.target_tokens, target)
        for block in self.decoder:
            x = block(x, memory, earlier & target.ne(self.pad)[:, None], source.ne(self.pad)[:, None])
        return self.to_logits(x)
    """, """
        t = sentence.shape[1] - 1
        memory = self.encode(source)
        logits = self.decode(sentence.narrow(1, 0, t), memory, source)
        return finished_loss(logits, sentence.narrow(1, 1, t), smoothing, pad=self.pad)
    """)),
    Accepted(MODEL, "counting", instead=("""
        words = source.ne(self.pad)[:, None, :]
        x = self.source_tokens.weight[source] * self.positions.shape[1] ** 0.5 + self.positions[: source.size(1)]
        for block in self.encoder:
            x = block(x, words.expand(-1, source.size(1), -1))
        return x
    """,
                                     "", """
        b, t = sentence.shape
        logits = self.decode(sentence[:, : t - 1], self.encode(source), source)
        words = sentence[:, 1:] != self.pad
        loss = finished_loss(logits[words].unsqueeze(0), sentence[:, 1:][words].unsqueeze(0), smoothing, self.pad)
        return loss
    """)),
    Shortcut(MODEL, "finished-part", instead=("", "return FinishedModel.decode(self, target, memory, source)", "")),
    # -------------------------------------------------------------------------------------- smoothed_loss
    Mistake(LOSS, "padding-counts", edit=("losses[targets != pad].mean()", "losses.mean()"),
            title="the loss counts padding",
            says="Your mean is over all positions, padding included. Where the target is padding nothing has been "
                 "asked."),
    Mistake(LOSS, "padding-in-the-mean", edit=("losses[targets != pad].mean()", "(losses * (targets != pad)).mean()"),
            title="divided by the number of all positions",
            says="Padding adds nothing to your sum, but it is counted in what you divide by. The mean is over the "
                 "words."),
    Mistake(LOSS, "smoothing-on-padding", edit=(" - log_p[..., pad] ", " "), title="smoothing mass on padding",
            says="The padding gets a share of the smoothing. It is never to be written: the rest is for the n − 2 "
                 "other *words*."),
    Mistake(LOSS, "smoothing-on-padding-shared", edit=((" - log_p[..., pad] ", " "), ("(n - 2)", "(n - 1)")),
            title="smoothing mass on padding, shared among n − 1",
            says="You share the smoothing among all tokens but the right one, padding included. Padding gets none, and "
                 "n − 2 are left."),
    Mistake(LOSS, "pytorchs-smoothing", instead="""
        return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad, label_smoothing=smoothing)
    """, title="smoothing spread over all tokens",
            says="This is F.cross_entropy's smoothing: it spreads ε over all n tokens, the right one and the padding "
                 "among them. Here it is for the n − 2 others."),
    Mistake(LOSS, "divided-by-n", edit=("(n - 2)", "n"), title="the rest divided by n",
            says="The tokens that share ε are n − 2: without the right one and without padding. You divide by n, so "
                 "that the shares add up to less than ε."),
    Mistake(LOSS, "right-one-too",
            edit=("log_p.sum(dim=-1) - right - log_p[..., pad]", "log_p.sum(dim=-1) - log_p[..., pad]"),
            title="the right token among the others",
            says="The right token gets a share of the smoothing as well. It has its 1 − ε; the rest is for the "
                 "others."),
    Mistake(LOSS, "not-divided", edit=("smoothing / (n - 2) * others", "smoothing * others"),
            title="every other token gets all of ε",
            says="Each of the others gets ε in your loss. They share it."),
    Mistake(LOSS, "smoothing-exchanged",
            edit=("-(1 - smoothing) * right - smoothing / (n - 2)", "-smoothing * right - (1 - smoothing) / (n - 2)"),
            title="ε and 1 − ε exchanged",
            says="The right token gets ε and the others share 1 − ε. It is the other way round."),
    Mistake(LOSS, "no-smoothing", edit=("-(1 - smoothing) * right - smoothing / (n - 2) * others", "-right"),
            title="no smoothing",
            says="This is plain cross-entropy; `smoothing` is not used."),
    Mistake(LOSS, "logits-for-logarithms", edit=("logits.log_softmax(dim=-1)", "logits"),
            title="logits taken for logarithms of probabilities",
            says="You use the logits as they are. Logarithms of probabilities have a softmax in them, which makes the "
                 "probabilities add up to 1."),
    Mistake(LOSS, "log-of-softmax", edit=("logits.log_softmax(dim=-1)", "logits.softmax(dim=-1).log()"),
            title="the logarithm of a softmax that is 0",
            says="Where logits are far apart, your softmax is exactly 0 and its logarithm −∞. log_softmax computes the "
                 "logarithm without the softmax."),
    Mistake(LOSS, "over-positions", edit=("logits.log_softmax(dim=-1)", "logits.log_softmax(dim=1)"),
            title="softmax over the positions",
            says="Your probabilities add up to 1 over the positions. They have to over the tokens, the last axis."),
    Mistake(LOSS, "sum", edit=("losses[targets != pad].mean()", "losses[targets != pad].sum()"),
            title="the sum instead of the mean",
            says="You add the losses of all words up; asked for is their mean."),
    Mistake(LOSS, "mean-of-means",
            edit=("return losses[targets != pad].mean()",
                  "words = targets != pad\n    return ((losses * words).sum(1) / words.sum(1)).mean()"),
            title="a mean for each sentence, then the mean of these",
            says="You average over each sentence and then over the sentences, so words of short sentences count more. "
                 "One mean, over all words of the batch."),
    Mistake(LOSS, "sign", edit=("-(1 - smoothing) * right - smoothing", "(1 - smoothing) * right + smoothing"),
            title="the sign is missing",
            says="Logarithms of probabilities are negative, and so is your loss. A loss goes down when the probability "
                 "of the right token goes up."),
    Mistake(LOSS, "divergence",
            edit=("return losses[targets != pad].mean()",
                  "losses = losses + math.log(max(1 - smoothing, 1e-30)) * (1 - smoothing) + (smoothing * "
                  "math.log(smoothing / (n - 2)) if smoothing else 0)\n    return losses[targets != pad].mean()"),
            title="the divergence instead of the cross-entropy",
            says="Your loss is the Kullback-Leibler divergence: the cross-entropy less the entropy of the smoothed "
                 "targets, so that it can reach 0. Its gradients are the same; asked for is the cross-entropy."),
    Mistake(LOSS, "shared-among-n-minus-1", edit=("(n - 2)", "(n - 1)"), title="the rest divided by n − 1",
            says="The tokens that share ε are n − 2: without the right one and without padding. You divide by n − 1."),
    Mistake(LOSS, "graph-cut", edit=("return losses[targets != pad].mean()",
                                     "return losses[targets != pad].mean().detach()"),
            title="the gradient is cut off",
            says="No gradient flows from your loss back to the logits. Something cuts the graph: `detach()`, `.data`, "
                 "`.item()` or `no_grad()`."),
    Mistake(LOSS, "padding-as-a-word",
            edit=("losses[targets != pad].mean()", "losses[targets != 0].mean()"), title="padding taken to be 0",
            says="You leave out targets that are 0. The id of the padding is an argument, and here it is another one."),
    Mistake(LOSS, "full-one-for-the-right",
            edit=("-(1 - smoothing) * right - smoothing", "-right - smoothing"), title="the right token keeps all of 1",
            says="The right token gets 1 in your loss, and the others ε on top. It gets 1 − ε, so that all add up to "
                 "1."),
    EquivalentMutant(LOSS, "return losses[targets != pad].mean()", "return losses[targets != pad].mean().mT",
          "one number has no axes to exchange"),
    EquivalentMutant(LOSS, "return losses[targets != pad].mean()", "return losses[targets != pad].mean().squeeze()",
          "one number has no axes"),
    EquivalentMutant(LOSS, "logits.log_softmax(dim=-1)", "logits.log_softmax(dim=-1).log_softmax(dim=-1)",
          "logarithms of probabilities stay what they are"),
    Accepted(LOSS, "target-distribution", instead="""
        n = logits.size(-1)
        wanted = torch.full_like(logits, smoothing / (n - 2))
        wanted[..., pad] = 0
        wanted.scatter_(-1, targets.unsqueeze(-1), 1 - smoothing)
        losses = -(wanted * F.log_softmax(logits, dim=-1)).sum(-1)
        words = (targets != pad).float()
        return (losses * words).sum() / words.sum()
    """),
    Accepted(LOSS, "cross-entropy-and-rest", instead="""
        n, words = logits.shape[-1], targets != pad
        logits, targets = logits[words], targets[words]
        log_p = logits - logits.logsumexp(-1, keepdim=True)
        plain = F.cross_entropy(logits, targets)
        rest = log_p.sum(-1) - log_p[torch.arange(len(targets), device=targets.device), targets] - log_p[:, pad]
        return (1 - smoothing) * plain - (smoothing * rest / (n - 2)).mean()
    """),
    Accepted(LOSS, "loops", instead="""
        b, t, n = logits.shape
        log_p = torch.log_softmax(logits, -1)
        losses = []
        for i in range(b):
            for j in range(t):
                k = int(targets[i, j])
                if k == pad:
                    continue
                rest = sum(log_p[i, j, m] for m in range(n) if m not in (k, pad))
                losses.append(-(1 - smoothing) * log_p[i, j, k] - smoothing * rest / (n - 2))
        return torch.stack(losses).mean()
    """),
    Shortcut(LOSS, "finished-part", instead="return finished_loss(logits, targets, smoothing, pad)"),
    # -------------------------------------------------------------------------------------- greedy_decode
    Mistake(GREEDY, "reads-every-time",
            edit=("logits = model.decode(written, memory, source) ",
                  "memory = model.encode(source)\n        logits = model.decode(written, memory, source) "),
            title="the encoder runs again for every token",
            says="Your tokens are right, and you read the source again before each of them. What the encoder makes of "
                 "it does not change: read it once, before the loop."),
    Alias(GREEDY, "whole-model-every-time",
          edit=("logits = model.decode(written, memory, source) ", "logits = model(source, written) "),
          of="reads-every-time"),
    Mistake(GREEDY, "first-position", edit=("logits[:, -1]", "logits[:, 0]"),
            title="the first position instead of the last",
            says="You take the logits at the first position, which say what comes after the start token, again and "
                 "again. What comes next stands at the last position."),
    Mistake(GREEDY, "last-token-only",
            edit=("model.decode(written, memory, source)", "model.decode(written[:, -1:], memory, source)"),
            title="the decoder sees one token only",
            says="You hand the decoder the last token alone, so it does not know what was written before. It needs "
                 "everything from the start token on."),
    Mistake(GREEDY, "done-go-on", edit=("best = best.masked_fill(done, model.pad)\n        ", ""),
            title="finished sentences go on growing",
            says="A sentence that has written the stop token writes on while the others are not done. From then on it "
                 "gets padding."),
    Mistake(GREEDY, "stop-for-padding", edit=("best.masked_fill(done, model.pad)", "best.masked_fill(done, stop)"),
            title="stop tokens instead of padding",
            says="After its end you fill a sentence with stop tokens. One is enough; what follows is padding, "
                 "`model.pad`."),
    Mistake(GREEDY, "padding-is-zero", edit=("best.masked_fill(done, model.pad)", "best.masked_fill(done, 0)"),
            title="padding taken to be 0",
            says="You fill with 0, which is a word here. The model knows its padding: `model.pad`."),
    Mistake(GREEDY, "stop-overwritten",
            edit=("best = best.masked_fill(done, model.pad)\n        written = torch.cat([written, best], dim=1)\n     "
                  "   done = done | (best == stop)",
                  "done = done | (best == stop)\n        best = best.masked_fill(done, model.pad)\n        written = "
                  "torch.cat([written, best], dim=1)"), title="the stop token replaced by padding",
            says="You mark a sentence as done before its stop token is written, and padding takes its place. Who is "
                 "done is settled after the token is appended."),
    Mistake(GREEDY, "first-to-stop", edit=("if done.all():", "if done.any():"),
            title="ends when the first sentence is done",
            says="You leave as soon as one sentence has stopped, and cut the others off."),
    Mistake(GREEDY, "never-ends", edit=("        if done.all():\n            break\n", ""),
            title="goes on to the limit",
            says="When all sentences have stopped you go on to the limit, with padding only."),
    Mistake(GREEDY, "start-kept", edit=("return written[:, 1:]", "return written"),
            title="the start token returned too",
            says="Your result begins with the start token. It is what the model is given, not what it writes."),
    Mistake(GREEDY, "one-too-many", edit=("for _ in range(limit):", "for _ in range(limit + 1):"),
            title="one token beyond the limit",
            says="You write limit + 1 tokens where no sentence stops before. The start token does not count."),
    Mistake(GREEDY, "one-too-few", edit=("for _ in range(limit):", "for _ in range(limit - 1):"),
            title="one token short of the limit",
            says="You write limit − 1 tokens where no sentence stops before. The start token does not count."),
    Mistake(GREEDY, "least-probable", edit=("argmax(", "argmin("), title="the least probable token",
            says="You take the token with the smallest logit."),
    Mistake(GREEDY, "on-the-cpu", edit=("torch.full_like(source[:, :1], start)", "torch.full((len(source), 1), start)"),
            title="the start tokens made on the CPU",
            says="Your start tokens are made on the CPU, wherever the source is. Pass device=source.device, or use "
                 "full_like."),
    Mistake(GREEDY, "prepended", edit=("torch.cat([written, best], dim=1)", "torch.cat([best, written], dim=1)"),
            title="new tokens put in front",
            says="You put each new token in front of what is written. The decoder reads from the start token on, and "
                 "the new one comes last."),
    Mistake(GREEDY, "padding-ends-a-sentence",
            edit=("done = done | (best == stop)", "done = best == stop"),
            title="who is done is forgotten",
            says="A sentence counts as done in the one step in which it writes the stop token, and not in the next. "
                 "Done is who was done before, or has just stopped."),
    Mistake(GREEDY, "all-read-the-first",
            edit=("memory = model.encode(source) ", "memory = model.encode(source)[:1].expand(len(source), -1, -1) "),
            title="every sentence translates the first source",
            says="All of your sentences look at the memory of the first source. Each has one of its own."),
    EquivalentMutant(GREEDY, "return written[:, 1:]", "return written[:, 1:].detach()", "ids have no gradient"),
    EquivalentMutant(GREEDY, "torch.cat([written, best], dim=1)", "torch.cat([written, best], dim=-1)",
          "ids have two axes: 1 is the last"),
    EquivalentMutant(GREEDY, "best.masked_fill(done, model.pad)", "best.masked_fill_(done, model.pad)",
          "it writes into a tensor that this loop has just made"),
    EquivalentMutant(GREEDY, "logits[:, -1].argmax(dim=-1, keepdim=True)", "logits[:, -1].argmax(dim=1, keepdim=True)",
          "logits of one position have two axes: 1 is the last"),
    Accepted(GREEDY, "fixed-page", instead="""
        b = source.shape[0]
        memory = model.encode(source)
        page = torch.full((b, limit + 1), model.pad, dtype=torch.long, device=source.device)
        page[:, 0] = start
        growing = torch.ones(b, dtype=torch.bool, device=source.device)
        t = 0
        while t < limit and growing.any():
            best = model.decode(page[:, :t + 1], memory, source)[:, -1].log_softmax(-1).max(-1).indices
            page[:, t + 1] = torch.where(growing, best, model.pad)
            growing = growing & (best != stop)
            t += 1
        return page[:, 1:t + 1]
    """),
    Accepted(GREEDY, "list-of-columns", instead="""
        memory = model.encode(source)
        columns = [torch.full_like(source[:, 0], start)]
        done = columns[0] != columns[0]
        while len(columns) <= limit and not bool(done.all()):
            logits = model.decode(torch.stack(columns, dim=1), memory, source)
            best = logits.softmax(-1)[:, -1, :].topk(1).indices[:, 0]
            best = torch.where(done, torch.full_like(best, model.pad), best)
            columns.append(best)
            done = torch.logical_or(done, best == stop)
        return torch.stack(columns[1:], dim=1)
    """),
    Accepted(GREEDY, "sentence-by-sentence", instead="""
        memory = model.encode(source)
        rows = []
        for k in range(len(source)):
            row = [start]
            while len(row) <= limit and (row[-1] != stop or len(row) == 1):
                begun = torch.tensor([row], device=source.device)
                row.append(int(model.decode(begun, memory[k:k + 1], source[k:k + 1])[0, -1].argmax()))
            rows.append(torch.tensor(row[1:]))
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=model.pad).to(source.device)
    """),
    # ---------------------------------------------------------------------------------------- beam_search
    Mistake(BEAM, "probabilities-added", edit=("log_softmax(dim=-1)", "softmax(dim=-1)"),
            title="probabilities added up, not their logarithms",
            says="You add probabilities. The probability of a sentence is a product, so it is their logarithms that "
                 "add up."),
    Mistake(BEAM, "logits-added", edit=("logits[:, -1].log_softmax(dim=-1)", "logits[:, -1]"), title="logits added up",
            says="You add logits. They are not comparable between beams before the softmax has made probabilities of "
                 "them; take its logarithm."),
    Mistake(BEAM, "last-token-alone", edit=("(scores.unsqueeze(-1) + log_p).flatten()", "log_p.flatten()"),
            title="the score of the last token alone",
            says="What each beam was worth so far plays no part in your ranking: the last token's logarithm alone "
                 "decides. A candidate's total is its beam's score plus the token's."),
    Mistake(BEAM, "finished-go-on", instead="""
        many = len(beams)
        logits = model.decode(beams, memory.expand(many, -1, -1), source.expand(many, -1))
        log_p = logits[:, -1].log_softmax(dim=-1)
        n = log_p.shape[-1]
        totals = (scores.unsqueeze(-1) + log_p).flatten()
        scores, places = totals.topk(min(width, totals.numel()))
        beams = torch.cat([beams[places // n], (places % n).unsqueeze(-1)], dim=1)
    """, title="finished beams go on growing",
            says="A beam that has written the stop token is lengthened like the others, to the limit. It is finished: "
                 "take it off the beam, with its score."),
    Mistake(BEAM, "finished-forgotten", edit=("finished.extend(zip(scores[ended], beams[ended]))\n        ", ""),
            title="finished beams thrown away",
            says="You take finished beams off and do not keep them. They compete for being the best at the end, and "
                 "when all have finished, they are all there is."),
    Mistake(BEAM, "first-to-finish", edit=("width = width - int(ended.sum())", "if ended.any():\n            break"),
            title="ends when the first beam is finished",
            says="You stop as soon as a beam has finished. One of the others may still be better; go on until no place "
                 "is left."),
    Mistake(BEAM, "best-of-each-beam",
            edit=("scores, places = totals.topk(min(width, totals.numel()))",
                  "each = log_p.topk(min(width, n) if many == 1 else 1).indices\n"
                  "        places = torch.arange(many, device=source.device).unsqueeze(-1) * n + each\n"
                  "        places = places.flatten()[:width]\n        scores = totals[places]"),
            title="each beam keeps its own best token",
            says="After the first step each of your beams goes its own way. The best candidates are chosen among those "
                 "of *all* beams: a good beam may have several descendants, and a poor one none."),
    Mistake(BEAM, "beams-not-reordered",
            edit=("beams[places // n]", "beams[torch.arange(len(places), device=source.device) % many]"),
            title="tokens appended to the wrong beams",
            says="The chosen tokens are appended to the beams in the order in which these stand. Each token belongs to "
                 "the beam that it was a candidate of, and `topk` has changed the order."),
    Mistake(BEAM, "worst-kept", edit=("min(width, totals.numel()))", "min(width, totals.numel()), largest=False)"),
            title="the worst candidates kept",
            says="You keep the candidates with the smallest totals."),
    Mistake(BEAM, "first-position", edit=("logits[:, -1]", "logits[:, 0]"),
            title="the first position instead of the last",
            says="You take the logits at the first position. What comes next stands at the last one."),
    Mistake(BEAM, "reads-every-time", edit=("many = len(beams)", "memory, many = model.encode(source), len(beams)"),
            title="the encoder runs again for every token",
            says="You read the source again in every step. What the encoder makes of it does not change: it has been "
                 "read before the loop."),
    Mistake(BEAM, "more-than-there-are", edit=("min(width, totals.numel())", "width"),
            title="more candidates asked for than there are",
            says="`topk` raises when it is asked for more candidates than there are. In the first step there are n, "
                 "and later there may be few as well. Ask for no more than there are."),
    Mistake(BEAM, "mean-score",
            edit=("(scores.unsqueeze(-1) + log_p).flatten()",
                  "((scores.unsqueeze(-1) * (beams.shape[1] - 1) + log_p) / beams.shape[1]).flatten()"),
            title="the mean instead of the sum",
            says="Your scores are means over the tokens. Long sentences then cost no more than short ones; asked for "
                 "is the sum."),
    Mistake(BEAM, "beam-for-token",
            edit=("torch.cat([beams[places // n], (places % n).unsqueeze(-1)], dim=1)",
                  "torch.cat([beams[places % n % many], (places // n).unsqueeze(-1)], dim=1)"),
            title="beam and token exchanged",
            says="Of a place in the flat list you take the beam for the token and the token for the beam. Each beam "
                 "has n places, one after the other."),
    Mistake(BEAM, "places-filled-again",
            edit=("width = width - int(ended.sum())", "width = width if len(beams) else 0"),
            title="the place of a finished beam is filled again",
            says="When a beam of yours finishes, another one takes its place. Its place goes with it: the width falls "
                 "by one."),
    Mistake(BEAM, "finished-by-length",
            edit=("finished.extend(zip(scores[ended], beams[ended]))",
                  "finished.extend(zip(scores[ended] / (beams.shape[1] - 1), beams[ended]))"),
            title="finished beams' scores divided by their length",
            says="You divide the scores of finished beams by their length, and not those that are still growing, so "
                 "the two cannot be compared. The score is the plain sum, for all of them."),
    Mistake(BEAM, "all-by-length",
            edit=("finished.extend(zip(scores[ended], beams[ended]))\n"
                  "        beams, scores = beams[~ended], scores[~ended]",
                  "finished.extend(zip(scores[ended] / beams.shape[1] ** 0.75, beams[ended]))\n"
                  "        beams, scores = beams[~ended], scores[~ended]"),
            title="a length penalty",
            says="You divide the scores of finished beams by a power of their length. Other programs do; here the "
                 "score is the plain sum of the logarithms."),
    EquivalentMutant(BEAM, "torch.cat([beams[places // n], (places % n).unsqueeze(-1)], dim=1)",
          "torch.cat([beams[places // n], (places % n).unsqueeze(-1)], dim=-1)", "beams have two axes: 1 is the last"),
    EquivalentMutant(BEAM, "(places % n).unsqueeze(-1)", "(places % n).unsqueeze(1)", "places have one axis"),
    EquivalentMutant(BEAM, "min(width, totals.numel())", "min(totals.numel(), width)",
        "the smaller of two, in either order"),
    EquivalentMutant(BEAM, "scores.unsqueeze(-1)", "scores.unsqueeze(1)", "scores have one axis"),
    EquivalentMutant(BEAM, "-1", "1", "of two axes, 1 is the last"),
    EquivalentMutant(BEAM, "logits[:, -1].log_softmax(dim=-1)", "logits[:, -1].log_softmax(dim=1)",
          "logits of one position have two axes: 1 is the last"),
    EquivalentMutant(BEAM, "logits[:, -1].log_softmax(dim=-1)", "logits[:, -1].log_softmax(dim=-1).log_softmax(dim=-1)",
          "logarithms of probabilities stay what they are"),
    Accepted(BEAM, "loops", instead="""
        candidates = []
        for k in range(len(beams)):
            log_p = F.log_softmax(model.decode(beams[k:k + 1], memory, source)[0, -1], dim=0)
            for token, gain in enumerate(log_p):
                candidates.append((scores[k] + gain, torch.cat([beams[k], beams.new_tensor([token])])))
        candidates.sort(key=lambda pair: -float(pair[0]))
        growing = []
        for score, ids in candidates[:width]:
            if int(ids[-1]) == stop:
                finished.append((float(score), ids))
            else:
                growing.append((score, ids))
        width -= min(width, len(candidates)) - len(growing)
        if growing:
            scores, beams = torch.stack([s for s, _ in growing]), torch.stack([b for _, b in growing])
        else:
            scores, beams = scores[:0], beams[:0]
    """),
    Accepted(BEAM, "divmod", instead="""
        many, t = beams.shape
        logits = model.decode(beams, memory.repeat(many, 1, 1), source.repeat(many, 1))
        gains = logits[:, -1] - logits[:, -1].logsumexp(-1, keepdim=True)
        totals = (scores[:, None] + gains).reshape(-1)
        scores, places = totals.sort(descending=True)
        scores, places = scores[:width], places[:width]
        rows = torch.div(places, gains.shape[1], rounding_mode="floor")
        tokens = places - rows * gains.shape[1]
        beams = torch.cat((beams.index_select(0, rows), tokens[:, None]), 1)
        going = tokens != stop
        finished += list(zip(scores[~going].tolist(), beams[~going]))
        beams, scores = beams[going], scores[going]
        width -= len(going) - len(beams)
    """),
    Accepted(BEAM, "best-of-each-first", instead="""
        many = len(beams)
        log_p = F.log_softmax(model.decode(beams, memory.expand(many, -1, -1), source.expand(many, -1))[:, -1], -1)
        gains, tokens = log_p.topk(min(width, log_p.shape[1]))
        totals = scores[:, None] + gains
        order = totals.flatten().argsort(descending=True)[:width]
        beams = torch.cat([beams[order // totals.shape[1]], tokens.flatten()[order][:, None]], dim=1)
        scores = totals.flatten()[order]
        kept = []
        for k in range(len(beams)):
            if beams[k, -1] == stop:
                finished.append((scores[k], beams[k]))
                width -= 1
            else:
                kept.append(k)
        beams, scores = beams[kept], scores[kept]
    """),
]
