"""What students get wrong in lesson 18, and what to tell them."""

from helpers.authoring import Accepted, EquivalentMutant, Mistake, Shortcut

NORM, GATED, GROUPED, HALVES, MODEL, ROUTE, MIN_P, SILENT = (
    "RMSNorm",
    "SwiGLU",
    "GroupedQueryAttention",
    "halves_from_pairs",
    "Llama",
    "route",
    "keep_min_p",
    "without_head",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # -------------------------------------------------------------------------------------------- RMSNorm
    # as in llm-foundry, issue 371
    Mistake(NORM, "unchanged", instead="normed = wide / torch.rsqrt(square + self.eps)",
            title="divided by one over the root",
            says="Twice the input gives four times the output. `rsqrt` is one over the root: to divide by it is to "
                 "multiply by the root."),
    Mistake(NORM, "no-root", edit=("wide * torch.rsqrt(square + self.eps)", "wide / (square + self.eps)"),
            title="the root is missing",
            says="You divide by the mean square itself: twice the input gives half the output. Divide by its root."),
    Mistake(NORM, "epsilon-outside", edit=("wide * torch.rsqrt(square + self.eps)",
                                           "wide / (square.sqrt() + self.eps)"),
            title="ε outside of the root",
            says="You add ε to the root. It belongs under it, to the mean square, where it also keeps the slope finite "
                 "at 0."),
    Mistake(NORM, "fixed-epsilon", edit=("square + self.eps", "square + 1e-5"), title="ε is not the one asked for",
            says="Your norm does not use the ε that was asked for. It is in `self.eps`."),
    Mistake(NORM, "mean-subtracted", instead="""
        wide = wide - wide.mean(dim=-1, keepdim=True)
        normed = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
    """, title="the mean is subtracted",
            says="You subtract the mean first, as LayerNorm does. RMSNorm leaves it where it is."),
    Mistake(NORM, "sum-of-squares", instead="""
        normed = wide * torch.rsqrt(wide.square().sum(dim=-1, keepdim=True) + self.eps)
    """, title="the sum of squares and not the mean",
            says="Your vectors come out with length 1. It is the *mean* square that is to be 1, so their length is "
                 "√e."),
    Mistake(NORM, "squares-in-half", instead="""
        normed = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
    """, title="squares in half precision",
            says="In float16 your squares overflow: 300² is more than it can hold. Take them of `wide`, which is in 32 "
                 "bits."),
    Mistake(NORM, "type-not-returned", edit=("return (self.weight * normed).to(x.dtype)",
                                             "return self.weight.float() * normed"),
            title="float32 comes back",
            says="The numbers are right, and your norm answers float16 with float32. What comes out has the type of "
                 "what came in."),
    Mistake(NORM, "no-weight", edit=("(self.weight * normed)", "(1 + 0 * self.weight) * normed"),
            title="the weight is left out",
            says="The learned weight is not used: each component is multiplied with its own."),
    Mistake(NORM, "over-positions", instead="""
        dims = tuple(range(1, wide.dim())) if wide.dim() > 1 else (0,)
        normed = wide * torch.rsqrt(wide.square().mean(dim=dims, keepdim=True) + self.eps)
    """, title="one size for all positions",
            says="You take one mean over positions and components. Each position is normalised by itself."),
    Accepted(NORM, "root", instead="normed = wide / (square + self.eps).sqrt()"),
    Accepted(NORM, "power", instead="normed = wide * (self.eps + wide.pow(2).mean(-1, keepdim=True)) ** -0.5"),
    Accepted(NORM, "length", instead="""
        e = x.shape[-1]
        normed = wide * e ** 0.5 / (torch.linalg.vector_norm(wide, dim=-1, keepdim=True) ** 2 + e * self.eps).sqrt()
    """),
    Shortcut(NORM, "torch-norm", instead="normed = F.rms_norm(wide, (x.shape[-1],), None, self.eps)"),
    Shortcut(NORM, "finished-norm", instead="normed = finished_norm(x.shape[-1], self.eps).to(x.device)(wide)"),
    # --------------------------------------------------------------------------------------------- SwiGLU
    # as in breakdown-minimind, issue 3
    Mistake(GATED, "silu-over-the-product", edit=("F.silu(self.gate(x)) * self.up(x)",
                                                  "F.silu(self.gate(x) * self.up(x))"),
            title="silu over the product",
            says="You apply silu to the product of gate and up. It belongs to the gate alone."),
    Mistake(GATED, "exchanged", edit=("F.silu(self.gate(x)) * self.up(x)", "self.gate(x) * F.silu(self.up(x))"),
            title="gate and up exchanged",
            says="You apply silu to `up`. By themselves both are alike; with published weights the model would talk "
                 "nonsense: silu belongs to `gate`."),
    Mistake(GATED, "sigmoid", edit=("F.silu(self.gate(x))", "torch.sigmoid(self.gate(x))"),
            title="a sigmoid for silu",
            says="Your gate is a sigmoid. silu is a times its sigmoid."),
    Mistake(GATED, "gelu", edit=("F.silu(self.gate(x))", "F.gelu(self.gate(x))"), title="GELU for silu",
            says="Your gate has GELU, which makes it a GEGLU. Here it is silu."),
    Mistake(GATED, "relu", edit=("F.silu(self.gate(x))", "F.relu(self.gate(x))"), title="ReLU for silu",
            says="Your gate has ReLU. Here it is silu, which is smooth."),
    Mistake(GATED, "softmax", edit=("F.silu(self.gate(x))", "torch.softmax(self.gate(x), dim=-1)"),
            title="softmax for silu",
            says="Your gate is a softmax, so the components share one. silu acts on each component by itself."),
    Mistake(GATED, "silu-at-the-end", edit=("self.down(F.silu(self.gate(x)) * self.up(x))",
                                            "F.silu(self.down(self.gate(x) * self.up(x)))"),
            title="silu after the last layer",
            says="You apply silu to what comes out. It belongs to the gate, before the product."),
    Mistake(GATED, "no-product", edit=("F.silu(self.gate(x)) * self.up(x)", "F.silu(self.gate(x)) + self.up(x)"),
            title="a sum for the product",
            says="You add the gate and the other layer. They are multiplied, component by component."),
    Mistake(GATED, "no-gate", edit=("F.silu(self.gate(x)) * self.up(x)", "F.silu(self.up(x))"),
            title="the gate is not used",
            says="Your gate is made and not used: the network is an ordinary one."),
    Mistake(GATED, "silu-everywhere", edit=("* self.up(x)", "* F.silu(self.up(x))"), title="silu on both",
            says="You apply silu to both layers. `up` enters the product as it is."),
    Mistake(GATED, "biases", instead=("""
        self.gate, self.up = nn.Linear(e, hidden), nn.Linear(e, hidden)
        self.down = nn.Linear(hidden, e)
    """, ""), title="biases",
            says="Your layers have biases. No linear layer of a Llama has one: `bias=False`."),
    Mistake(GATED, "shared", edit=("self.up = nn.Linear(e, hidden, bias=False)", "self.up = self.gate"),
            title="gate and up are one layer",
            says="Gate and up are the same layer. There are three matrices."),
    Accepted(GATED, "by-hand", instead=("", """
        a = self.gate(x)
        return self.down(self.up(x) * a * torch.sigmoid(a))
    """)),
    Accepted(GATED, "module", instead=("""
        self.up, self.gate = (nn.Linear(e, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, e, bias=False)
    """, "return self.down(self.up(x).mul(nn.SiLU()(self.gate(x))))")),
    # ------------------------------------------------------------------------------- GroupedQueryAttention
    # as in the reference of the ONNX standard, pull request 7274
    Mistake(GROUPED, "tiled", edit=(("k = k.repeat_interleave(share, dim=1) ", "k = k.repeat(1, share, 1, 1) "),
                                    ("v = v.repeat_interleave(share, dim=1)", "v = v.repeat(1, share, 1, 1)")),
            title="groups in turn: 0, 1, 0, 1",
            says="Your heads take the groups in turn, 0, 1, 0, 1. Neighbouring heads share one, 0, 0, 1, 1: "
                 "`repeat_interleave`."),
    Mistake(GROUPED, "keys-tiled", edit=("k = k.repeat_interleave(share, dim=1) ", "k = k.repeat(1, share, 1, 1) "),
            title="the keys' groups in turn: 0, 1, 0, 1",
            says="Your keys are copied 0, 1, 0, 1 and your values 0, 0, 1, 1: heads look through the keys of one group "
                 "and take the values of another."),
    # as in lingua, issue 44
    Mistake(GROUPED, "cache-after-copying", instead=("", """
        first, t = 0 if past is None else past.length, x.shape[1]
        positions = torch.arange(first, first + t, device=x.device)
        q = rotate(split_heads(self.to_queries(x), self.h), positions)
        k = rotate(split_heads(self.to_keys(x), self.groups), positions)
        v = split_heads(self.to_values(x), self.groups)
        share = self.h // self.groups
        k, v = k.repeat_interleave(share, dim=1), v.repeat_interleave(share, dim=1)
        if past is not None:
            k, v = past.append(k, v)
        mask = causal_mask(first + t, x.device)[first:]
        weights = masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask)
        return self.unify(merge_heads(weights @ v))
    """), title="the cache holds copies",
            says="Your outputs are right, and your cache holds a key and a value for each *head*: nothing is saved. "
                 "Put the groups into it, and copy what comes back."),
    Mistake(GROUPED, "along-the-positions",
            edit=(("k = k.repeat_interleave(share, dim=1) ",
                   "k = k.repeat_interleave(share, dim=2).reshape(len(x), self.h, -1, k.shape[-1]) "),
                  ("v = v.repeat_interleave(share, dim=1)",
                   "v = v.repeat_interleave(share, dim=2).reshape(len(x), self.h, -1, v.shape[-1])")),
            title="copied along the positions",
            says="You copy each position and cut the result into heads: half of a group's text goes to one head and "
                 "half to the next. Copies are made along the axis of heads."),
    Mistake(GROUPED, "values-turned", edit=("v = split_heads(self.to_values(x), self.groups)",
                                            "v = rotate(split_heads(self.to_values(x), self.groups), positions)"),
            title="values turned too",
            says="You turn the values too. Only products of queries and keys are to know the distance."),
    Mistake(GROUPED, "keys-not-turned", edit=("k = rotate(split_heads(self.to_keys(x), self.groups), positions)",
                                              "k = split_heads(self.to_keys(x), self.groups)"),
            title="keys not turned",
            says="You turn the queries alone. Then scores depend on where the query stands and not on how far apart "
                 "the two are."),
    Mistake(GROUPED, "queries-not-turned", edit=("q = rotate(split_heads(self.to_queries(x), self.h), positions)",
                                                 "q = split_heads(self.to_queries(x), self.h)"),
            title="queries not turned", says="You turn the keys alone. Queries are turned by their positions too."),
    Mistake(GROUPED, "not-turned", edit=(("q = rotate(split_heads(self.to_queries(x), self.h), positions)",
                                          "q = split_heads(self.to_queries(x), self.h)"),
                                         ("k = rotate(split_heads(self.to_keys(x), self.groups), positions)",
                                          "k = split_heads(self.to_keys(x), self.groups)")),
            title="no positions", says="Your layer knows no positions: neither queries nor keys are turned."),
    Mistake(GROUPED, "positions-from-0", edit=("torch.arange(first, first + t, device=x.device)",
                                               "torch.arange(t, device=x.device)"),
            title="positions count from 0 again",
            says="Behind a cache your positions begin at 0 again. They go on from `past.length`."),
    Mistake(GROUPED, "upper-left-mask", edit=("causal_mask(first + t, x.device)[first:]",
                                              "causal_mask(first + t, x.device)[:t]"),
            title="the mask is drawn from the left",
            says="With a cache your mask takes the first t rows of the triangle: the new positions see the oldest "
                 "alone. They are the *last* t."),
    Mistake(GROUPED, "no-mask", edit=("masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask)",
                                      "torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)"),
            title="no mask", says="Your positions see the future: the mask is missing."),
    Mistake(GROUPED, "softmax-over-queries", edit=(
        "masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask)",
        "torch.softmax((q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -1e9), dim=-2)"),
            title="softmax over the queries",
            says="Your softmax runs down the columns, over the queries. Each query shares its weight among the keys: "
                 "the last axis."),
    Mistake(GROUPED, "no-scale", edit=(" / math.sqrt(q.shape[-1])", ""), title="not divided by √d",
            says="Your scores are not divided by √d."),
    Mistake(GROUPED, "root-of-e", edit=("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1])"),
            title="divided by √e",
            says="You divide by the root of the whole width. d is the width of one head."),
    Mistake(GROUPED, "cache-ignored", instead=("", """
        positions = torch.arange(x.shape[1], device=x.device)
        q = rotate(split_heads(self.to_queries(x), self.h), positions)
        k = rotate(split_heads(self.to_keys(x), self.groups), positions)
        v = split_heads(self.to_values(x), self.groups)
        if past is not None:
            past.append(k, v)
        share = self.h // self.groups
        k, v = k.repeat_interleave(share, dim=1), v.repeat_interleave(share, dim=1)
        weights = masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), causal_mask(x.shape[1], x.device))
        return self.unify(merge_heads(weights @ v))
    """), title="what the cache returns is not used",
            says="You put keys and values into the cache and go on with the new ones alone. `append` returns those of "
                 "all positions."),
    Mistake(GROUPED, "keys-not-turned-in-the-cache", instead=("", """
        first, t = 0 if past is None else past.length, x.shape[1]
        k, v = (split_heads(layer(x), self.groups) for layer in (self.to_keys, self.to_values))
        if past is not None:
            k, v = past.append(k, v)
        places = torch.arange(first + t, device=x.device)
        q, k = rotate(split_heads(self.to_queries(x), self.h), places[first:]), rotate(k, places)
        share = self.h // self.groups
        k, v = k.repeat_interleave(share, dim=1), v.repeat_interleave(share, dim=1)
        weights = masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), causal_mask(first + t, x.device)[first:])
        return self.unify(merge_heads(weights @ v))
    """), title="keys go into the cache before they are turned",
            says="Your outputs are right, and the keys in the cache are not turned, so that each step has to turn all "
                 "of them again. Turn the new ones, then append."),
    Mistake(GROUPED, "biases", instead=("""
        d = e // h
        self.to_queries, self.unify = nn.Linear(e, e), nn.Linear(e, e)
        self.to_keys, self.to_values = nn.Linear(e, groups * d), nn.Linear(e, groups * d)
    """, ""), title="biases",
            says="Your layers have biases. No linear layer of a Llama has one."),
    Mistake(GROUPED, "no-unify", edit=("return self.unify(merge_heads(weights @ v))",
                                       "return merge_heads(weights @ v)"),
            title="unify is missing", says="The heads are joined, and `unify` is not applied."),
    Mistake(GROUPED, "keys-for-all-heads", edit=(
        ("self.to_keys = nn.Linear(e, groups * d, bias=False)", "self.to_keys = nn.Linear(e, e, bias=False)"),
        ("self.to_values = nn.Linear(e, groups * d, bias=False)", "self.to_values = nn.Linear(e, e, bias=False)"),
        ("k = rotate(split_heads(self.to_keys(x), self.groups), positions)",
         "k = rotate(split_heads(self.to_keys(x), self.h)[:, :self.groups], positions)"),
        ("v = split_heads(self.to_values(x), self.groups)",
         "v = split_heads(self.to_values(x), self.h)[:, :self.groups]")),
            title="keys and values for all heads",
            says="Your `to_keys` and `to_values` make e numbers a position. Groups need groups·d."),
    Mistake(GROUPED, "heads-and-positions", edit=("merge_heads(weights @ v)", "(weights @ v).reshape(x.shape)"),
            title="heads and positions mixed up",
            says="You reshape (b, h, t, d) into (b, t, e) as it lies in memory, which mixes positions: `merge_heads`."),
    Mistake(GROUPED, "one-head-a-group", edit=("k = k.repeat_interleave(share, dim=1) ",
                                               "k = k[:, :1].repeat_interleave(self.h, dim=1) "),
            title="the keys of one group for all",
            says="All your heads look through the keys of group 0."),
    EquivalentMutant(GROUPED, "q", "k", "keys are as wide as queries: of both the last axis is d"),
    EquivalentMutant(GROUPED, "q", "v", "values are as wide as queries: of both the last axis is d"),
    Accepted(GROUPED, "views", instead=("", """
        b, t, e = x.shape
        d, first = e // self.h, past.length if past is not None else 0
        where = first + torch.arange(t, device=x.device)
        q = rotate(self.to_queries(x).view(b, t, self.h, d).transpose(1, 2), where)
        k, v = (layer(x).view(b, t, self.groups, d).transpose(1, 2) for layer in (self.to_keys, self.to_values))
        k = rotate(k, where)
        if past is not None:
            k, v = past.append(k, v)
        q = q.reshape(b, self.groups, -1, t, d)
        scores = torch.einsum("bgrtd,bgsd->bgrts", q, k) / d ** 0.5
        later = torch.arange(first + t, device=x.device) > where[:, None]
        weights = scores.masked_fill(later, -math.inf).softmax(-1)
        z = torch.einsum("bgrts,bgsd->bgrtd", weights, v).reshape(b, self.h, t, d)
        return self.unify(z.transpose(1, 2).reshape(b, t, e))
    """)),
    Accepted(GROUPED, "fused", instead=("""
        self.to_queries, self.unify = (nn.Linear(e, e, bias=False) for _ in range(2))
        self.to_keys, self.to_values = (nn.Linear(e, groups * (e // h), bias=False) for _ in range(2))
    """, """
        t = x.shape[1]
        first = 0 if past is None else past.length
        places = torch.arange(first, first + t, device=x.device)
        q, k = (rotate(split_heads(layer(x), count), places)
                for layer, count in ((self.to_queries, self.h), (self.to_keys, self.groups)))
        v = split_heads(self.to_values(x), self.groups)
        k, v = (k, v) if past is None else past.append(k, v)
        mask = torch.ones(t, first + t, dtype=torch.bool, device=x.device).tril(first)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.unify(merge_heads(z))
    """)),
    Shortcut(GROUPED, "finished-block", instead=("", """
        whole = finished_block(Config(n=2, e=x.shape[2], h=self.h, groups=self.groups, depth=1, hidden=2)).attention
        whole.load_state_dict(self.state_dict())
        return whole.to(x.device)(x, past)
    """)),
    # ----------------------------------------------------------------------------------- halves_from_pairs
    Mistake(HALVES, "all-heads-at-once", instead="""
        d = weight.shape[0]
        return weight.reshape(d // 2, 2, -1).transpose(0, 1).reshape(weight.shape)
    """, title="over all heads at once",
            says="You sort the rows of all heads together: rows of one head land in another. Within each head."),
    Mistake(HALVES, "the-other-way", instead="""
        d = weight.shape[0] // h
        return weight.reshape(h, 2, d // 2, -1).transpose(1, 2).reshape(weight.shape)
    """, title="from halves to pairs",
            says="You go the other way, from halves to pairs. Row 1 of a head goes to place d/2, not to place 2."),
    Mistake(HALVES, "not-moved", idle=True, instead="return weight.clone()", title="rows left where they were",
            says="Your rows stay where they were."),
    Mistake(HALVES, "seconds-first", instead="""
        d = weight.shape[0] // h
        rows = weight.reshape(h, d // 2, 2, -1).flip(2)
        return rows.transpose(1, 2).reshape(weight.shape)
    """, title="the seconds first",
            says="Each head begins with the seconds of its pairs. The firsts come first: 0, 2, 4, 1, 3, 5."),
    Mistake(HALVES, "columns", instead="""
        d = weight.shape[0] // h
        order = [c for c in range(0, weight.shape[1], 2)] + [c for c in range(1, weight.shape[1], 2)]
        return weight[:, order]
    """, title="columns moved and not rows",
            says="You sort the columns. A column belongs to a component of x, which is the same in both ways; the rows "
                 "make the components of queries and keys."),
    Mistake(HALVES, "reversed", instead="""
        d = weight.shape[0] // h
        rows = weight.reshape(h, d, -1)
        return torch.cat([rows[:, 0::2], rows[:, 1::2].flip(1)], dim=1).reshape(weight.shape)
    """, title="the seconds in reverse",
            says="Your seconds stand in reverse order. The partner of row j is row j + d/2."),
    Mistake(HALVES, "heads-and-widths", edit=("d = weight.shape[0] // h", "h, d = weight.shape[0] // h, h"),
            title="h taken for d", says="You cut into heads of width h. h is their number."),
    Accepted(HALVES, "slices", instead="""
        d = weight.shape[0] // h
        heads = weight.unflatten(0, (h, d))
        return torch.cat([heads[:, ::2], heads[:, 1::2]], dim=1).flatten(0, 1)
    """),
    Accepted(HALVES, "index", instead="""
        d = len(weight) // h
        one = list(range(0, d, 2)) + list(range(1, d, 2))
        return weight[[head * d + row for head in range(h) for row in one]]
    """),
    # ------------------------------------------------------------------------------------------------ Llama
    Mistake(MODEL, "no-norm", edit=("        x = self.norm(x)\n", ""), title="no norm at the end",
            says="The norm after the last block is missing."),
    Mistake(MODEL, "own-epsilon", edit=("finished_norm(config.e, config.epsilon)", "finished_norm(config.e)"),
            title="ε of the last norm left out",
            says="Your last norm has an ε of its own. The config says which: `config.epsilon`."),
    Mistake(MODEL, "always-tied", edit=("return F.linear(x, self.tokens.weight) if self.tied else self.to_logits(x)",
                                        "return F.linear(x, self.tokens.weight)"),
            title="always tied",
            says="You use the table of tokens as output layer also where the config has two: there it is "
                 "`to_logits`."),
    Mistake(MODEL, "never-tied", edit=(
        ("if not config.tied:\n            self.to_logits = nn.Linear(config.e, config.n, bias=False)",
         "self.to_logits = nn.Linear(config.e, config.n, bias=False)"),
        ("F.linear(x, self.tokens.weight) if self.tied else self.to_logits(x)", "self.to_logits(x)")),
            title="never tied",
            says="You have an output layer also where the config is tied. There the table of tokens serves twice."),
    Mistake(MODEL, "one-block", edit=("[block(config) for _ in range(config.depth)]", "[block(config)] * config.depth"),
            title="one block, used again and again",
            says="Your list holds the same block `depth` times. Each has weights of its own."),
    Mistake(MODEL, "too-few-blocks", edit=("range(config.depth)", "range(config.depth - 1)"), title="a block too few",
            says="You have one block fewer than `config.depth`."),
    Mistake(MODEL, "finished-blocks-always", edit=("[block(config) for", "[finished_block(config) for"),
            title="always the same kind of block",
            says="You make finished blocks, whatever kind was asked for. Your own parts come in by `block`."),
    Mistake(MODEL, "cache-not-handed-on", edit=("x = block(x, None if cache is None else cache.layers[i])",
                                                "x = block(x)"),
            title="the cache is not handed on",
            says="Your blocks get no cache: each piece of a text begins from nothing. Block i gets "
                 "`cache.layers[i]`."),
    Mistake(MODEL, "one-cache-for-all", edit=("cache.layers[i]", "cache.layers[0]"), title="one block's cache for all",
            says="All your blocks put their keys into the cache of the first. Each has its own layer of it."),
    Mistake(MODEL, "embeddings-scaled", edit=("x = self.tokens(ids)\n",
                                              "x = self.tokens(ids) * self.tokens.embedding_dim ** 0.5\n"),
            title="embeddings times √e",
            says="You multiply the embeddings by √e, as the translation model does. This model takes them as they "
                 "are."),
    Mistake(MODEL, "layer-norm", edit=("self.norm = finished_norm(config.e, config.epsilon)",
                                       "self.norm = nn.LayerNorm(config.e, eps=config.epsilon, bias=False)"),
            title="LayerNorm at the end",
            says="Your last norm subtracts the mean. It is an RMSNorm like all others."),
    Mistake(MODEL, "normed-first", edit=(("        x = self.norm(x)\n", ""),
                                         ("x = self.tokens(ids)\n", "x = self.norm(self.tokens(ids))\n")),
            title="the norm before the blocks",
            says="Your norm stands before the first block. It comes after the last: the blocks normalise first, so "
                 "nothing has normalised what leaves them."),
    Mistake(MODEL, "probabilities", edit=("return F.linear(x, self.tokens.weight) if self.tied else self.to_logits(x)",
                                          "return torch.softmax(F.linear(x, self.tokens.weight) if self.tied\n"
                                          "                             else self.to_logits(x), dim=-1)"),
            title="probabilities for logits",
            says="Your model returns probabilities. Logits are asked for: no softmax at the end."),
    Mistake(MODEL, "a-bias", edit=("nn.Linear(config.e, config.n, bias=False)", "nn.Linear(config.e, config.n)"),
            title="an output layer with a bias", says="Your output layer has a bias. No layer of a Llama has one."),
    Accepted(MODEL, "torch-norm", instead=("""
        self.config = config
        self.tokens = nn.Embedding(config.n, config.e)
        self.blocks = nn.ModuleList(block(config) for _ in range(config.depth))
        self.norm = nn.RMSNorm(config.e, eps=config.epsilon)
        if not config.tied:
            self.to_logits = nn.Linear(config.e, config.n, bias=False)
    """, """
        x = self.tokens(ids)
        pasts = [None] * len(self.blocks) if cache is None else cache.layers
        for block, past in zip(self.blocks, pasts):
            x = block(x, past)
        table = self.tokens.weight if self.config.tied else self.to_logits.weight
        return self.norm(x) @ table.T
    """)),
    Accepted(MODEL, "without-a-cache-apart", instead=("", """
        x = self.tokens(ids)
        for i in range(len(self.blocks)):
            x = self.blocks[i](x) if cache is None else self.blocks[i](x, past=cache.layers[i])
        x = self.norm(x)
        if self.tied:
            return torch.einsum("bte,ne->btn", x, self.tokens.weight)
        return self.to_logits(x)
    """)),
    # ------------------------------------------------------------------------------------------------ route
    Mistake(ROUTE, "not-renormalised", edit=("    weights = weights / weights.sum(dim=-1, keepdim=True)\n", ""),
            title="weights not renormalised",
            says="Your weights are the probabilities as they are: those of one token sum to less than 1. Divide by "
                 "their sum."),
    Mistake(ROUTE, "logits-as-weights", edit=("weights, experts = chances.topk(k, dim=-1)",
                                              "weights, experts = logits.topk(k, dim=-1)"),
            title="logits in the place of probabilities",
            says="Your weights are made of logits. They are probabilities, after the softmax."),
    Mistake(ROUTE, "counted-per-token", edit=("/ experts.numel()", "/ len(experts)"),
            title="f over tokens and not over choices",
            says="You divide the counts by the number of tokens. With k choices each your shares sum to k, and the "
                 "balance of an even router is k and not 1."),
    Mistake(ROUTE, "chosen-only", edit=("P = chances.mean(dim=0)",
                                        "P = (chances * F.one_hot(experts, N).sum(dim=1)).mean(dim=0)"),
            title="P over the chosen alone",
            says="Your P counts a probability only where the expert was chosen. It is the mean over all tokens, those "
                 "that did not choose it too."),
    Mistake(ROUTE, "chosen-mean", edit=("P = chances.mean(dim=0)",
                                        "hits = F.one_hot(experts, N).sum(dim=1)\n"
                                        "    P = (chances * hits).sum(dim=0) / hits.sum(dim=0).clamp(min=1)"),
            title="P is the mean of the choosers",
            says="Your P is the mean over the tokens that chose the expert. It is the mean over all tokens."),
    Mistake(ROUTE, "without-n", edit=("N * (f * P).sum()", "(f * P).sum()"), title="N is missing",
            says="Your balance is N times too small: an even router gives 1/N."),
    Mistake(ROUTE, "first-choice-only", edit=("f = torch.bincount(experts.flatten(), minlength=N) / experts.numel()",
                                              "f = torch.bincount(experts[:, 0], minlength=N) / len(experts)"),
            title="first choices alone are counted",
            says="Your f counts each token's first choice. All k choices count."),
    Mistake(ROUTE, "squares", edit=("(f * P).sum()", "(P * P).sum()"), title="P times P",
            says="You multiply P with itself. f, the share of choices, is missing."),
    Mistake(ROUTE, "shares-squared", edit=("(f * P).sum()", "(f * f).sum() + 0 * P.sum()"), title="f times f",
            says="You multiply f with itself. Counts have no slope: the gradient has to come through P."),
    Mistake(ROUTE, "renormalised-balance", edit=("P = chances.mean(dim=0)",
                                                 "P = torch.zeros_like(chances).scatter(1, experts, weights)"
                                                 ".mean(dim=0)"),
            title="P of the weights",
            says="Your P is made of the renormalised weights of the chosen. It is the mean of the whole softmax."),
    Mistake(ROUTE, "softmax-over-tokens", edit=("torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=0)"),
            title="softmax over the tokens",
            says="Your softmax runs over the tokens. Each token has probabilities for the N experts: the last axis."),
    Mistake(ROUTE, "least-probable", edit=("chances.topk(k, dim=-1)", "chances.topk(k, dim=-1, largest=False)"),
            title="the least probable experts", says="You choose the k least probable experts."),
    Mistake(ROUTE, "softmax-again", edit=("weights = weights / weights.sum(dim=-1, keepdim=True)",
                                          "weights = torch.softmax(weights, dim=-1)"),
            title="a second softmax",
            says="You take a softmax of probabilities, which makes them nearly equal. Divide them by their sum."),
    Mistake(ROUTE, "detached", edit=("N * (f * P).sum()", "N * (f * P.detach()).sum() + 0 * P.sum()"),
            title="a balance without a gradient",
            says="The balance is right and has no gradient. It comes through P."),
    Mistake(ROUTE, "order", edit=("return weights, experts,", "return experts, weights,"),
            title="weights and experts exchanged",
            says="You return the experts first. The order is weights, experts, balance."),
    EquivalentMutant(ROUTE, "chances.mean(dim=0)", "chances.mean(dim=-2)", "of two axes the first"),
    EquivalentMutant(ROUTE, "weights.sum(dim=-1, keepdim=True)", "weights.sum(dim=1, keepdim=True)",
        "of two axes the last"),
    EquivalentMutant(ROUTE, "chances.topk(k, dim=-1)", "chances.topk(k, dim=1)", "of two axes the last"),
    EquivalentMutant(ROUTE, "torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=1)", "of two axes the last"),
    EquivalentMutant(ROUTE, "-1", "1", "of two axes the last"),
    Accepted(ROUTE, "softmax-after", instead="""
        top, experts = logits.topk(k, dim=-1)
        weights = top.softmax(dim=-1)
        N = logits.size(-1)
        f = F.one_hot(experts, N).float().mean(dim=(0, 1))
        return weights, experts, N * torch.dot(f, logits.softmax(dim=-1).mean(0))
    """),
    Accepted(ROUTE, "sorted", instead="""
        chances, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
        weights, experts = chances[:, :k], order[:, :k]
        N = logits.shape[1]
        f = torch.stack([(experts == i).float().mean() for i in range(N)])
        P = logits.softmax(dim=-1).sum(dim=0) / len(logits)
        return [weights / weights.sum(1, keepdim=True), experts, (f * P * N).sum()]
    """),
    # ------------------------------------------------------------------------------------------- keep_min_p
    Mistake(MIN_P, "against-1", edit=("p * chances.amax(dim=-1, keepdim=True)", "p"), title="against 1",
            says="You keep tokens with a probability of p or more. The floor follows the model's confidence: p times "
                 "the *largest* probability of the row."),
    Mistake(MIN_P, "logits-as-probabilities", edit=("torch.softmax(logits, dim=-1)", "logits"),
            title="logits as if they were probabilities",
            says="You compare logits. A share of the largest logit is no share of the largest probability."),
    Mistake(MIN_P, "largest-of-all", edit=("chances.amax(dim=-1, keepdim=True)", "chances.max()"),
            title="the largest of all rows",
            says="You take the largest probability of the whole batch. Each row has its own."),
    Mistake(MIN_P, "the-others", edit=("chances < least", "chances >= least"), title="the wrong ones are removed",
            says="You remove the tokens above the floor and keep those below."),
    Mistake(MIN_P, "zeros", edit=("-math.inf", "0.0"), title="0 for −∞",
            says="You set logits to 0. That is a logit like any other; −∞ is what gives a probability of 0."),
    Mistake(MIN_P, "probabilities-returned", edit=("return logits.masked_fill(chances < least, -math.inf)",
                                                   "return chances.masked_fill(chances < least, 0.0)"),
            title="probabilities come back",
            says="You return probabilities. Logits are asked for: those that stay as they came, −∞ for the others."),
    Mistake(MIN_P, "in-place", edit=("logits.masked_fill(", "logits.masked_fill_("), title="the input is changed",
            says="The result is right, and the caller's own logits are changed: `masked_fill_` works in place."),
    Mistake(MIN_P, "logs-returned", edit=("return logits.masked_fill(", "return chances.log().masked_fill("),
            title="logarithms of probabilities come back",
            says="The right tokens stay, but their logits are shifted: you return logarithms of probabilities. Those "
                 "that stay are to stay as they came."),
    Mistake(MIN_P, "one-minus-p", edit=("least = p *", "least = (1 - p) *"), title="1 − p for p",
            says="Your floor is 1 − p times the largest probability. It is p times."),
    EquivalentMutant(MIN_P, "chances < least", "chances <= least", "no probability is exactly p times another"),
    EquivalentMutant(MIN_P, "return logits.masked_fill(chances < least, -math.inf)",
          "return logits.masked_fill(chances < least, -math.inf).detach()", "one draws without gradients"),
    Accepted(MIN_P, "in-logs", instead="""
        least = logits.amax(dim=-1, keepdim=True) + math.log(p)
        return torch.where(logits >= least, logits, -math.inf)
    """),
    Accepted(MIN_P, "clone", instead="""
        chances = logits.softmax(-1)
        out = logits.clone()
        out[chances / chances.max(-1, keepdim=True).values < p] = float("-inf")
        return out
    """),
    # ----------------------------------------------------------------------------------------- without_head
    Mistake(SILENT, "in-place", edit=("silenced = z.clone()", "silenced = z"), title="the input is changed",
            says="The result is right, and the tensor that you were given has lost its head too. Make a copy first."),
    Mistake(SILENT, "the-others", instead="""
        silenced = torch.zeros_like(z)
        silenced[:, head] = z[:, head]
        return silenced
    """, title="all but that head are silenced", says="You silence all heads but the one that was named."),
    Mistake(SILENT, "row", edit=("silenced[:, head] = 0", "silenced[head % len(z)] = 0"),
            title="a text is silenced and not a head",
            says="You set a text of the batch to zero. The heads are axis 1."),
    Mistake(SILENT, "position", edit=("silenced[:, head] = 0", "silenced[:, :, head % 3] = 0"),
            title="a position is silenced and not a head",
            says="You set a position of all heads to zero. The heads are axis 1."),
    Mistake(SILENT, "component", edit=("silenced[:, head] = 0", "silenced[..., head] = 0"),
            title="a component is silenced and not a head",
            says="You set a component of all heads to zero. The heads are axis 1."),
    Mistake(SILENT, "removed", instead="""
        return torch.cat([z[:, :head], z[:, head + 1:]], dim=1)
    """, title="the head is cut out",
            says="Your result has one head fewer. `unify` needs all places: zeros stand where the head was."),
    Mistake(SILENT, "next-head", edit=("silenced[:, head] = 0", "silenced[:, (head + 1) % z.shape[1]] = 0"),
            title="the head beside it", says="You silence the head after the one that was named. They count from 0."),
    Mistake(SILENT, "mean", edit=("silenced[:, head] = 0",
                                  "silenced[:, head] = z[:, head].mean(dim=1, keepdim=True)"),
            title="the head's mean for zero",
            says="You put the head's mean in its place. That is another way to switch a head off; here it is zeros."),
    Mistake(SILENT, "detached", edit=("z.clone()", "z.detach().clone()"), title="the gradient is cut off",
            says="The numbers are right, and no gradient flows back to z any more."),
    Accepted(SILENT, "product", instead="""
        heads = torch.arange(z.shape[1], device=z.device)
        return z * (heads != head)[:, None, None]
    """),
    Accepted(SILENT, "joined", instead="""
        return torch.cat([z[:, :head], torch.zeros_like(z[:, head:head + 1]), z[:, head + 1:]], dim=1)
    """),
]
