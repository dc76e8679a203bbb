"""What students get wrong in lesson 2, and what to tell them."""

from helpers.authoring import Alias, Mistake, Same, Shortcut

LOOKUP, SHARPEN, PROJECT, ATTENTION, HEAD = "soft_lookup", "sharpen", "project", "attention", "SingleHeadAttention"

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ---------------------------------------------------------------------------------------- soft_lookup
    Mistake(LOOKUP, "winner-takes-all", instead="return values[(keys @ query).argmax()]",
            title="the best key alone answers",
            says="You return the value of the best key and forget the rest: that is the ordinary dictionary. In the "
                 "soft one every key answers, with its share. Besides, no gradient flows through argmax, so nothing "
                 "could be learned."),
    Mistake(LOOKUP, "no-softmax", edit=("torch.softmax(keys @ query, dim=0)", "keys @ query"), title="no softmax",
            says="You weight the values with the raw products, which may be negative and do not add up to 1. Turn them "
                 "into shares first."),
    Mistake(LOOKUP, "no-exp", edit=("torch.softmax(keys @ query, dim=0)", "(keys @ query) / (keys @ query).sum()"),
            title="divided by the sum, without exp",
            says="Your weights add up to 1, but some are negative, and a sum near 0 makes them huge. The exponential "
                 "is missing: use softmax."),
    Mistake(LOOKUP, "keys-averaged", edit=("weights @ values", "weights @ keys"),
            title="the keys averaged, not the values",
            says="You average the keys. They are there to be compared with; what comes back is made of the values, v "
                 "wide."),
    Mistake(LOOKUP, "values-asked", edit=("keys @ query,", "values @ query,"),
            title="the query compared with the values",
            says="You compare the query with the values, which have another width. Keys are there to be compared with; "
                 "values are only handed over."),
    Mistake(LOOKUP, "scaled", edit=("keys @ query,", "keys @ query / len(query) ** 0.5,"),
            title="divided by the root of the width",
            says="You divide the products by √d. Lesson 3 does that and says why; here they go into the softmax as "
                 "they are."),
    Mistake(LOOKUP, "cosine", edit=("keys @ query,", "torch.nn.functional.cosine_similarity(keys, query, dim=-1),"),
            title="cosines instead of dot products",
            says="You divide the products by the lengths of the vectors. The match is the plain dot product: a long "
                 "key speaks louder."),
    Mistake(LOOKUP, "query-ignored", instead="return values.mean(dim=0)", title="every value has the same weight",
            says="Your answer is the mean of all values, whatever the query. The weights come from the products of "
                 "query and keys."),
    Mistake(LOOKUP, "not-summed", edit=("weights @ values", "weights.unsqueeze(1) * values"),
            title="weighted, but not added up",
            says="Your result is (s, v): each value stands there with its weight, side by side. Add them up over s, "
                 "and one value (v,) is left."),
    Mistake(LOOKUP, "weights-returned", edit=("return weights @ values", "return weights"),
            title="the weights returned, not the answer",
            says="You return the weights, (s,). The answer is the average of the values with these weights, (v,)."),
    Mistake(LOOKUP, "in-place",
            edit=("return weights @ values", "values *= weights.unsqueeze(1)\n    return values.sum(dim=0)"),
            title="the dictionary's values changed in place",
            says="Your answer is right, but `*=` writes into the caller's values: the next lookup finds another "
                 "dictionary. Make a new tensor."),
    Same(LOOKUP, "einsum", instead="""
        shares = torch.nn.functional.softmax(torch.einsum("k,jk->j", query, keys), 0)
        return torch.einsum("j,jv->v", shares, values)
    """),
    Same(LOOKUP, "loop", instead="""
        total, answer = 0, 0
        for key, value in zip(keys, values):
            power = torch.exp((query * key).sum())
            total = total + power
            answer = answer + power * value
        return answer / total
    """),
    Same(LOOKUP, "rows", instead="return (torch.softmax(query[None] @ keys.T, dim=-1) @ values).squeeze(0)"),
    Same(LOOKUP, "library", instead="""
        q, k, v = query.unsqueeze(0), keys, values
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=1.0)[0, 0]
    """),
    # -------------------------------------------------------------------------------------------- sharpen
    Mistake(SHARPEN, "beta-ignored", edit=("beta * (keys @ query)", "keys @ query"), title="beta is not used",
            says="Your weights are the same for every beta. It belongs inside the softmax, as a factor of the "
                 "products."),
    Mistake(SHARPEN, "divided", edit=("beta * (keys @ query)", "(keys @ query) / beta"), title="divided by beta",
            says="You divide by beta, so the weights get softer as it grows, and beta = 0 is a division by zero. Here "
                 "large means sharp: multiply."),
    Mistake(SHARPEN, "beta-outside",
            edit=("torch.softmax(beta * (keys @ query), dim=0)", "beta * torch.softmax(keys @ query, dim=0)"),
            title="beta outside the softmax",
            says="You multiply the finished weights, and they add up to beta. Multiply the products before the softmax "
                 "turns them into shares."),
    Mistake(SHARPEN, "overflow", instead="""
        powers = torch.exp(beta * (keys @ query))
        return powers / powers.sum()
    """, title="the exponential overflows",
            says="Your formula is right and your numbers break for a large beta: the exponential of a large number is "
                 "infinite, and ∞/∞ is not a number. `torch.softmax` takes the largest product off first; do that, or "
                 "use it."),
    Mistake(SHARPEN, "powers", instead="""
        weights = torch.softmax(keys @ query, dim=0) ** beta
        return weights / weights.sum()
    """, title="the weights raised to the power beta",
            says="Raising the weights to the power beta and dividing again is the same on paper. For a large beta "
                 "every power vanishes, and 0/0 is not a number. Multiply before the exponential instead."),
    Mistake(SHARPEN, "not-divided-again",
            edit=("torch.softmax(beta * (keys @ query), dim=0)", "torch.softmax(keys @ query, dim=0) ** beta"),
            title="powers of the weights that no longer add up to 1",
            says="You raise the weights to the power beta, and they no longer add up to 1: beta = 0 gives 1 for every "
                 "key. Multiply the products before the softmax."),
    Mistake(SHARPEN, "squared-beta", edit=("beta * (keys @ query)", "(beta * keys) @ (beta * query)"),
            title="beta counted twice",
            says="Keys and query are both multiplied by beta, so the products get beta². Multiply one of them, or the "
                 "product."),
    Mistake(SHARPEN, "always-the-winner",
            instead="return torch.nn.functional.one_hot((keys @ query).argmax(), len(keys)).to(keys.dtype)",
            title="always one winner",
            says="Your weights are 0 and 1 whatever beta is. That is only where they end up as beta grows; at beta = 0 "
                 "all keys have to weigh the same."),
    Mistake(SHARPEN, "in-place",
            edit=("return torch.softmax(beta * (keys @ query), dim=0)",
                  "keys *= beta\n    return torch.softmax(keys @ query, dim=0)"), title="the keys multiplied in place",
            says="`*=` writes into the caller's keys: your weights are right, and the next call starts from keys that "
                 "are beta times too long. Multiply without it."),
    Same(SHARPEN, "query-first", instead="return torch.nn.functional.softmax(keys @ (beta * query), dim=-1)"),
    Same(SHARPEN, "by-hand", instead="""
        products = torch.einsum("sd,d->s", keys, query) * beta
        powers = (products - products.max()).exp()
        return powers / powers.sum()
    """),
    Same(SHARPEN, "logsumexp", instead="""
        products = torch.stack([beta * torch.dot(key, query) for key in keys])
        return torch.exp(products - torch.logsumexp(products, 0))
    """),
    # -------------------------------------------------------------------------------------------- project
    Mistake(PROJECT, "swapped", edit=("return x @ w_q, x @ w_k,", "return x @ w_k, x @ w_q,"),
            title="queries and keys swapped",
            says="Your queries are the keys and the other way round. Return them in the order of the matrices: q, k, "
                 "v."),
    Mistake(PROJECT, "shared", edit=("x @ w_k", "x @ w_q"), title="one projection for queries and keys",
            says="Your keys are made with the matrix of the queries. With one matrix for both, what i makes of j is "
                 "again what j makes of i: that is what the second matrix is there to end."),
    # the other matrix shared by both roles: the same slip, with the queries wrong instead of the keys
    Mistake(PROJECT, "shared-keys", edit=("x @ w_q", "x @ w_k"),
            title="one projection for queries and keys (that of the keys)",
            says="Your queries are made with the matrix of the keys. Each role has a matrix of its own."),
    Mistake(PROJECT, "values-from-keys", edit=("x @ w_v", "x @ w_k"), title="values made with the matrix of the keys",
            says="Your values are the keys again, d wide. Values have a matrix of their own, w_v, and may have another "
                 "width."),
    Mistake(PROJECT, "values-untouched", edit=("x @ w_v", "x"), title="values not projected",
            says="You return x itself as the values. They are projected too, with w_v."),
    Mistake(PROJECT, "transposed", edit=(("x @ w_q", "x @ w_q.T"), ("x @ w_k", "x @ w_k.T"), ("x @ w_v", "x @ w_v.T")),
            title="the matrices transposed",
            says="You multiply with w.T, and its sizes do not fit: x is (b, t, e) and each matrix (e, d), so `x @ w` "
                 "is all it takes. nn.Linear stores its weight the other way round, which is where the .T of many "
                 "programs comes from. On square matrices this slip raises nothing."),
    Mistake(PROJECT, "normalised",
            edit=("return x @ w_q, x @ w_k, x @ w_v",
                  "w_q, w_k = torch.softmax(w_q, -1), torch.softmax(w_k, -1)\n    return x @ w_q, x @ w_k, x @ w_v"),
            title="a softmax in the projection",
            says="You softmax the matrices. A projection is a plain product, any numbers allowed; the softmax comes "
                 "later, over the scores."),
    Same(PROJECT, "einsum", instead="return tuple(torch.einsum('bte,ef->btf', x, w) for w in (w_q, w_k, w_v))"),
    Same(PROJECT, "linear", instead="""
        q = torch.nn.functional.linear(x, w_q.T)
        k = torch.nn.functional.linear(x, w_k.mT)
        v = torch.nn.functional.linear(x, w_v.transpose(0, 1))
        return [q, k, v]
    """),
    Same(PROJECT, "one-product", instead="""
        both = torch.matmul(x, torch.cat([w_q, w_k, w_v], dim=1))
        return both.split([w_q.shape[1], w_k.shape[1], w_v.shape[1]], dim=-1)
    """),
    Same(PROJECT, "loops", instead="""
        b, t, e = x.shape
        rows = [[(x[n, i] @ w_q, x[n, i] @ w_k, x[n, i] @ w_v) for i in range(t)] for n in range(b)]
        q, k, v = (torch.stack([torch.stack([row[p] for row in sentence]) for sentence in rows]) for p in range(3))
        return q, k, v
    """),
    # ------------------------------------------------------------------------------------------ attention
    Mistake(ATTENTION, "over-queries", edit=("dim=-1", "dim=1"),
            title="softmax over the queries (t) instead of the keys (s)",
            says="In your weights each column adds up to 1: the queries share out each key among them. A query's own "
                 "weights have to add up to 1, so the softmax runs over s, the last axis of (b, t, s)."),
    # swapped roles whose weights are turned round until the shapes fit: each key's weights over the queries,
    # the same numbers
    Alias(ATTENTION, "swapped-and-turned", of="over-queries",
          edit=(("q @ k.transpose(1, 2)", "k @ q.transpose(1, 2)"), ("weights @ v ", "weights.transpose(1, 2) @ v "))),
    Mistake(ATTENTION, "swapped", edit=("q @ k.transpose(1, 2)", "k @ q.transpose(1, 2)"),
            title="queries and keys swapped: t and s confused",
            says="Your scores are k times q, (b, s, t): a row for every key. The rows belong to the queries, which are "
                 "t; with s = t nothing would have raised, and the result would have been wrong."),
    Mistake(ATTENTION, "batch", edit=("dim=-1", "dim=0"), title="softmax over the batch",
            says="The softmax runs over axis 0, so the sequences of the batch compete with each other. It has to run "
                 "over s, the last axis of (b, t, s)."),
    Mistake(ATTENTION, "no-softmax", edit=("torch.softmax(scores, dim=-1)", "scores"), title="no softmax",
            says="You average with the raw scores, which may be negative and do not add up to 1."),
    Mistake(ATTENTION, "scaled", edit=("q @ k.transpose(1, 2) ", "q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 "),
            title="divided by the root of the width",
            says="You divide the scores by √d. The next lesson is about that; here the scores are the plain products."),
    Mistake(ATTENTION, "values-from-keys", edit=("weights @ v ", "weights @ k "),
            title="the keys averaged, not the values",
            says="You average the keys: your result is d wide. Keys are compared with, values are handed over: the "
                 "result is as wide as v."),
    Mistake(ATTENTION, "not-transposed", edit=("q @ k.transpose(1, 2)", "q @ k"), title="the keys not transposed",
            says="(b, t, d) times (b, s, d) does not fit: the axis to sum over is d, so the keys have to stand as (b, "
                 "d, s)."),
    Mistake(ATTENTION, "all-axes-turned", edit=("k.transpose(1, 2)", "k.T"),
            title="all three axes of the keys turned round",
            says="`k.T` reverses all the axes, the batch too: (b, s, d) becomes (d, s, b). Exchange the last two "
                 "only."),
    Mistake(ATTENTION, "detached", edit=("weights @ v ", "weights.detach() @ v "),
            title="no gradient through the weights",
            says="Your numbers are right, but the graph is cut at the weights (detach, .data or no_grad): queries and "
                 "keys get no gradient and would never learn."),
    Mistake(ATTENTION, "weights-returned", edit=("return weights @ v", "return weights"),
            title="the weights returned, not the average",
            says="You return the weights, (b, t, s). One product is missing: the average of the values with these "
                 "weights."),
    Mistake(ATTENTION, "in-place", edit=("k.transpose(1, 2)", "k.transpose_(1, 2)"),
            title="the keys transposed in place",
            says="`transpose_`, with the line at its end, turns the caller's own keys round: your result is right, and "
                 "their tensor now has another shape. Use `transpose`."),
    Same(ATTENTION, "einsum", instead="""
        a = torch.einsum("nik,njk->nij", q, k).softmax(dim=2)
        return torch.einsum("nij,njw->niw", a, v)
    """),
    Same(ATTENTION, "bmm", instead="""
        a = torch.nn.functional.softmax(torch.bmm(q, k.permute(0, 2, 1)), -1)
        return torch.bmm(a, v)
    """),
    Same(ATTENTION, "by-hand", instead="""
        scores = torch.matmul(q, k.mT)
        powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        return torch.matmul(powers / powers.sum(-1, keepdim=True), v)
    """),
    Same(ATTENTION, "lookups", instead="""
        b, t, _ = q.shape
        y = torch.zeros(b, t, v.shape[-1], dtype=v.dtype, device=v.device)
        for n in range(b):
            for i in range(t):
                weights = torch.softmax(torch.stack([q[n, i] @ key for key in k[n]]), dim=0)
                for j, weight in enumerate(weights):
                    y[n, i] = y[n, i] + weight * v[n, j]
        return y
    """),
    Same(ATTENTION, "turned-round", instead="""
        scores = k @ q.transpose(1, 2)
        return (v.transpose(1, 2) @ torch.softmax(scores, dim=1)).transpose(1, 2)
    """),
    Shortcut(ATTENTION, "library",
             instead="return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0)"),
    Shortcut(ATTENTION, "finished", instead="return finished_attention(q, k, v)"),
    Shortcut(ATTENTION, "imported", instead="""
        from helpers.parts.attention import attention as answer
        return answer(q, k, v)
    """),
    # -------------------------------------------------------------------------------- SingleHeadAttention
    Mistake(HEAD, "bias",
            edit=(("self.to_queries = nn.Linear(e, d, bias=False)", "self.to_queries = nn.Linear(e, d)"),
                  ("self.to_keys = nn.Linear(e, d, bias=False)", "self.to_keys = nn.Linear(e, d)"),
                  ("self.to_values = nn.Linear(e, d, bias=False)", "self.to_values = nn.Linear(e, d)")),
            title="projections with a bias",
            says="Your projections add a bias, which nn.Linear does unless it is told not to. Here each is a matrix "
                 "and nothing more."),
    Mistake(HEAD, "swapped", edit=("finished_attention(q, k, v)", "finished_attention(k, q, v)"),
            title="queries and keys swapped",
            says="You hand the keys over as queries and the queries as keys. The rows of the scores have to belong to "
                 "x, the sequence that asks."),
    Mistake(HEAD, "values-from-keys", edit=("self.to_values(context)", "self.to_keys(context)"),
            title="values taken from the keys",
            says="You sum the keys: your values are made by to_keys, and to_values gets no gradient. Each role has its "
                 "own projection."),
    Mistake(HEAD, "shared", edit=("self.to_keys = nn.Linear(e, d, bias=False)", "self.to_keys = self.to_queries"),
            title="one shared projection for queries and keys",
            says="to_keys and to_queries are one and the same layer, so your scores are symmetric again. Make three "
                 "layers."),
    Mistake(HEAD, "queries-as-keys", edit=("self.to_keys(context)", "self.to_queries(context)"),
            title="the keys made by the projection of the queries",
            says="Your keys come from to_queries, and to_keys is never used. Scores are then symmetric again: each "
                 "role needs its own projection."),
    Mistake(HEAD, "context-ignored", edit=("context = x if context is None else context", "context = x"),
            title="the second sequence ignored",
            says="Your module attends to x even when a context is given. Keys and values come from the context then; "
                 "only the queries come from x."),
    Mistake(HEAD, "values-from-x", edit=("self.to_values(context)", "self.to_values(x)"),
            title="values from the sequence that asks",
            says="Your keys come from the context and your values from x. A key and its value belong to the same "
                 "position: both come from the context."),
    Mistake(HEAD, "sequences-swapped",
            edit=(("self.to_queries(x)", "self.to_queries(context)"),
                  ("self.to_keys(context)", "self.to_keys(x)"),
                  ("self.to_values(context)", "self.to_values(x)")), title="the two sequences swapped",
            says="Your queries come from the context, and your result has a row for each of its positions. x asks and "
                 "the context is asked: one output for each position of x."),
    Mistake(HEAD, "context-only", edit=("self.to_queries(x)", "self.to_queries(context)"),
            title="queries from the context too",
            says="Given a context, your module attends within it and forgets x. The queries always come from x; keys "
                 "and values come from the context."),
    Mistake(HEAD, "over-queries",
            edit=("return finished_attention(q, k, v)", "return torch.softmax(q @ k.transpose(1, 2), dim=1) @ v"),
            title="softmax over the queries (t) instead of the keys (s)",
            says="Your softmax runs over t. A query's own weights add up to 1: it runs over s, the last axis of (b, t, "
                 "s)."),
    Mistake(HEAD, "x-as-values", edit=("self.to_values(context)", "context"), title="values not projected",
            says="You sum the vectors as they came, e wide. The values are projected too: the result is d wide."),
    Mistake(HEAD, "sizes-swapped",
            edit=(("self.to_queries = nn.Linear(e, d,", "self.to_queries = nn.Linear(d, e,"),
                  ("self.to_keys = nn.Linear(e, d,", "self.to_keys = nn.Linear(d, e,"),
                  ("self.to_values = nn.Linear(e, d,", "self.to_values = nn.Linear(d, e,")),
            title="the sizes of the layers swapped",
            says="Your layers go from d to e. nn.Linear takes the incoming width first: here vectors of width e come "
                 "in, and d numbers go out."),
    Mistake(HEAD, "scaled", edit=("finished_attention(q, k, v)", "finished_attention(q / q.shape[-1] ** 0.5, k, v)"),
            title="divided by the root of the width",
            says="You divide by √d. The next lesson is about that; this head uses the plain products."),
    Same(HEAD, "written-out",
         edit=("return finished_attention(q, k, v)", "return torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v")),
    Same(HEAD, "library",
         edit=("return finished_attention(q, k, v)",
               "return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0)")),
    Same(HEAD, "another-order",
         edit=(("super().__init__()", "super(SingleHeadAttention, self).__init__()\n        self.width = d"),
               ("self.to_queries = nn.Linear(e, d, bias=False)", "self.to_values = torch.nn.Linear(e, d, False)"),
               ("self.to_values = nn.Linear(e, d, bias=False)",
                "self.add_module('to_queries', nn.Linear(in_features=e, out_features=d, bias=False))"),
               ("context = x if context is None else context", "if context is None:\n            context = x"),
               ("return finished_attention(q, k, v)",
                "a = torch.einsum('bik,bjk->bij', q, k).exp()\n        return torch.einsum('bij,bjk->bik', a / "
                "a.sum(2, keepdim=True), v)"))),
    Same(HEAD, "weights-by-hand", edit=("q = self.to_queries(x) ", "q = x @ self.to_queries.weight.T ")),
    Shortcut(HEAD, "imported",
             edit=("    def __init__(self, e, d):",
                   "    from helpers.parts.attention import attention\n\n    def __init__(self, e, d):")),
]
