"""What students get wrong in lesson 2, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

LOOKUP, SHARPEN, ATTENTION, HEAD, REWRITTEN = (
    "soft_lookup",
    "sharpen",
    "attention",
    "SingleHeadAttention",
    "rewritten_attention",
)

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
    Mistake(LOOKUP, "softmax-of-each-component", instead="""
        weights = torch.softmax(keys * query, dim=0).sum(dim=1)
        return weights @ values
    """, title="the softmax before the sum over d",
            says="Your softmax takes the products component by component, before they are added up over d. A match is "
                 "one number for each key: add up first, then make shares of the s matches."),
    Mistake(LOOKUP, "keys-normalised-by-softmax", edit=("torch.softmax(keys @ query, dim=0)",
            "torch.softmax(keys, dim=0) @ query"), title="the softmax of the keys, not of the matches",
            says="You apply the softmax to the keys, before the query has met them. The matches come first; the "
                 "softmax makes shares of them."),
    Mistake(LOOKUP, "softmax-twice",
            edit=("torch.softmax(keys @ query, dim=0)", "torch.softmax(torch.softmax(keys @ query, dim=0), dim=0)"),
            title="softmax applied twice",
            says="Your weights went through the softmax twice, which makes them nearly even. Once is enough."),
    Mistake(LOOKUP, "divided-by-s", edit=("return weights @ values", "return weights @ values / len(keys)"),
            title="divided by the number of entries",
            says="You divide the weighted sum by s. The weights add up to 1 already, so their sum is the average."),
    Mistake(LOOKUP, "logarithms", edit=("torch.softmax(", "torch.log_softmax("), title="logarithms of the weights",
            says="You sum with the logarithms of the weights, which are never positive. `log_softmax` is for losses; "
                 "an average takes the weights themselves."),
    Mistake(LOOKUP, "divided-by-d", edit=("keys @ query,", "keys @ query / len(query),"), title="divided by the width",
            says="You divide the products by d. Here they go into the softmax as they are."),
    Mistake(LOOKUP, "values-turned", edit=("weights @ values", "weights @ values.T"), title="the values transposed",
            says="`values.T` has a row for each component. The weights are one for each entry, and entries are the "
                 "rows of values as it stands; with as many entries as components nothing would have raised."),
    Mistake(LOOKUP, "not-normalised", edit=("torch.softmax(keys @ query, dim=0)", "torch.exp(keys @ query)"),
            title="exponentials without the division",
            says="Your weights are positive, but they do not add up to 1: divide them by their sum."),
    Mistake(LOOKUP, "sigmoid", edit=("torch.softmax(keys @ query, dim=0)", "torch.sigmoid(keys @ query)"),
            title="a sigmoid instead of a softmax",
            says="Your weights lie between 0 and 1, each by itself, and do not add up to 1. In a softmax the keys "
                 "share out one unit of weight."),
    Mistake(LOOKUP, "sign", edit=("keys @ query,", "-(keys @ query),"),
            title="the sign of the matches turned round",
            says="Your worst match gets the largest weight: somewhere the sign of the products is turned round."),
    Mistake(LOOKUP, "distances", edit=("keys @ query,", "-(keys - query).norm(dim=1),"),
            title="distances, not products",
            says="You compare by distance. The match of a key is its dot product with the query: a long key speaks "
                 "louder."),
    Mistake(LOOKUP, "squared-distances", edit=("keys @ query,", "-(keys - query).square().sum(dim=1),"),
            title="squared distances, not products",
            says="You compare by squared distance. The match of a key is its dot product with the query: a long key "
                 "speaks louder."),
    Mistake(LOOKUP, "each-weight-is-one",
            instead="return torch.softmax((keys @ query).unsqueeze(0), dim=0)[0] @ values",
            title="a softmax over an axis of size 1",
            says="Each of your weights is 1, so the values are simply added up: the softmax runs over an axis of size "
                 "1. It has to run over the s keys."),
    # a loop over plain numbers cuts the graph at the same place
    Mistake(LOOKUP, "weights-detached", edit=("return weights @ values", "return weights.detach() @ values"),
            title="no gradient through the weights",
            says="Your numbers are right, but the graph is cut at the weights (detach, .data, no_grad, item() or "
                 "tolist()): query and keys get no gradient and would never learn."),
    Mistake(LOOKUP, "detached", edit=("return weights @ values", "return (weights @ values).detach()"),
            title="the answer cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to query, keys and values (detach, "
                 ".data, no_grad, item() or NumPy). That gradients pass is what this dictionary is made for."),
    Accepted(LOOKUP, "einsum", instead="""
        shares = torch.nn.functional.softmax(torch.einsum("k,jk->j", query, keys), 0)
        return torch.einsum("j,jv->v", shares, values)
    """),
    Accepted(LOOKUP, "loop", instead="""
        total, answer = 0, 0
        for key, value in zip(keys, values):
            power = torch.exp((query * key).sum())
            total = total + power
            answer = answer + power * value
        return answer / total
    """),
    Accepted(LOOKUP, "rows", instead="return (torch.softmax(query[None] @ keys.T, dim=-1) @ values).squeeze(0)"),
    Accepted(LOOKUP, "library", instead="""
        q, k, v = query.unsqueeze(0), keys, values
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=1.0)[0, 0]
    """),
    EquivalentMutant(LOOKUP, "torch.softmax(keys @ query, dim=0)", "torch.softmax(keys @ query, dim=-1)",
          why="the matches have one axis, the first and the last"),
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
    Mistake(SHARPEN, "zero-taken-for-none",
            edit=("return torch.softmax(beta", "beta = beta or 1.0\n    return torch.softmax(beta"),
            title="a beta of 0 replaced by 1",
            says="At beta = 0 your weights are those of beta = 1. 0 is a beta like any other, and gives every key the "
                 "same weight. (Where code asks `if beta` or says `beta or ...`, Python counts 0 as False.)"),
    Mistake(SHARPEN, "one-winner", instead="""
        products = beta * (keys @ query)
        if beta > 100:
            return torch.nn.functional.one_hot(products.argmax(), len(keys)).to(keys.dtype)
        return torch.softmax(products, dim=0)
    """, title="one winner where there are two",
            says="For a large beta you give all weight to one key. If two keys match equally well, they share, however "
                 "large beta is. A softmax does so by itself, and needs no case of its own."),
    Mistake(SHARPEN, "normalised-matches", instead="""
        products = keys @ query
        return torch.softmax(beta * products / products.abs().max(), dim=0)
    """, title="the matches brought to size 1",
            says="You divide the matches by the largest of them, so how long query and keys are no longer counts. They "
                 "are multiplied by beta as they are."),
    Mistake(SHARPEN, "sign", edit=("beta * (keys", "-beta * (keys"), title="the sign of the matches turned round",
            says="Your worst match gets the largest weight: somewhere the sign of the products is turned round."),
    Mistake(SHARPEN, "smallest-off", instead="""
        products = beta * (keys @ query)
        powers = (products - products.min()).exp()
        return powers / powers.sum()
    """, title="the smallest product taken off, not the largest",
            says="You take the smallest product off, so all others stay positive, and for a large beta the exponential "
                 "is infinite. With the *largest* one off, every exponent is 0 or less."),
    Mistake(SHARPEN, "nan-overwritten", instead="""
        powers = torch.exp(beta * (keys @ query))
        return torch.nan_to_num(powers / powers.sum())
    """, title="NaN overwritten",
            says="Your exponential overflows for a large beta, and you replace the NaN that comes of it; what stands "
                 "there then are no weights. Keep it from arising: take the largest product off first, or use "
                 "`torch.softmax`."),
    Mistake(SHARPEN, "scaled", edit=("keys @ query", "keys @ query / len(query) ** 0.5"),
            title="divided by the root of the width",
            says="You divide the products by √d. Lesson 3 does that and says why; here they are multiplied by beta and "
                 "nothing else."),
    Mistake(SHARPEN, "cosine",
            edit=("keys @ query", "torch.nn.functional.cosine_similarity(keys, query.unsqueeze(0))"),
            title="cosines instead of dot products",
            says="You divide the products by the lengths of the vectors. The match is the plain dot product."),
    Mistake(SHARPEN, "added", edit=("beta * (keys @ query)", "beta + keys @ query"), title="beta added, not multiplied",
            says="You add beta to every match, and a softmax does not change when the same amount is added everywhere: "
                 "your weights are the same for every beta. Multiply."),
    Mistake(SHARPEN, "to-the-power", edit=("beta * (keys @ query)", "(keys @ query) ** beta"),
            title="the matches raised to the power beta",
            says="You raise the matches to the power beta. A negative number has no such power, and the matches are to "
                 "be multiplied by beta."),
    Mistake(SHARPEN, "clamped", edit=("beta * (keys @ query)", "(beta * (keys @ query)).clamp(-50, 50)"),
            title="the products cut off at a limit",
            says="You cut the products off at a limit, so for a large beta several keys come out equally good though "
                 "they are not. The softmax copes with products of any size."),
    Mistake(SHARPEN, "logarithms", edit=("torch.softmax(", "torch.log_softmax("), title="the logarithms of the weights",
            says="You return the logarithms of the weights. They are never positive; the weights themselves are asked "
                 "for."),
    Mistake(SHARPEN, "softmax-inside",
            edit=("beta * (keys @ query)", "beta * torch.softmax(keys @ query, dim=0)"), title="softmax applied twice",
            says="You multiply finished weights by beta and apply the softmax once more. beta belongs to the matches, "
                 "and there is one softmax."),
    Mistake(SHARPEN, "not-shares", edit=("torch.softmax(beta * (keys @ query), dim=0)", "beta * (keys @ query)"),
            title="no softmax",
            says="You return the matches times beta. Weights are positive and add up to 1: the softmax is missing."),
    Mistake(SHARPEN, "detached", edit=("return torch.softmax(beta * (keys @ query), dim=0)",
            "return torch.softmax(beta * (keys @ query), dim=0).detach()"), title="the weights cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to query and keys (detach, .data, "
                 "no_grad, item() or NumPy), so neither could learn."),
    Accepted(SHARPEN, "query-first", instead="return torch.nn.functional.softmax(keys @ (beta * query), dim=-1)"),
    Accepted(SHARPEN, "by-hand", instead="""
        products = torch.einsum("sd,d->s", keys, query) * beta
        powers = (products - products.max()).exp()
        return powers / powers.sum()
    """),
    Accepted(SHARPEN, "logsumexp", instead="""
        products = torch.stack([beta * torch.dot(key, query) for key in keys])
        return torch.exp(products - torch.logsumexp(products, 0))
    """),
    EquivalentMutant(SHARPEN, "torch.softmax(beta * (keys @ query), dim=0)",
        "torch.softmax(beta * (keys @ query), dim=-1)",
          why="the matches have one axis, the first and the last"),
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
    Mistake(ATTENTION, "reshaped", edit=("k.transpose(1, 2)", "k.reshape(k.shape[0], k.shape[2], k.shape[1])"),
            title="the axes exchanged by a reshape",
            says="`reshape` and `view` keep the numbers in their order and only cut them into rows of another length, "
                 "so components of different keys get mixed. Exchanging two axes is a transpose."),
    Mistake(ATTENTION, "softmax-twice",
            edit=("torch.softmax(scores, dim=-1) ", "torch.softmax(torch.softmax(scores, dim=-1), dim=-1) "),
            title="softmax applied twice",
            says="Your weights went through the softmax twice, which makes every row nearly even. Once is enough."),
    Mistake(ATTENTION, "summed-over-queries", edit=("weights @ v ",
            "(weights.sum(dim=1, keepdim=True) @ v).expand(-1, q.shape[1], -1) "),
            title="one output for all queries",
            says="You add up the weights over the queries, so every output of a sequence is the same. Each query "
                 "has an average of its own; only s is summed away."),
    Mistake(ATTENTION, "mean-over-queries", edit=("weights @ v ",
            "(weights.mean(dim=1, keepdim=True) @ v).expand(-1, q.shape[1], -1) "),
            title="the queries averaged",
            says="You average the weights over the queries, so every output of a sequence is the same. Each query has "
                 "an average of its own; only s is summed away."),
    Mistake(ATTENTION, "one-sequence-for-all", edit=("weights @ v ", "weights[:1] @ v "),
            title="one sequence's weights for all of them",
            says="You use the weights of the first sequence for the whole batch. Each has weights of its own."),
    Mistake(ATTENTION, "whole-matrix",
            edit=("torch.softmax(scores, dim=-1) ", "torch.softmax(scores.flatten(1), dim=-1).reshape(scores.shape) "),
            title="one softmax for the whole matrix",
            says="All weights of a sequence together add up to 1 in your code. Each query's have to: the softmax runs "
                 "over s alone."),
    Mistake(ATTENTION, "logarithms", edit=("torch.softmax(", "torch.log_softmax("), title="logarithms of the weights",
            says="You sum with the logarithms of the weights, which are never positive. `log_softmax` is for losses; "
                 "an average takes the weights themselves."),
    Mistake(ATTENTION, "cosines",
            edit=("scores = q @", "q, k = (z / z.norm(dim=-1, keepdim=True) for z in (q, k))\n    scores = q @"),
            title="cosines instead of dot products",
            says="You divide queries and keys by their lengths. The scores are the plain products: a long query asks "
                 "more sharply."),
    Mistake(ATTENTION, "divided-by-d", edit=("q @ k.transpose(1, 2) ", "q @ k.transpose(1, 2) / q.shape[-1] "),
            title="divided by the width",
            says="You divide the scores by d. Here they are the plain products."),
    Mistake(ATTENTION, "causal",
            edit=("torch.softmax(scores, dim=-1) ",
                  "torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -1e9), dim=-1) "),
            title="only earlier keys are looked at",
            says="Your queries see the keys up to their own place and none after it. A mask of that kind comes in "
                 "lesson 5; here every query sees every key."),
    Mistake(ATTENTION, "winner-takes-all",
            edit=("weights = torch.softmax(scores, dim=-1) ",
                  "weights = (scores == scores.amax(dim=-1, keepdim=True)).to(v.dtype) "), title="the best key alone",
            says="Each of your outputs is the value of the best key. Every key has its share in the answer."),
    Mistake(ATTENTION, "divided-by-s", edit=("weights @ v ", "weights @ v / k.shape[1] "),
            title="divided by the number of keys",
            says="You divide the weighted sum by s. The weights add up to 1 already, so their sum is the average."),
    Mistake(ATTENTION, "turned-round-and-returned", edit=("weights @ v ", "(weights @ v).transpose(1, 2) "),
            title="the result transposed",
            says="Your result is (b, v, t). It has a row for each query: (b, t, v)."),
    Mistake(ATTENTION, "both-returned", edit=("return weights @ v ", "return weights @ v, weights "),
            title="two results",
            says="You return the weights beside the outputs. Here the outputs alone are asked for."),
    Mistake(ATTENTION, "guessed-from-sizes",
            edit=("weights = torch.softmax(scores, dim=-1) ",
                  "weights = torch.softmax(scores, dim=-1 if q.shape[1] != k.shape[1] else 1) "),
            title="other numbers where there are as many keys as queries",
            says="Your result is right where t and s differ, and wrong where they are the same size. Nothing about "
                 "attention changes there: find the axis by its place, not by its size."),
    Mistake(ATTENTION, "not-normalised", edit=("torch.softmax(scores, dim=-1) ", "scores.exp() "),
            title="exponentials without the division",
            says="Your weights are positive, but those of a query do not add up to 1: divide each row by its sum."),
    Mistake(ATTENTION, "no-exp", edit=("torch.softmax(scores, dim=-1) ", "scores / scores.sum(dim=-1, keepdim=True) "),
            title="divided by the sum, without exp",
            says="Your rows add up to 1, but some weights are negative, and a sum near 0 makes them huge. The "
                 "exponential is missing: use softmax."),
    Mistake(ATTENTION, "sigmoid", edit=("torch.softmax(scores, dim=-1) ", "torch.sigmoid(scores) "),
            title="a sigmoid instead of a softmax",
            says="Your weights lie between 0 and 1, each by itself, and a query's do not add up to 1. In a softmax the "
                 "keys share out one unit of weight."),
    Mistake(ATTENTION, "sign", edit=("torch.softmax(scores,", "torch.softmax(-scores,"),
            title="the sign of the scores turned round",
            says="The key that matches worst gets the largest weight: somewhere the sign of the scores is turned "
                 "round."),
    Mistake(ATTENTION, "distances", edit=("q @ k.transpose(1, 2) ", "-torch.cdist(q, k) "),
            title="distances, not products",
            says="You compare by distance. Scores are the dot products of queries and keys."),
    Mistake(ATTENTION, "divided-by-root-s",
            edit=("q @ k.transpose(1, 2) ", "q @ k.transpose(1, 2) / k.shape[1] ** 0.5 "),
            title="divided by the root of the number of keys",
            says="You divide the scores by √s. Here they are the plain products."),
    Mistake(ATTENTION, "residual",
            edit=("return weights @ v ", "y = weights @ v\n    return y + q if y.shape == q.shape else y "),
            title="the queries added",
            says="Where the widths allow it you add q to the result. Lesson 7 adds the input, around the attention; "
                 "attention returns the average of the values and nothing else."),
    Mistake(ATTENTION, "batch-flattened", instead="""
        b, t, d = q.shape
        weights = torch.softmax(q.reshape(-1, d) @ k.reshape(-1, d).T, dim=-1)
        return (weights @ v.reshape(-1, v.shape[-1])).reshape(b, t, -1)
    """, title="queries look at other sequences",
            says="Batch and positions are one long axis in your code, so every query looks at the keys of all "
                 "sequences. Each sequence is by itself."),
    Mistake(ATTENTION, "last-sequence-for-all", edit=("weights @ v ", "weights[-1] @ v "),
            title="the last sequence's weights for all of them",
            says="You use the weights of the last sequence for the whole batch. Each has weights of its own."),
    Mistake(ATTENTION, "keys-ask-keys", edit=("scores = q @", "scores = k @"),
            title="the keys compared with themselves",
            says="Your scores compare the keys with the keys, (b, s, s), and q is never used. The queries ask: scores "
                 "are (b, t, s)."),
    Mistake(ATTENTION, "softmax-of-the-keys",
            edit=(("q @ k.transpose(1, 2) ", "q @ torch.softmax(k.transpose(1, 2), dim=-1) "),
                  ("torch.softmax(scores, dim=-1) ", "scores ")), title="the softmax of the keys, not of the scores",
            says="You apply the softmax to the keys, before the queries have met them. The scores come first; the "
                 "softmax makes shares of them."),
    Mistake(ATTENTION, "result-detached", edit=("return weights @ v ", "return (weights @ v).detach() "),
            title="the outputs cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to queries, keys and values (detach, "
                 ".data, no_grad, item() or NumPy), so nothing would ever learn."),
    Accepted(ATTENTION, "einsum", instead="""
        a = torch.einsum("nik,njk->nij", q, k).softmax(dim=2)
        return torch.einsum("nij,njw->niw", a, v)
    """),
    Accepted(ATTENTION, "bmm", instead="""
        a = torch.nn.functional.softmax(torch.bmm(q, k.permute(0, 2, 1)), -1)
        return torch.bmm(a, v)
    """),
    Accepted(ATTENTION, "by-hand", instead="""
        scores = torch.matmul(q, k.mT)
        powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        return torch.matmul(powers / powers.sum(-1, keepdim=True), v)
    """),
    Accepted(ATTENTION, "lookups", instead="""
        b, t, _ = q.shape
        y = torch.zeros(b, t, v.shape[-1], dtype=v.dtype, device=v.device)
        for n in range(b):
            for i in range(t):
                weights = torch.softmax(torch.stack([q[n, i] @ key for key in k[n]]), dim=0)
                for j, weight in enumerate(weights):
                    y[n, i] = y[n, i] + weight * v[n, j]
        return y
    """),
    Accepted(ATTENTION, "turned-round", instead="""
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
    Mistake(HEAD, "shared-values",
            edit=("self.to_values = nn.Linear(e, d, bias=False)", "self.to_values = self.to_keys"),
            title="one shared projection for keys and values",
            says="to_values and to_keys are one and the same layer, so what is found is what is handed over. Make "
                 "three layers."),
    Mistake(HEAD, "all-shared",
            edit=(("self.to_keys = nn.Linear(e, d, bias=False)", "self.to_keys = self.to_queries"),
                  ("self.to_values = nn.Linear(e, d, bias=False)", "self.to_values = self.to_queries")),
            title="one projection for all three roles",
            says="All three names stand for one and the same layer. Make three layers: each role has its own."),
    Mistake(HEAD, "values-from-queries", edit=("self.to_values(context)", "self.to_queries(context)"),
            title="the values made by the projection of the queries",
            says="Your values come from to_queries, and to_values is never used. Each role has its own projection."),
    Mistake(HEAD, "context-tested-as-truth",
            edit=("context = x if context is None else context", "context = context or x"),
            title="the context taken for true or false",
            says="`or` asks whether the context is true or false, and a tensor of many numbers is neither. Ask whether "
                 "it `is None`."),
    Mistake(HEAD, "context-remembered",
            edit=(("self.to_queries = nn.Linear", "self.context = None\n        self.to_queries = nn.Linear"),
                  ("context = x if context is None else context",
                   "self.context = context if context is not None else self.context\n        "
                   "context = x if self.context is None else self.context")),
            title="the last context is kept",
            says="Your module keeps a context and goes on using it in later calls that bring none. What a call "
                 "answers depends on its own arguments: without a context, x itself is asked."),
    Mistake(HEAD, "residual",
            edit=("return finished_attention(q, k, v)",
                  "y = finished_attention(q, k, v)\n        return x + y if x.shape == y.shape else y"),
            title="the input added",
            says="Where the widths allow it you add x to the result. Lesson 7 does so, around the attention; a head "
                 "returns the average of the values and nothing else."),
    Mistake(HEAD, "queries-not-projected", instead=("""
        super().__init__()
        self.to_queries = nn.Linear(e, d, bias=False)
        self.to_keys = nn.Linear(e, d, bias=False)
        self.to_values = nn.Linear(e, d, bias=False)
    """, """
        context = x if context is None else context
        return self.to_values(finished_attention(x, context, context))
    """), title="queries and keys not projected",
            says="You compare x with the context as they came, and to_queries and to_keys are never used. Queries and "
                 "keys are projected too, before they are compared."),
    Mistake(HEAD, "context-joined",
            edit=("context = x if context is None else context",
                  "context = x if context is None else torch.cat([x, context], dim=1)"),
            title="x asked along with the context",
            says="You join x and the context, so x is asked as well. Given a context, keys and values come from it "
                 "alone."),
    Mistake(HEAD, "sequences-joined",
            edit=("context = x if context is None else context",
                  "x = x if context is None else torch.cat([x, context], dim=1)\n        context = x"),
            title="both sequences joined",
            says="You join x and the context and let all of it ask all of it. x asks and the context is asked: one "
                 "output for each position of x."),
    Mistake(HEAD, "keys-from-x", edit=("self.to_keys(context)", "self.to_keys(x)"),
            title="keys from the sequence that asks",
            says="Your keys come from x and your values from the context. A key and its value belong to the same "
                 "position: both come from the context."),
    Mistake(HEAD, "guessed-from-sizes",
            edit=("x if context is None else", "x if context is None or context.shape == x.shape else"),
            title="a context as long as x is ignored",
            says="Where the context is as long as x, your module attends to x. Two sequences may well be of one "
                 "length: what matters is whether a context was given."),
    Mistake(HEAD, "context-needed", edit=("context = x if context is None else context", "context = context"),
            title="no context is no case of its own",
            says="Called without a context, your module hands None to a layer. Without a context x itself is asked."),
    Mistake(HEAD, "two-attentions",
            edit=("return finished_attention(q, k, v)",
                  "y = finished_attention(q, k, v)\n        return y if context is x else y + self.forward(x)"),
            title="self-attention added to cross-attention",
            says="Given a context, you add what x answers to itself to what the context answers. One of the two is "
                 "asked: the context if there is one, x if there is none."),
    Mistake(HEAD, "sign", edit=("finished_attention(q, k, v)", "finished_attention(-q, k, v)"),
            title="the sign of the scores turned round",
            says="The key that matches worst gets the largest weight: somewhere a sign is turned round."),
    Mistake(HEAD, "values-as-wide-as-e", edit=("self.to_values = nn.Linear(e, d,", "self.to_values = nn.Linear(e, e,"),
            title="values of another width",
            says="Your values are e wide. Each of the three layers leads from e to d, and the result is (b, t, d)."),
    Mistake(HEAD, "roles-rotated", edit=("finished_attention(q, k, v)", "finished_attention(q, v, k)"),
            title="keys and values swapped",
            says="You hand the values over as keys and the keys as values. The order of the arguments is q, k, v."),
    Mistake(HEAD, "no-grad",
            edit=("return finished_attention(q, k, v)", "return finished_attention(q, k, v).detach()"),
            title="the result cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to the inputs and to the three layers "
                 "(detach, .data or no_grad), so the module cannot be trained."),
    Mistake(HEAD, "weights-as-data",
            edit=(("q = self.to_queries(x) ", "q = x @ self.to_queries.weight.data.T "),
                  ("k = self.to_keys(context) ", "k = context @ self.to_keys.weight.data.T "),
                  ("v = self.to_values(context) ", "v = context @ self.to_values.weight.data.T ")),
            title="the layers get no gradient",
            says="Your numbers are right, and gradients reach the inputs, but not the weights of the three layers "
                 "(.data or detach): they would never learn."),
    Mistake(HEAD, "inputs-detached",
            edit=(("self.to_queries(x)", "self.to_queries(x.detach())"),
                  ("self.to_keys(context)", "self.to_keys(context.detach())"),
                  ("self.to_values(context)", "self.to_values(context.detach())")),
            title="no gradient for the inputs",
            says="Your numbers are right and the three layers learn, but no gradient goes on to x and the context "
                 "(.data or detach), so nothing in front of this module would."),
    Mistake(HEAD, "context-detached", edit=("context = x if context is None else context",
            "context = x if context is None else context.detach()"), title="no gradient for the context",
            says="Your numbers are right, but the context is cut off from the graph (.data, detach or no_grad): what "
                 "made it would never learn."),
    Mistake(HEAD, "softmax-twice",
            edit=("return finished_attention(q, k, v)",
                  "return torch.softmax(torch.softmax(q @ k.transpose(1, 2), dim=-1), dim=-1) @ v"),
            title="softmax applied twice",
            says="Your weights go through the softmax twice, which makes every row nearly even. Once is enough."),
    Mistake(HEAD, "one-linear",
            edit=(("        self.to_queries = nn.Linear(e, d, bias=False)\n",
                   "        self.to_all = nn.Linear(e, 3 * d, bias=False)\n"),
                  ("        self.to_keys = nn.Linear(e, d, bias=False)\n", ""),
                  ("        self.to_values = nn.Linear(e, d, bias=False)\n", ""),
                  ("self.to_queries(x) ", "self.to_all(x).chunk(3, -1)[0] "),
                  ("self.to_keys(context) ", "self.to_all(context).chunk(3, -1)[1] "),
                  ("self.to_values(context) ", "self.to_all(context).chunk(3, -1)[2] ")),
            title="one layer for three",
            says="You make queries, keys and values with one wide layer. That computes the same, but here three layers "
                 "of the names to_queries, to_keys and to_values are asked for: the rest of the course fills them by "
                 "name."),
    Accepted(HEAD, "written-out",
         edit=("return finished_attention(q, k, v)", "return torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v")),
    Accepted(HEAD, "library",
         edit=("return finished_attention(q, k, v)",
               "return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0)")),
    Accepted(HEAD, "another-order",
         edit=(("super().__init__()", "super(SingleHeadAttention, self).__init__()\n        self.width = d"),
               ("self.to_queries = nn.Linear(e, d, bias=False)", "self.to_values = torch.nn.Linear(e, d, False)"),
               ("self.to_values = nn.Linear(e, d, bias=False)",
                "self.add_module('to_queries', nn.Linear(in_features=e, out_features=d, bias=False))"),
               ("context = x if context is None else context", "if context is None:\n            context = x"),
               ("return finished_attention(q, k, v)",
                "a = torch.einsum('bik,bjk->bij', q, k).exp()\n        return torch.einsum('bij,bjk->bik', a / "
                "a.sum(2, keepdim=True), v)"))),
    Accepted(HEAD, "weights-by-hand", edit=("q = self.to_queries(x) ", "q = x @ self.to_queries.weight.T ")),
    Accepted(HEAD, "imported-part",
             edit=("    def __init__(self, e, d):",
                   "    from helpers.parts.attention import attention\n\n    def __init__(self, e, d):")),
    # ---------------------------------------------------------------------------------- rewritten_attention
    Mistake(REWRITTEN, "unchanged", instead="""
        scores = torch.einsum("bsd,btd->bst", k, q)
        weights = torch.softmax(scores, dim=-1)
        return torch.einsum("bst,bsv->btv", weights, v)
    """, title="softmax over the queries",
            says="Your softmax still runs over the queries: they share out each key among themselves, and the weights "
                 "of one output add up to anything. Each **query** shares out one unit of weight among the keys. Ask "
                 "of `scores` which of its axes has the length s."),
    Mistake(REWRITTEN, "outputs-divided", instead="""
        scores = torch.einsum("bsd,btd->bst", k, q)
        weights = torch.softmax(scores, dim=-1)
        return torch.einsum("bst,bsv->btv", weights, v) / weights.sum(dim=1).unsqueeze(-1)
    """, title="the outputs divided afterwards",
            says="You divide each output by the sum of its weights. Values that are all 1 then come out as 1, and the "
                 "numbers are wrong: the softmax has shared out each key among the queries before. The cause is its "
                 "axis."),
    # the weights divided by the same sums before the product: the same numbers
    Alias(REWRITTEN, "weights-divided", of="outputs-divided", instead="""
        weights = torch.softmax(torch.einsum("bsd,btd->bst", k, q), dim=-1)
        weights = weights / weights.sum(dim=1, keepdim=True)
        return torch.einsum("bst,bsv->btv", weights, v)
    """),
    Mistake(REWRITTEN, "softmax-again", edit=("torch.softmax(scores, dim=-1)",
            "torch.softmax(torch.softmax(scores, dim=1), dim=-1)"), title="a second softmax on top",
            says="You take a second softmax on top of the first. What goes into it lies between 0 and 1, so its rows "
                 "are nearly even. One softmax, along the axis of the keys, is enough."),
    Mistake(REWRITTEN, "batch", edit=("dim=-1", "dim=0"), title="softmax over the batch",
            says="The softmax runs over axis 0, the batch: sequences compete with each other. Each query of each "
                 "sequence has one unit of weight for its keys."),
    Mistake(REWRITTEN, "both-axes", edit=("torch.softmax(scores, dim=-1)",
            "torch.softmax(scores.flatten(1), dim=-1).view_as(scores)"), title="softmax over the whole matrix",
            says="Your softmax runs over a whole matrix, so that all weights of a sequence add up to 1. Those of each "
                 "query have to."),
    Mistake(REWRITTEN, "half-relabelled", edit=('"bts,bsv->btv"', '"bst,bsv->btv"'),
            title="one of two lines relabelled",
            says="You changed the order of the axes in one `einsum` and not in the other: what the first makes as "
                 "(b, t, s) the second reads as (b, s, t). With t ≠ s that raises an error; with t = s it mixes up "
                 "which weight belongs to which value."),
    Mistake(REWRITTEN, "values-are-keys", edit=("weights, v)", "weights, k)"), title="the keys summed, not the values",
            says="You add up the keys. They only decide the weights; what is added up are the values."),
    Mistake(REWRITTEN, "scaled", edit=("torch.softmax(scores, dim=-1)",
            "torch.softmax(scores / q.shape[-1] ** 0.5, dim=-1)"), title="divided by √d",
            says="You divide the scores by √d. That comes in lesson 3, and is not what is wrong here."),
    Mistake(REWRITTEN, "no-softmax", edit=("torch.softmax(scores, dim=-1)", "scores"), title="no softmax",
            says="The softmax is gone: the values are added up with the raw scores, which may be negative and do not "
                 "add up to 1."),
    Mistake(REWRITTEN, "detached", edit=("weights, v)", "weights, v).detach()"), title="cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to the inputs (detach, .data, no_grad, "
                 "item() or NumPy)."),
    Mistake(REWRITTEN, "weights-detached", edit=("weights, v)", "weights.detach(), v)"),
            title="the weights cut off from the graph",
            says="Your numbers are right, and no gradient flows through the weights back to queries and keys (detach, "
                 ".data, no_grad, item() or NumPy)."),
    Alias(REWRITTEN, "axis-of-the-queries", of="unchanged", edit=("dim=-1", "dim=1")),
    Shortcut(REWRITTEN, "finished", instead="return finished_attention(q, k, v)"),
    Shortcut(REWRITTEN, "ready-made",
             instead="return nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0)"),
    Accepted(REWRITTEN, "axis-one", instead="""
        scores = torch.einsum("bsd,btd->bst", k, q)
        weights = torch.softmax(scores, dim=1)
        return torch.einsum("bst,bsv->btv", weights, v)
    """),
    Accepted(REWRITTEN, "products", instead="return torch.softmax(q @ k.mT, dim=-1) @ v"),
    Accepted(REWRITTEN, "turned-after", instead="""
        scores = torch.einsum("bsd,btd->bst", k, q)
        return torch.softmax(scores.transpose(1, 2), dim=2) @ v
    """),
]
