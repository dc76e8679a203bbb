"""What students get wrong in lesson 3, and what to tell them."""

from helpers.authoring import Alias, Equal, Mistake, Same

VARIANCE, SCORES, EARLY, JACOBIAN, ENTROPY, LARGEST = (
    "score_variance",
    "scaled_scores",
    "scaled_scores_early",
    "softmax_jacobian",
    "attention_entropy",
    "largest_gradient",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ------------------------------------------------------------------------------------- score_variance
    Mistake(VARIANCE, "formula", instead="return torch.tensor(float(d))", title="the formula, not a measurement",
            says="You return what the derivation predicts. The point of measuring is that it could come out otherwise: "
                 "draw queries and keys, compute their scores, and take the variance of those."),
    Mistake(VARIANCE, "deviation", edit=(".var()", ".std()"), title="the standard deviation, not the variance",
            says="Your numbers are about √d: that is the standard deviation of the scores, or their variance divided "
                 "by √d. The variance itself is asked for."),
    Alias(VARIANCE, "root-taken-off", of="deviation", edit=("return scores.var()", "return scores.var() / d**0.5")),
    Mistake(VARIANCE, "not-summed", edit=(".sum(dim=-1)", ""), title="the variance of single products",
            says="Your numbers are about 1 at every width. That is the variance of one product of two components, "
                 "of scores that were divided by √d, or of scores and then divided by d. A score is the plain sum of "
                 "the d products of a pair, and the variance of these is asked for."),
    # the variance of a score divided by √d is that of a single product: 1 either way, up to chance
    Alias(VARIANCE, "already-scaled", of="not-summed", edit=(".sum(dim=-1)", ".sum(dim=-1) / d ** 0.5")),
    Alias(VARIANCE, "per-component", of="not-summed", edit=("return scores.var()", "return scores.var() / d")),
    Mistake(VARIANCE, "mean", edit=(".var()", ".mean()"), title="the mean, not the variance",
            says="Your numbers are 0 up to chance, as the mean of the scores is. Their variance says how far they "
                 "spread around it."),
    Mistake(VARIANCE, "with-itself", edit=("k = torch.randn(samples, d, generator=generator)", "k = q"),
            title="vectors multiplied with themselves",
            says="Your numbers are about 2d, twice the right ones: q and k are the same vector, so the scores are "
                 "squared lengths. The derivation needs two vectors that are independent of each other."),
    Mistake(VARIANCE, "uniform",
            edit=(("q = torch.randn(", "q = torch.rand("), ("k = torch.randn(", "k = torch.rand(")),
            title="uniform numbers instead of normal ones",
            says="`torch.rand` draws between 0 and 1: mean ½ and variance 1/12. The exercise asks for normal "
                 "components, with mean 0 and variance 1."),
    Mistake(VARIANCE, "wrong-axis", edit=("sum(dim=-1)", "sum(dim=0)"),
            title="a number that grows with the number of pairs",
            says="Your number grows with `samples` instead of d: somewhere you add up over the pairs. A score is the "
                 "sum over the components of *one* pair, the axis that has d entries, and a variance divides by how "
                 "many scores there are."),
    Alias(VARIANCE, "sizes-exchanged", of="wrong-axis",
          edit=(("q = torch.randn(samples, d,", "q = torch.randn(d, samples,"),
                ("k = torch.randn(samples, d,", "k = torch.randn(d, samples,"))),
    Alias(VARIANCE, "sum-of-squares", of="wrong-axis", edit=("scores.var()", "scores.square().sum()")),
    Mistake(VARIANCE, "both-scaled", edit=("(q * k)", "(q * k) / d"), title="the scores divided by d",
            says="You divide the scores by d (or both vectors by √d), so their variance shrinks as d grows. Nothing is "
                 "scaled yet: the variance of the plain products is asked for, and comes out near d."),
    Mistake(VARIANCE, "samples-ignored",
            edit=(("q = torch.randn(samples,", "q = torch.randn(500,"),
                  ("k = torch.randn(samples,", "k = torch.randn(500,")), title="`samples` is not used",
            says="Your number does not depend on `samples`: you draw some other number of pairs. How exact a "
                 "measurement is has to be the caller's choice."),
    Mistake(VARIANCE, "no-generator",
            edit=(("q = torch.randn(samples, d, generator=generator)", "q = torch.randn(samples, d)"),
                  ("k = torch.randn(samples, d, generator=generator)", "k = torch.randn(samples, d)")),
            title="numbers from somewhere else than the generator",
            says="The same seed does not repeat your measurement, because some of your numbers come from torch's "
                 "global generator. Hand the generator to every call that draws."),
    # one of the two tensors drawn elsewhere shows in the same way
    Alias(VARIANCE, "half-without-generator", of="no-generator",
          edit=("k = torch.randn(samples, d, generator=generator)", "k = torch.randn(samples, d)")),
    Mistake(VARIANCE, "own-seed", edit=("q = torch", "generator = torch.Generator().manual_seed(0)\n    q = torch"),
            title="a generator of its own",
            says="Whatever generator is passed in, your number is the same: you make one of your own, or seed it anew. "
                 "The caller decides the seed; draw from the generator as it comes."),
    Mistake(VARIANCE, "seed-taken",
            edit=(("q = torch", "torch.manual_seed(generator.initial_seed())\n    q = torch"),
                  ("randn(samples, d, generator=generator)\n    k = ", "randn(samples, d)\n    k = "),
                  ("k = torch.randn(samples, d, generator=generator)", "k = torch.randn(samples, d)")),
            title="the generator's seed, not its numbers",
            says="You read the seed of the generator and sow torch's global one with it. Then two measurements in a "
                 "row are the same, and everybody else's random numbers are reset as well. Draw from the generator "
                 "itself."),
    Mistake(VARIANCE, "one-query", instead="""
        query = torch.randn(d, generator=generator)
        keys = torch.randn(samples, d, generator=generator)
        return (keys @ query).var()
    """, title="one vector for all the pairs",
            says="One of your vectors is drawn once and belongs to all pairs, so you measure how long that one is: its "
                 "squared length, another number with every seed. Each pair has a query and a key of its own."),
    Alias(VARIANCE, "one-key", of="one-query", instead="""
        queries = torch.randn(samples, d, generator=generator)
        key = torch.randn(1, d, generator=generator)
        return (queries * key).sum(-1).var()
    """),
    Mistake(VARIANCE, "queries-alone", edit=("(q * k)", "q"), title="sums without products",
            says="Your scores are sums of the components of one vector. Their variance happens to be d as well; a "
                 "score is the sum of the *products* of a query's components with a key's."),
    Alias(VARIANCE, "sum-of-two", of="queries-alone", edit=("(q * k)", "((q + k) / 2**0.5)")),
    Mistake(VARIANCE, "from-the-components",
            instead="""
        q = torch.randn(samples, d, generator=generator)
        k = torch.randn(samples, d, generator=generator)
        return d * q.var() * k.var()
    """, title="worked out from the components",
            says="You measure how far the components spread and work out from the formula what the scores should do. "
                 "The formula is what is to be tested: compute the score of each pair, and take their variance."),
    Mistake(VARIANCE, "numbers-for-scores", instead="""
        return (torch.randn(samples, generator=generator) * d**0.5).var()
    """, title="no vectors at all",
            says="You draw one number for each score, with the variance that a score should have, and measure that. "
                 "The question is whether scores have it: draw vectors, and compute the scores."),
    Mistake(VARIANCE, "largest", edit=("scores.var()", "scores.max()"), title="the largest score, not the variance",
            says="You return the largest of the scores. Their variance says how far they spread around their mean."),
    Mistake(VARIANCE, "mean-of-sizes", edit=("scores.var()", "scores.abs().mean()"),
            title="the mean size of the scores",
            says="You average the sizes of the scores. The variance is the mean of their *squares* (around their "
                 "mean)."),
    Same(VARIANCE, "all-at-once", instead="""
        q, k = torch.randn(2, samples, d, generator=generator)
        return torch.einsum("nd,nd->n", k, q).var(unbiased=False)
    """),
    Same(VARIANCE, "pair-by-pair", instead="""
        scores = []
        for _ in range(samples):
            query, key = torch.randn(d, generator=generator), torch.randn(d, generator=generator)
            scores.append(query @ key)
        return torch.stack(scores).var().item()
    """),
    Same(VARIANCE, "mean-square", instead="""
        k = torch.normal(0.0, 1.0, (samples, d, 1), generator=generator, device=generator.device)
        q = torch.normal(0.0, 1.0, (samples, 1, d), generator=generator, device=generator.device)
        return torch.mean(torch.bmm(q, k) ** 2)
    """),
    Same(VARIANCE, "empty-normal", instead="""
        q = torch.empty(samples, d, dtype=torch.float64).normal_(generator=generator)
        k = torch.empty(samples, d, dtype=torch.float64).normal_(generator=generator)
        s = torch.sum(q * k, 1)
        return ((s - s.mean()) ** 2).sum() / (samples - 1)
    """),
    Same(VARIANCE, "component-by-component", instead="""
        scores = torch.zeros(samples)
        for _ in range(d):
            first = torch.empty(samples).normal_(generator=generator)
            scores += first * torch.empty(samples).normal_(generator=generator)
        return float(scores.var())
    """),
    Same(VARIANCE, "distribution-by-hand", instead="""
        u = torch.rand(2, samples, d, 2, generator=generator, dtype=torch.float64).clamp(min=1e-12)
        q, k = (-2 * u[..., 0].log()).sqrt() * (2 * math.pi * u[..., 1]).cos()
        return (q * k).sum(-1).var()
    """),
    Equal(VARIANCE, "return scores.var()", "return scores.var().mT", why="a single number has no axes to exchange"),
    Equal(VARIANCE, "return scores.var()", "return scores.var().squeeze()", why="a single number has no axis to lose"),
    Equal(VARIANCE, "return scores.var()", "return scores.var().detach()",
          why="a measurement of drawn numbers, of which nothing learns; a plain Python number is right too"),
    Equal(VARIANCE, "(q * k).sum(dim=-1)", "(q * k).sum(dim=1)", why="of two axes the last is axis 1"),
    # -------------------------------------------------------------------------------------- scaled_scores
    Mistake(SCORES, "not-scaled", edit=(" / math.sqrt(d)", ""), title="not divided",
            says="These are the plain dot products. Divide them by √d."),
    Mistake(SCORES, "divided-by-d", edit=("math.sqrt(d)", "d"), title="divided by d instead of its root",
            says="Your scores are divided by d in all. The variance of a score is d, so what its size has to be "
                 "divided by is the standard deviation, √d, and once."),
    Alias(SCORES, "both-sides", of="divided-by-d",
          edit=("q @ k.transpose(-2, -1) / math.sqrt(d)",
                "(q / math.sqrt(d)) @ (k / math.sqrt(d)).transpose(-2, -1)")),
    Mistake(SCORES, "multiplied", edit=("/ math.sqrt(d)", "* math.sqrt(d)"), title="multiplied by √d",
            says="You multiply by √d, so the scores grow by what they should shrink by: their variance becomes d²."),
    Mistake(SCORES, "root-of-the-model",
            edit=("d = q.shape[-1]", "d = q.shape[-1] * (q.shape[1] if q.dim() == 4 else 1)"),
            title="the root of the whole model's width",
            says="With several heads your scores are too small: you divide by √e, the root of the width of all heads "
                 "together. A dot product sums over the d components of one head, so √d it is."),
    Mistake(SCORES, "root-of-t", edit=("q.shape[-1]", "q.shape[-2]"), title="the root of the number of queries",
            says="You divide by √t, the root of how many queries there are. A score is a sum over the width; what "
                 "matters is the size of the last axis of q."),
    Mistake(SCORES, "root-of-s", edit=("q.shape[-1]", "k.shape[-2]"), title="the root of the number of keys",
            says="You divide by √s, the root of how many keys there are. A score is a sum over the width; what matters "
                 "is the size of the last axis."),
    # (b, t, d) unpacked by place: axis 1 is t in a batch, and h when there are heads
    Mistake(SCORES, "root-of-axis-1", edit=("q.shape[-1]", "q.shape[1]"), title="the root of axis 1",
            says="The number under your root is the size of axis 1: how many queries there are, or how many heads. It "
                 "has to be the size of the last axis, the width that the dot product sums over."),
    Mistake(SCORES, "softmaxed",
            edit=("return q @ k.transpose(-2, -1) / math.sqrt(d)",
                  "return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(d), dim=-1)"),
            title="softmax already applied",
            says="Your rows add up to 1: these are the finished weights. The scores are what goes into the softmax."),
    Mistake(SCORES, "after-softmax",
            edit=("return q @ k.transpose(-2, -1) / math.sqrt(d)",
                  "return torch.softmax(q @ k.transpose(-2, -1), dim=-1) / math.sqrt(d)"),
            title="scaled after the softmax",
            says="You apply the softmax and divide its weights. By then the damage is done: the weights are saturated, "
                 "and now they do not add up to 1 either. Divide the scores; no softmax is asked for here."),
    Mistake(SCORES, "keys-ask", edit=("q @ k.transpose(-2, -1)", "k @ q.transpose(-2, -1)"),
            title="queries and keys exchanged",
            says="Your result has the keys as its rows, (s, t). Row i has to belong to query i: the queries stand on "
                 "the left of the product."),
    Mistake(SCORES, "in-place",
            edit=("return q @ k.transpose(-2, -1) / math.sqrt(d)",
                  "q /= math.sqrt(d)\n    return q @ k.transpose(-2, -1)"), title="the queries changed in place",
            says="Your scores are right, but `/=` writes into the caller's own queries: a second call would get "
                 "smaller ones. Make a new tensor."),
    Mistake(SCORES, "axes-from-the-front", edit=("k.transpose(-2, -1)", "k.transpose(1, 2)"),
            title="axes counted from the front",
            says="Axes 1 and 2 are the last two only in a batch, (b, t, d). With an axis for heads, (b, h, t, d), they "
                 "are heads and positions. Counted from the end, the axes you mean are the last two in both."),
    Mistake(SCORES, "three-axes", edit=("d = q.shape[-1]", "b, t, d = q.shape"), title="three axes and no more",
            says="You unpack three sizes from q. With an axis for heads there are four, (b, h, t, d): `q.shape[-1]` is "
                 "the last one however many there are."),
    Mistake(SCORES, "bmm", edit=("q @ k.transpose(-2, -1)", "torch.bmm(q, k.transpose(-2, -1))"),
            title="a product for three axes only",
            says="`torch.bmm` takes exactly one batch axis; with heads, (b, h, t, d), there are two in front. `@` and "
                 "`torch.matmul` carry any number along."),
    Mistake(SCORES, "einsum-of-three", edit=("q @ k.transpose(-2, -1)", 'torch.einsum("btd,bsd->bts", q, k)'),
            title="an einsum for three axes only",
            says="Your letters name exactly three axes; with heads, (b, h, t, d), there are four. In einsum, `...` "
                 "stands for any number of axes in front."),
    Mistake(SCORES, "all-axes-turned", edit=("k.transpose(-2, -1)", "k.T"), title="all axes turned",
            says="`.T` turns round all axes of k, the batch too. Only the last two have to change places: "
                 "`.transpose(-2, -1)` or `.mT`."),
    Mistake(SCORES, "eight", edit=("math.sqrt(d)", "8"), title="divided by 8, whatever the width",
            says="You divide by 8, the root of 64. That was the example's d; the function has to look at how wide its "
                 "own q is."),
    Mistake(SCORES, "cosine",
            edit=("return q @ k.transpose(-2, -1) / math.sqrt(d)",
                  "q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)\n    return q @ "
                  "k.transpose(-2, -1)"), title="cosines",
            says="You divide each vector by its own length, which gives cosines, between −1 and 1. The division by √d "
                 "is one number for all, and the lengths of the vectors go on counting."),
    Mistake(SCORES, "root-on-the-cpu", edit=("math.sqrt(d)", "torch.full((1,), d).sqrt()"),
            title="the root is made on the CPU",
            says="You make a tensor for √d and do not say on which device, so it lands on the CPU and does not meet "
                 "scores that are on a GPU. A plain number goes everywhere: `math.sqrt`, or `d ** 0.5`."),
    Mistake(SCORES, "precedence", edit=("/ math.sqrt(d)", "/ d ** 1 / 2"),
            title="a power that Python reads in another order",
            says="Your scores are divided by 2d: in `/ d ** 1 / 2` powers come first, then the divisions from left to "
                 "right. Write `d ** 0.5`, or `math.sqrt(d)`."),
    Mistake(SCORES, "half-of-d", edit=("/ math.sqrt(d)", "/ (d ** 1 / 2)"),
            title="half of d instead of its root",
            says="You divide by d/2: `d ** 1 / 2` is (d ** 1) / 2, because a power binds tighter than a division. "
                 "Write `d ** 0.5`, or `math.sqrt(d)`."),
    Mistake(SCORES, "whole-root", edit=("math.sqrt(d)", "int(math.sqrt(d))"), title="the root cut to a whole number",
            says="You divide by a whole number: `int(...)` and `//` cut the root's fraction off. √d is seldom whole, "
                 "and may stay as it is."),
    Mistake(SCORES, "fourth-root", edit=("math.sqrt(d)", "d ** 0.25"), title="the fourth root of d",
            says="You divide by the fourth root of d. The root of the width is needed, once."),
    Mistake(SCORES, "reshaped", edit=("k.transpose(-2, -1)", "k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])"),
            title="the axes exchanged by a reshape",
            says="`reshape` and `view` keep the numbers in their order and only cut them into rows of another length, "
                 "so components of different keys get mixed. Exchanging two axes is a transpose."),
    Mistake(SCORES, "permuted", edit=("k.transpose(-2, -1)", "k.permute(0, 2, 1)"), title="three axes and no more",
            says="`permute(0, 2, 1)` names exactly three axes. With an axis for heads there are four, (b, h, t, d): "
                 "exchange the last two, counted from the end."),
    Mistake(SCORES, "causal", edit=("return q @ k.transpose(-2, -1) / math.sqrt(d)",
            "return (q @ k.transpose(-2, -1) / math.sqrt(d)).tril()"), title="only one triangle of the scores",
            says="Beyond the diagonal your scores are 0. Every query is compared with every key."),
    Mistake(SCORES, "scaled-by-the-lengths", edit=("/ math.sqrt(d)", "/ q.norm(dim=-1, keepdim=True)"),
            title="divided by the lengths of the queries",
            says="You divide each row by the length of its query. √d is the same number for all: the root of how many "
                 "components a vector has, not of how large they are."),
    Mistake(SCORES, "detached", edit=("return q @ k.transpose(-2, -1) / math.sqrt(d)",
            "return (q @ k.transpose(-2, -1) / math.sqrt(d)).detach()"), title="the scores cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to queries and keys (detach, .data, "
                 "no_grad, item() or NumPy), so neither could learn."),
    Mistake(SCORES, "numpy", instead="""
        scores = q.numpy() @ k.transpose(-2, -1).numpy()
        return torch.from_numpy(scores) / math.sqrt(q.shape[-1])
    """, title="a trip through NumPy",
            says="Your numbers are right, and they come from NumPy, which knows no gradients and no GPU: a tensor that "
                 "learns cannot go there. Everything you need exists in torch."),
    Same(SCORES, "einsum", instead='return torch.einsum("...id,...jd->...ij", q, k) / q.size(-1) ** 0.5'),
    Same(SCORES, "matmul", instead="return torch.matmul(q * k.shape[-1] ** -0.5, k.mT)"),
    Same(SCORES, "bmm-folded", instead="""
        *front, t, d = q.shape
        s = k.shape[-2]
        scores = torch.bmm(q.reshape(-1, t, d), k.reshape(-1, s, d).transpose(1, 2))
        return (scores / torch.sqrt(torch.tensor(d))).reshape(*front, t, s)
    """),
    Same(SCORES, "broadcast", instead="""
        products = q.unsqueeze(-2) * k.unsqueeze(-3)
        return products.sum(-1).div(math.sqrt(q.shape[-1]))
    """),
    Same(SCORES, "loops", instead="""
        rows = []
        for i in range(q.shape[-2]):
            rows.append(torch.stack([(q[..., i, :] * k[..., j, :]).sum(-1) for j in range(k.shape[-2])], dim=-1))
        return torch.stack(rows, dim=-2) / math.sqrt(q.shape[-1])
    """),
    Same(SCORES, "shrunk-queries", instead="return q.mul(k.size(-1) ** -0.5).matmul(k.swapaxes(-1, -2))"),
    Equal(SCORES, "q", "k", why="queries and keys are equally wide"),
    # -------------------------------------------------------------------------------- scaled_scores_early
    Mistake(EARLY, "late", edit=("(q / root) @ (k / root).transpose(-2, -1)", "q @ k.transpose(-2, -1) / root**2"),
            title="divided after the product",
            says="Right in 32 bits, and infinite in half precision: the plain product is beyond 65,504 before it is "
                 "divided. Divide what goes into the product."),
    Mistake(EARLY, "one-side", edit=("(k / root)", "k"),
            title="divided by d^(1/4) in all, as if one side only had its share",
            says="Your scores are d^(1/4) times too large: taken together, your divisions make the fourth root of d, "
                 "and √d is needed. Each side gets d^(1/4), queries and keys."),
    # dividing the keys alone gives the same numbers as dividing the queries alone
    Alias(EARLY, "other-side", of="one-side", edit=("(q / root)", "q")),
    # the eighth root on both sides multiplies to the fourth root: the same numbers again
    Alias(EARLY, "eighth-root", of="one-side", edit=("** 0.25", "** 0.125")),
    Mistake(EARLY, "root-on-each-side", edit=("** 0.25", "** 0.5"), title="√d on each side",
            says="You divide both sides by √d, which makes d in the product. Each side gets the root of the root."),
    # a fourth root on each side and √d once more is √d · √d = d as well
    Alias(EARLY, "twice", of="root-on-each-side", edit=(".transpose(-2, -1)", ".transpose(-2, -1) / root**2")),
    Mistake(EARLY, "precedence", edit=("q.shape[-1] ** 0.25", "q.shape[-1] ** 1 / 4"),
            title="a power that Python reads in another order",
            says="You divide both sides by d/4: `d ** 1 / 4` is (d ** 1) / 4, because a power binds tighter than a "
                 "division. Write `d ** (1 / 4)` or `d ** 0.25`."),
    Mistake(EARLY, "precedence-inline",
            edit=(("q.shape[-1] ** 0.25", "q.shape[-1]"),
                  ("(q / root)", "(q / root**1 / 4)"),
                  ("(k / root)", "(k / root**1 / 4)")), title="a power that Python reads in another order",
            says="`q / d ** 1 / 4` is (q / d) / 4: powers bind tighter than divisions, and divisions go from left to "
                 "right. Write `d ** (1 / 4)` or `d ** 0.25`."),
    Mistake(EARLY, "cosine",
            edit=("(q / root) @ (k / root)", "(q / q.norm(dim=-1, keepdim=True)) @ (k / k.norm(dim=-1, keepdim=True))"),
            title="cosines",
            says="You divide each vector by its own length, which gives cosines, between −1 and 1. The division by "
                 "d^(1/4) is one number for all, and the lengths of the vectors go on counting."),
    Mistake(EARLY, "not-scaled", edit=("(q / root) @ (k / root)", "q @ k"), title="not divided",
            says="These are the plain dot products. Divide both sides by d^(1/4) first."),
    Mistake(EARLY, "multiplied", edit=("(q / root) @ (k / root)", "(q * root) @ (k * root)"),
            title="multiplied instead of divided",
            says="You multiply both sides by d^(1/4), so the product grows by √d instead of shrinking by it."),
    Mistake(EARLY, "in-place",
            edit=("return (q / root) @ (k / root).transpose(-2, -1)",
                  "q /= root\n    k /= root\n    return q @ k.transpose(-2, -1)"),
            title="queries and keys changed in place",
            says="Your scores are right, but `/=` writes into the caller's own tensors. Make new ones."),
    Mistake(EARLY, "single-precision", edit=("return (q / root)", "q, k = q.float(), k.float()\n    return (q / root)"),
            title="the result is no longer in half precision",
            says="Your scores are right, in 32 bits. The result has to be of the type that came in; twice the memory "
                 "is what half precision is there to avoid."),
    # 32 bits after the product are too late: infinity stays infinity
    Alias(EARLY, "late-in-single", of="late",
          edit=("(q / root) @ (k / root).transpose(-2, -1)",
                "(q @ k.transpose(-2, -1)).float().div(root**2).to(q.dtype)")),
    Mistake(EARLY, "clamped",
            edit=("(q / root) @ (k / root).transpose(-2, -1)",
                  "(q @ k.transpose(-2, -1)).clamp(-65504, 65504) / root**2"), title="cut off at 65,504",
            says="Clamping takes the infinity away and the answer with it: every score that overflowed becomes the "
                 "same number. Divide before the product, then nothing overflows."),
    Mistake(EARLY, "axes-from-the-front", edit=(".transpose(-2, -1)", ".transpose(1, 2)"),
            title="axes counted from the front",
            says="Axes 1 and 2 are the last two only in a batch, (b, t, d). With an axis for heads they are heads and "
                 "positions. Counted from the end, the axes you mean are the last two in both."),
    Mistake(EARLY, "three-axes", edit=("root = q.shape[-1] ** 0.25", "b, t, d = q.shape\n    root = d ** 0.25"),
            title="three axes and no more",
            says="You unpack three sizes from q. With an axis for heads there are four, (b, h, t, d): `q.shape[-1]` is "
                 "the last one however many there are."),
    Mistake(EARLY, "bmm",
            edit=("(q / root) @ (k / root).transpose(-2, -1)", "torch.bmm(q / root, (k / root).transpose(-2, -1))"),
            title="a product for three axes only",
            says="`torch.bmm` takes exactly one batch axis; with heads, (b, h, t, d), there are two in front. `@` and "
                 "`torch.matmul` carry any number along."),
    Mistake(EARLY, "einsum-of-three",
            edit=("(q / root) @ (k / root).transpose(-2, -1)", 'torch.einsum("btd,bsd->bts", q / root, k / root)'),
            title="an einsum for three axes only",
            says="Your letters name exactly three axes; with heads, (b, h, t, d), there are four. In einsum, `...` "
                 "stands for any number of axes in front."),
    Mistake(EARLY, "root-on-the-cpu",
            edit=("q.shape[-1] ** 0.25", "torch.full((1,), q.shape[-1], dtype=q.dtype) ** 0.25"),
            title="the root is made on the CPU",
            says="You make a tensor for d^(1/4) and do not say on which device, so it lands on the CPU and does not "
                 "meet queries that are on a GPU. A plain number goes everywhere: `d ** 0.25`."),
    Mistake(EARLY, "cosine-times-root",
            edit=("(q / root) @ (k / root).transpose(-2, -1)",
                  "(q / q.norm(dim=-1, keepdim=True)) @ (k / k.norm(dim=-1, keepdim=True)).transpose(-2, -1) "
                  "* root**2"),
            title="cosines, times √d",
            says="You divide each vector by its own length. The division by d^(1/4) is one number for all, and the "
                 "lengths of the vectors go on counting."),
    Mistake(EARLY, "softmaxed", edit=("return (q / root) @ (k / root).transpose(-2, -1)",
            "return torch.softmax((q / root) @ (k / root).transpose(-2, -1), dim=-1)"), title="softmax already applied",
            says="Your rows add up to 1: these are the finished weights. The scores are what goes into the softmax."),
    Mistake(EARLY, "root-of-t", edit=("q.shape[-1] ** 0.25", "q.shape[-2] ** 0.25"),
            title="the root of the number of queries",
            says="Your root is that of how many queries there are. A score is a sum over the width; what matters is "
                 "the size of the last axis."),
    Mistake(EARLY, "root-of-axis-1", edit=("q.shape[-1] ** 0.25", "q.shape[1] ** 0.25"), title="the root of axis 1",
            says="The number under your root is the size of axis 1: how many queries there are, or how many heads. It "
                 "has to be the size of the last axis, the width that the dot product sums over."),
    Mistake(EARLY, "eight", edit=("q.shape[-1] ** 0.25", "64 ** 0.25"), title="the root of 64, whatever the width",
            says="You divide by the root of 64. That was the example's d; the function has to look at how wide its own "
                 "q is."),
    Mistake(EARLY, "whole-root", edit=("q.shape[-1] ** 0.25", "int(q.shape[-1] ** 0.25)"),
            title="the root cut to a whole number",
            says="You divide by a whole number: `int(...)` and `//` cut the root's fraction off. The fourth root of d "
                 "is seldom whole, and may stay as it is."),
    Mistake(EARLY, "keys-ask", edit=("(q / root) @ (k / root)", "(k / root) @ (q / root)"),
            title="queries and keys exchanged",
            says="Your result has the keys as its rows, (s, t). Row i has to belong to query i: the queries stand on "
                 "the left of the product."),
    Mistake(EARLY, "reshaped", edit=("(k / root).transpose(-2, -1)",
            "(k / root).reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])"), title="the axes exchanged by a reshape",
            says="`reshape` and `view` keep the numbers in their order and only cut them into rows of another length, "
                 "so components of different keys get mixed. Exchanging two axes is a transpose."),
    Mistake(EARLY, "permuted", edit=(".transpose(-2, -1)", ".permute(0, 2, 1)"), title="three axes and no more",
            says="`permute(0, 2, 1)` names exactly three axes. With an axis for heads there are four, (b, h, t, d): "
                 "exchange the last two, counted from the end."),
    Mistake(EARLY, "nan-overwritten",
            edit=("return (q / root) @ (k / root).transpose(-2, -1)",
                  "return (q @ k.transpose(-2, -1) / root**2).nan_to_num()"), title="infinity overwritten",
            says="You replace the infinity that the plain product makes, and the answer is gone with it: every score "
                 "that overflowed becomes the same number. Divide before the product, then nothing overflows."),
    Mistake(EARLY, "detached", edit=("return (q / root) @ (k / root).transpose(-2, -1)",
            "return ((q / root) @ (k / root).transpose(-2, -1)).detach()"), title="the scores cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to queries and keys (detach, .data, "
                 "no_grad, item() or NumPy), so neither could learn."),
    Same(EARLY, "einsum", instead="""
        fourth_root = math.sqrt(math.sqrt(k.size(-1)))
        return torch.einsum("...td,...sd->...ts", q / fourth_root, k / fourth_root)
    """),
    Same(EARLY, "all-on-the-queries", instead="return torch.matmul(q / math.sqrt(q.shape[-1]), k.mT)"),
    Same(EARLY, "powers", instead="""
        share = q.shape[-1] ** -0.25
        return (q * share) @ (share * k).transpose(-1, -2)
    """),
    Same(EARLY, "bmm-folded", instead="""
        d = torch.tensor(q.shape[-1]) ** 0.25
        left, right = (q / d).flatten(0, -3), (k / d).flatten(0, -3)
        return torch.bmm(left, right.mT).unflatten(0, q.shape[:-2])
    """),
    Same(EARLY, "in-single-and-back", instead="""
        scores = q.float() @ k.float().mT / math.sqrt(q.shape[-1])
        return scores.to(q.dtype)
    """),
    Same(EARLY, "loops", instead="""
        r = q.shape[-1] ** 0.25
        row = lambda one: torch.stack([(one * (k[..., j, :] / r)).sum(-1) for j in range(k.shape[-2])], dim=-1)
        return torch.stack([row(q[..., i, :] / r) for i in range(q.shape[-2])], dim=-2)
    """),
    Equal(EARLY, "q", "k", why="queries and keys are equally wide"),
    # ----------------------------------------------------------------------------------- softmax_jacobian
    Mistake(JACOBIAN, "plus", edit=("torch.diag_embed(p) - outer", "torch.diag_embed(p) + outer"),
            title="plus the outer product",
            says="You add ppᵀ. When one score rises, the weights of all others *fall*: off the diagonal the entries "
                 "are negative, and every row adds up to 0."),
    Mistake(JACOBIAN, "sign", edit=("torch.diag_embed(p) - outer", "outer - torch.diag_embed(p)"),
            title="the sign turned round",
            says="Your matrix is ppᵀ − diag(p). Raising a score raises its own weight, so the diagonal is positive."),
    Mistake(JACOBIAN, "no-diagonal", edit=("torch.diag_embed(p) - outer", "-outer"), title="diag(p) is missing",
            says="You have −ppᵀ, and that is right off the diagonal. On it, the weight itself has to be added: p_i − "
                 "p_i²."),
    Mistake(JACOBIAN, "no-outer", edit=("torch.diag_embed(p) - outer", "torch.diag_embed(p)"), title="ppᵀ is missing",
            says="You have diag(p) only, as if each score moved its own weight and no other. The weights share a sum "
                 "of 1: what one gains the others lose."),
    Mistake(JACOBIAN, "diagonal-only", edit=("torch.diag_embed(p) - outer", "torch.diag_embed(p * (1 - p))"),
            title="right on the diagonal, 0 beside it",
            says="p(1 − p) is what a score does to its own weight. What it does to the other weights, −p_i p_j, is "
                 "missing: those entries of yours are 0."),
    Mistake(JACOBIAN, "elementwise", edit=("torch.diag_embed(p) - outer", "p * (1 - p)"),
            title="the derivative of a sigmoid",
            says="p(1 − p), entry by entry, is how a sigmoid goes: each output depends on one input. In a softmax "
                 "every weight depends on every score, so each row has a whole matrix."),
    Mistake(JACOBIAN, "identity",
            edit=("torch.diag_embed(p) - outer", "torch.eye(p.shape[-1], device=p.device) - outer"),
            title="the identity instead of diag(p)",
            says="You take 1 on the diagonal, not p. Before multiplying by p_i it was δ_ij − p_j; the factor p_i "
                 "belongs to both terms."),
    Mistake(JACOBIAN, "of-the-logarithm",
            edit=("torch.diag_embed(p) - outer",
                  "torch.eye(p.shape[-1], device=p.device) - p.unsqueeze(-2).expand_as(outer)"),
            title="the derivative of log p",
            says="δ_ij − p_j is the derivative of log p_i. One step is left: multiply row i by p_i."),
    Mistake(JACOBIAN, "softmax-again", edit=("outer = p", "p = torch.softmax(p, dim=-1)\n    outer = p"),
            title="softmax applied once more",
            says="You apply a softmax to p. What comes in are weights already, the outputs of a softmax."),
    Mistake(JACOBIAN, "one-vector-only", instead="return torch.diag(p) - torch.outer(p, p)", title="one row only",
            says="`torch.diag` and `torch.outer` take a single row and know no batches. `diag_embed` works on the last "
                 "axis of any tensor, and an outer product is a broadcast product."),
    Mistake(JACOBIAN, "three-axes-only",
            edit=("outer = p.unsqueeze(-1) * p.unsqueeze(-2)", "outer = p.unsqueeze(3) * p.unsqueeze(2)"),
            title="axes counted from the front",
            says="Right for (b, t, s), and not for a single row, which has no axis 2. Count from the end: the new axes "
                 "go after the last and before it."),
    Mistake(JACOBIAN, "sizes-unpacked", edit=("outer = p", "b, t, s = p.shape\n    outer = p"),
            title="three axes and no fewer",
            says="You unpack three sizes from p. A single row, (s,), has one: `p.shape[-1]` is the last one however "
                 "many there are."),
    Mistake(JACOBIAN, "no-delta", edit=("torch.diag_embed(p) - outer", "p.unsqueeze(-1) - outer"),
            title="p_i (1 − p_j) everywhere",
            says="You have p_i (1 − p_j) in every cell. The 1 is δ_ij: it stands on the diagonal, and beside it there "
                 "is a 0."),
    Mistake(JACOBIAN, "eye-on-the-cpu",
            instead="return torch.eye(p.shape[-1]) * p.unsqueeze(-1) - p.unsqueeze(-1) * p.unsqueeze(-2)",
            title="torch.eye on the CPU",
            says="Your numbers are right, but `torch.eye` makes its matrix on the CPU unless it is told otherwise. Say "
                 "where: `device=p.device`."),
    Mistake(JACOBIAN, "in-place", instead="""
        diagonal, row = torch.diag_embed(p), p.clone().unsqueeze(-2)
        return diagonal + p.neg_().unsqueeze(-1) * row
    """, title="the weights changed in place",
            says="Your numbers are right, and the caller's weights are no longer what they were: a method whose name "
                 "ends in _, or an operator like *=, writes into its tensor."),
    Mistake(JACOBIAN, "inner-product", edit=("torch.diag_embed(p) - outer",
            "torch.diag_embed(p) - p.unsqueeze(-2) @ p.unsqueeze(-1)"), title="a row times a column",
            says="You subtract one number from every entry: a row times a column is p·p, the inner product. Column "
                 "times row is the matrix of all the products p_i p_j."),
    Mistake(JACOBIAN, "einsum-of-three", edit=("p.unsqueeze(-1) * p.unsqueeze(-2)",
            'torch.einsum("bti,btj->btij", p, p)'), title="an einsum for three axes only",
            says="Your letters name exactly three axes, and p may have one, or more than three. In einsum, `...` "
                 "stands for any number of axes in front."),
    Mistake(JACOBIAN, "two-axes", edit=("outer = p", "b, s = p.shape\n    outer = p"), title="two axes and no others",
            says="You unpack two sizes from p. There may be one axis, (s,), or three and more: `p.shape[-1]` is the "
                 "last one however many there are."),
    Mistake(JACOBIAN, "one-long-row", instead="""
        row = p.reshape(-1)
        return torch.diag(row) - torch.outer(row, row)
    """, title="all rows as one",
            says="You make one long row of all of them, so that every weight seems to compete with every other. Each "
                 "row is a softmax of its own, with a matrix of its own."),
    Mistake(JACOBIAN, "diagonal-squared", edit=("torch.diag_embed(p) - outer", "torch.diag_embed(p**2) - outer"),
            title="p² on the diagonal",
            says="Your diagonal is p² − p², that is 0. diag(p) has the weights themselves."),
    Mistake(JACOBIAN, "vectors-subtracted", edit=("torch.diag_embed(p) - outer", "p.unsqueeze(-1) - p.unsqueeze(-2)"),
            title="differences of weights",
            says="You subtract weights from each other. ppᵀ is the matrix of all *products* p_i p_j, and diag(p) has "
                 "zeros beside its diagonal."),
    Mistake(JACOBIAN, "one-minus-on-the-diagonal", edit=("torch.diag_embed(p) - outer",
            "torch.diag_embed(1 - p) - outer"), title="1 − p on the diagonal",
            says="You put 1 − p on the diagonal. It is diag(p) − ppᵀ: on the diagonal that makes p_i − p_i²."),
    Mistake(JACOBIAN, "along-the-queries",
            edit=("p.unsqueeze(-1) * p.unsqueeze(-2)", "p.mT.unsqueeze(-2) * p.unsqueeze(-2)"),
            title="the wrong axes multiplied",
            says="Your outer product runs over another axis than the weights. It is that of each row with itself: add "
                 "an axis of size 1 at the end, and one before the last."),
    Mistake(JACOBIAN, "first-matrix-for-all", edit=("return torch.diag_embed(p) - outer",
            "result = torch.diag_embed(p) - outer\n    return result[:1].expand_as(result)"),
            title="the first matrix for all",
            says="You hand out the first of the matrices for all of them. Each row of weights has one of its own."),
    Mistake(JACOBIAN, "detached", edit=("return torch.diag_embed(p) - outer",
            "return (torch.diag_embed(p) - outer).detach()"), title="the result cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to p. Something cuts the graph: detach, "
                 ".data, no_grad, item(), NumPy, or autograd's own Jacobian, which is cut off unless it is told "
                 "`create_graph=True`."),
    Same(JACOBIAN, "eye", instead="""
        s = p.shape[-1]
        eye = torch.eye(s, device=p.device, dtype=p.dtype)
        return p[..., :, None] * (eye - p[..., None, :])
    """),
    Same(JACOBIAN, "einsum", instead='return torch.diag_embed(p) - torch.einsum("...a,...b->...ab", p, p)'),
    Same(JACOBIAN, "matmul", instead="""
        column = p.unsqueeze(-1)
        return torch.diag_embed(p) - torch.matmul(column, column.mT)
    """),
    Same(JACOBIAN, "row-by-row", instead="""
        rows = [torch.diag(row) - torch.outer(row, row) for row in p.reshape(-1, p.shape[-1])]
        return torch.stack(rows).reshape(*p.shape, p.shape[-1])
    """),
    Same(JACOBIAN, "entry-by-entry", instead="""
        s = p.shape[-1]
        result = torch.zeros(*p.shape, s, dtype=p.dtype, device=p.device)
        for i in range(s):
            for j in range(s):
                result[..., i, j] = p[..., i] * ((1.0 if i == j else 0.0) - p[..., j])
        return result
    """),
    Same(JACOBIAN, "autograd", instead="""
        flat = p.reshape(-1, p.shape[-1])
        one = lambda z: torch.softmax(z, dim=-1)
        matrices = [torch.autograd.functional.jacobian(one, row.log(), create_graph=True) for row in flat]
        return torch.stack(matrices).reshape(*p.shape, p.shape[-1])
    """),
    Equal(JACOBIAN, "return torch.diag_embed(p) - outer", "return (torch.diag_embed(p) - outer).mT",
          why="the Jacobian of a softmax is symmetric"),
    # ---------------------------------------------------------------------------------- attention_entropy
    Mistake(ENTROPY, "nan", edit=("torch.xlogy(weights, weights)", "weights * weights.log()"),
            title="NaN where a weight is 0",
            says="Right as long as no weight is 0. There log gives −∞, and 0 · (−∞) is NaN. Such a weight has to "
                 "contribute 0."),
    Mistake(ENTROPY, "bits", edit=("-terms.sum(dim=-1)", "-terms.sum(dim=-1) / math.log(2)"),
            title="bits instead of nats",
            says="Your numbers are the right ones divided by log 2, which is entropy in bits: a logarithm to base 2. "
                 "In nats the logarithm is the natural one."),
    Alias(ENTROPY, "base-two", of="bits", edit=("torch.xlogy(weights, weights)",
          "torch.where(weights > 0, weights * weights.log2(), 0.0)")),
    Mistake(ENTROPY, "decimal", edit=("-terms.sum(dim=-1)", "-terms.sum(dim=-1) / math.log(10)"),
            title="logarithms to base 10",
            says="Your numbers are the right ones divided by log 10: the logarithm is one to base 10. In nats it is "
                 "the natural one."),
    Alias(ENTROPY, "base-ten", of="decimal", edit=("torch.xlogy(weights, weights)",
          "torch.where(weights > 0, weights * weights.log10(), 0.0)")),
    Mistake(ENTROPY, "softmax-again",
            edit=("terms = torch", "weights = torch.softmax(weights, dim=-1)\n    terms = torch"),
            title="softmax applied once more",
            says="You take the weights for scores and apply a softmax to them, so every row comes out nearly even. "
                 "What comes in are weights already."),
    Mistake(ENTROPY, "bits-and-nan", edit=("torch.xlogy(weights, weights)", "weights * weights.log2()"),
            title="bits instead of nats, and NaN where a weight is 0",
            says="Two things. `log2` gives bits; nats need the natural logarithm. And where a weight is 0, 0 · (−∞) is "
                 "NaN; it has to count as 0."),
    Mistake(ENTROPY, "no-minus", edit=("-terms", "terms"), title="the minus sign is missing",
            says="Your entropies are negative. The logarithm of a weight below 1 is negative, and the minus in front "
                 "of the sum makes up for it."),
    Mistake(ENTROPY, "no-minus-and-nan",
            edit=(("torch.xlogy(weights, weights)", "weights * weights.log()"), ("-terms", "terms")),
            title="the minus sign is missing, and NaN where a weight is 0",
            says="Two things. Your entropies are negative: the minus in front of the sum is missing. And where a "
                 "weight is 0, 0 · (−∞) is NaN; it has to count as 0."),
    Mistake(ENTROPY, "mean", edit=("terms.sum(dim=-1)", "terms.mean(dim=-1)"),
            title="the mean of the terms instead of their sum",
            says="You average over the positions: your numbers are the right ones divided by s. The weights themselves "
                 "do the averaging here; add the terms up."),
    Mistake(ENTROPY, "wrong-axis", edit=("sum(dim=-1)", "sum(dim=-2)"), title="summed over the queries",
            says="You sum over the rows' axis. Each query has an entropy of its own: the sum runs over the last axis, "
                 "the keys."),
    Mistake(ENTROPY, "one-number", edit=("terms.sum(dim=-1)", "terms.sum()"), title="one number for all rows",
            says="You add up everything. Each row has an entropy of its own, so only the last axis goes."),
    Mistake(ENTROPY, "no-weight", edit=("torch.xlogy(weights, weights)", "weights.clamp(min=1e-9).log()"),
            title="logarithms without their weights",
            says="You add up the logarithms alone. Each is to be weighted with the weight itself: w log w."),
    Mistake(ENTROPY, "zeros-lifted",
            edit=("torch.xlogy(weights, weights)", "(weights + 0.01) * (weights + 0.01).log()"),
            title="an epsilon that shows",
            says="What you add to keep the logarithm finite is large enough to change the result. Either make it far "
                 "smaller than any float's precision (1e-12), or treat zeros apart."),
    Mistake(ENTROPY, "normalised", edit=("-terms.sum(dim=-1)", "-terms.sum(dim=-1) / math.log(weights.shape[-1])"),
            title="divided by the largest entropy",
            says="You divide by log s, so that an even row gives 1. That is a useful number too; here the entropy "
                 "itself is asked, in nats."),
    Mistake(ENTROPY, "perplexity", edit=("-terms.sum(dim=-1)", "(-terms.sum(dim=-1)).exp()"), title="e^H instead of H",
            says="You return e to the entropy, the number of positions listened to. The exercise asks for the entropy "
                 "itself."),
    Mistake(ENTROPY, "zeros-overwritten", edit=("terms = torch", "weights[weights == 0] = 1.0\n    terms = torch"),
            title="zeros overwritten in the caller's tensor",
            says="Replacing 0 by 1 makes the term 0, a good idea, but `weights[...] = ` writes into the caller's own "
                 "tensor. Do it on a new one: `torch.where`, or a clone."),
    Mistake(ENTROPY, "too-late", edit=(("torch.xlogy(weights, weights)", "weights * weights.log()"),
            ("return -terms.sum(dim=-1)", "return torch.nan_to_num(-terms.sum(dim=-1))")),
            title="NaN replaced after the sum",
            says="A single term that is NaN makes the whole sum NaN, and replacing that takes the row's other terms "
                 "with it. Mend the terms, and then sum."),
    Mistake(ENTROPY, "tenth-in-the-logarithm",
            edit=("torch.xlogy(weights, weights)", "weights * (weights + 0.1).log()"),
            title="an epsilon that shows",
            says="What you add inside the logarithm is large enough to change the result. Make it far smaller (1e-12), "
                 "or treat zeros apart."),
    Mistake(ENTROPY, "hundredth-in-the-logarithm",
            edit=("torch.xlogy(weights, weights)", "weights * (weights + 0.01).log()"), title="an epsilon that shows",
            says="What you add inside the logarithm is large enough to change the result. Make it far smaller (1e-12), "
                 "or treat zeros apart."),
    Mistake(ENTROPY, "clamped-too-high",
            edit=("torch.xlogy(weights, weights)", "weights * weights.clamp(min=0.01).log()"),
            title="a limit that shows",
            says="The limit below which you change weights is so high that real weights lie under it. Make it far "
                 "smaller (1e-12), or treat zeros apart."),
    Mistake(ENTROPY, "logarithm-of-one-more", edit=("torch.xlogy(weights, weights)", "weights * weights.log1p()"),
            title="the logarithm of 1 + w",
            says="`log1p(w)` is the logarithm of 1 + w. It keeps −∞ away and is another number: the logarithm of w "
                 "itself is needed."),
    Mistake(ENTROPY, "not-summed", edit=("-terms.sum(dim=-1)", "-terms"), title="the terms, not added up",
            says="You return the terms one by one. The entropy of a row is their sum over the last axis."),
    Mistake(ENTROPY, "axis-kept", edit=("sum(dim=-1)", "sum(dim=-1, keepdim=True)"), title="an axis too many",
            says="You keep the last axis, with size 1. It is summed away: of (..., s) remains (...)."),
    Mistake(ENTROPY, "negative-logarithm-of-the-sum",
            edit=("return -terms.sum(dim=-1)", "return -(weights**2).sum(dim=-1).log()"),
            title="the logarithm of the sum of squares",
            says="You take the logarithm of the sum of the squared weights. That measures softness too, in another "
                 "way; entropy sums w log w."),
    Mistake(ENTROPY, "sum-of-squares", edit=("return -terms.sum(dim=-1)", "return 1 - (weights**2).sum(dim=-1)"),
            title="1 − Σ w²",
            says="1 − Σ w² measures softness too, in another way (Gini's). Entropy is −Σ w log w."),
    Mistake(ENTROPY, "mean-over-rows", edit=("return -terms.sum(dim=-1)", "return -terms.sum(dim=-1).mean()"),
            title="the mean of all rows",
            says="You average over all rows. Each has an entropy of its own, so only the last axis goes."),
    Mistake(ENTROPY, "detached", edit=("return -terms.sum(dim=-1)", "return -terms.sum(dim=-1).detach()"),
            title="the entropies cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to the weights (detach, .data, no_grad, "
                 "item() or NumPy)."),
    Same(ENTROPY, "entr", instead="return torch.special.entr(weights).sum(-1)"),
    Same(ENTROPY, "where", instead="""
        safe = torch.where(weights > 0, weights, torch.ones_like(weights))
        return -(weights * torch.log(safe)).sum(-1)
    """),
    Same(ENTROPY, "clamp", instead="return -(weights * weights.clamp(min=1e-12).log()).sum(dim=-1)"),
    Same(ENTROPY, "epsilon", instead='return -torch.einsum("...j,...j->...", weights, torch.log(weights + 1e-9))'),
    Same(ENTROPY, "nan-to-num", instead="return -torch.nan_to_num(weights * weights.log(), nan=0.0).sum(-1)"),
    Same(ENTROPY, "base-two-and-back",
         instead="return -math.log(2) * torch.where(weights == 0, 0.0, weights * weights.log2()).sum(-1)"),
    Same(ENTROPY, "distribution", instead="return torch.distributions.Categorical(probs=weights).entropy()"),
    Same(ENTROPY, "loops", instead="""
        totals = []
        for row in weights.reshape(-1, weights.shape[-1]):
            totals.append(-sum((w * w.log() for w in row if w > 0), start=row.new_zeros(())))
        return torch.stack(totals).reshape(weights.shape[:-1])
    """),
    Same(ENTROPY, "masked-fill", instead="""
        logs = weights.log().masked_fill(weights == 0, 0.0)
        return torch.einsum("...s,...s->...", weights, logs).neg()
    """),
    # ----------------------------------------------------------------------------------- largest_gradient
    Mistake(LARGEST, "frobenius", edit=(", ord=2", ""), title="the Frobenius norm",
            says="By default `matrix_norm` is the root of the sum of all squares, the Frobenius norm. The spectral "
                 "norm is the largest singular value: another `ord`."),
    Mistake(LARGEST, "largest-entry",
            edit=("torch.linalg.matrix_norm(jacobian, ord=2)", "jacobian.abs().amax(dim=(-2, -1))"),
            title="the largest entry",
            says="You take the largest entry of the matrix. That is what one score does to one weight; a gradient that "
                 "hits several weights at once can be stretched more than that. The largest singular value is asked."),
    Mistake(LARGEST, "row-sum", edit=("ord=2", "ord=float('inf')"), title="the largest row sum",
            says="Your norm is the largest sum of absolute values in a row (or a column: the matrix is symmetric). "
                 "That is the bound from the text, 2p(1 − p), and never smaller than the spectral norm. Take the "
                 "largest singular value."),
    # J is symmetric: its columns are its rows
    Alias(LARGEST, "column-sum", of="row-sum", edit=("ord=2", "ord=1")),
    Mistake(LARGEST, "nuclear", edit=("ord=2", "ord='nuc'"), title="the sum of the singular values",
            says="You add up all singular values (for this matrix that is also its trace). The spectral norm is the "
                 "largest of them alone."),
    Mistake(LARGEST, "no-softmax", edit=("p = torch.softmax(scores, dim=-1)", "p = scores"),
            title="scores taken for weights",
            says="The Jacobian is made of the weights p, and what comes in are scores. The softmax has to come first."),
    Mistake(LARGEST, "plus", edit=("torch.diag_embed(p) - p", "torch.diag_embed(p) + p"),
            title="the Jacobian with plus",
            says="Your Jacobian is diag(p) + ppᵀ. Off the diagonal it has to be negative: what one weight gains, the "
                 "others lose."),
    Mistake(LARGEST, "wrong-axis", edit=("torch.softmax(scores, dim=-1)", "torch.softmax(scores, dim=0)"),
            title="softmax over the wrong axis",
            says="For a single row your norm is right; in a batch your softmax runs over another axis than the last. "
                 "Each row is a softmax of its own."),
    Mistake(LARGEST, "scaled-inside",
            edit=("torch.softmax(scores, dim=-1)", "torch.softmax(scores / math.sqrt(scores.shape[-1]), dim=-1)"),
            title="the scores divided once more",
            says="You divide the scores before the softmax, and by the root of the number of keys. Whoever calls this "
                 "function has scaled them or has not: take them as they come."),
    Mistake(LARGEST, "vector-norm",
            edit=("torch.linalg.matrix_norm(jacobian, ord=2)",
                  "torch.linalg.vector_norm(jacobian, ord=2, dim=-1).amax(-1)"), title="the longest row",
            says="You take the length of the longest row of the Jacobian: how far a single weight can be moved. All "
                 "weights together can move further. The spectral norm is the largest singular value of the matrix."),
    Mistake(LARGEST, "no-maximum",
            edit=("p = torch.softmax(scores, dim=-1)", "p = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)"),
            title="a softmax that overflows",
            says="Your own softmax breaks for large scores: exp(89) is infinite in 32 bits, and ∞/∞ is NaN. "
                 "`torch.softmax` takes the largest score of each row off first."),
    Mistake(LARGEST, "squared",
            edit=("torch.linalg.matrix_norm(jacobian, ord=2)",
                  "torch.linalg.matrix_norm(jacobian.mT @ jacobian, ord=2)"), title="the square of the spectral norm",
            says="The largest eigenvalue of JᵀJ is the *square* of the largest singular value of J. Take the root, or "
                 "the largest eigenvalue of J itself, which is symmetric."),
    Mistake(LARGEST, "one-norm-for-all",
            edit=("return torch.linalg.matrix_norm(jacobian, ord=2)",
                  "return torch.linalg.matrix_norm(jacobian, ord=2).max()"), title="one number for all rows",
            says="You take the largest over the whole batch. Each row of scores has a number of its own."),
    Mistake(LARGEST, "in-place",
            edit=("torch.softmax(scores, dim=-1)",
                  "torch.softmax(scores.sub_(scores.amax(dim=-1, keepdim=True)), dim=-1)"),
            title="the scores changed in place",
            says="Your numbers are right, but the caller's scores are not what they were: a method whose name ends in "
                 "_ writes into its tensor."),
    Mistake(LARGEST, "jacobian-returned", edit=("torch.linalg.matrix_norm(jacobian, ord=2)", "jacobian"),
            title="the Jacobian, without its norm",
            says="You return the Jacobians, one matrix for each row. One step is left: one number for each matrix, its "
                 "spectral norm."),
    Mistake(LARGEST, "all-singular-values", edit=("torch.linalg.matrix_norm(jacobian, ord=2)",
            "torch.linalg.svdvals(jacobian)"), title="all singular values",
            says="You return all the singular values of each matrix. The spectral norm is the largest of them."),
    Mistake(LARGEST, "second", edit=("torch.linalg.matrix_norm(jacobian, ord=2)",
            "torch.linalg.svdvals(jacobian)[..., 1]"), title="the second singular value",
            says="Yours is the second largest singular value. The first is asked for."),
    Mistake(LARGEST, "overflow-hidden",
            edit=(("p = torch.softmax(scores, dim=-1)", "p = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)"),
                  ("torch.linalg.matrix_norm(jacobian, ord=2)",
                   "torch.linalg.matrix_norm(jacobian.nan_to_num(), ord=2)")),
            title="a softmax that overflows, and NaN overwritten",
            says="Your own softmax breaks for large scores, and 0 takes the place of the NaN. A norm of 0 says that "
                 "nothing gets through, and that is not so. `torch.softmax` takes the largest score of each row off "
                 "first."),
    Alias(LARGEST, "largest-on-the-diagonal", of="largest-entry",
          edit=("torch.linalg.matrix_norm(jacobian, ord=2)", "(p * (1 - p)).amax(dim=-1)")),
    Alias(LARGEST, "largest-of-the-diagonal", of="largest-entry",
          edit=("torch.linalg.matrix_norm(jacobian, ord=2)", "jacobian.diagonal(dim1=-2, dim2=-1).amax(-1)")),
    Mistake(LARGEST, "no-outer",
            edit=("torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)", "torch.diag_embed(p)"),
            title="the norm of diag(p)",
            says="Your matrix is diag(p), whose norm is the largest weight. The Jacobian is diag(p) − ppᵀ."),
    Mistake(LARGEST, "softmax-twice",
            edit=("torch.softmax(scores, dim=-1)", "torch.softmax(scores.softmax(-1), dim=-1)"),
            title="softmax applied twice",
            says="The scores go through the softmax twice in your code, which makes every row nearly even. Once is "
                 "enough."),
    Mistake(LARGEST, "logarithm", edit=("torch.softmax(scores, dim=-1)", "torch.log_softmax(scores, dim=-1)"),
            title="logarithms instead of weights",
            says="The Jacobian is made of the weights p; `log_softmax` gives their logarithms."),
    Mistake(LARGEST, "root-of-the-norm", edit=("return torch.linalg.matrix_norm(jacobian, ord=2)",
            "return torch.linalg.matrix_norm(jacobian, ord=2).sqrt()"), title="the root of the spectral norm",
            says="You take a root too many: the largest singular value is the norm, as it is. (A root belongs to the "
                 "eigenvalues of JᵀJ.)"),
    Mistake(LARGEST, "norm-of-the-whole", edit=("return torch.linalg.matrix_norm(jacobian, ord=2)",
            "return torch.linalg.vector_norm(jacobian)"), title="one norm for the whole batch",
            says="Your norm runs over everything at once. Each row of scores has a matrix, and each matrix a number of "
                 "its own."),
    Mistake(LARGEST, "detached", edit=("return torch.linalg.matrix_norm(jacobian, ord=2)",
            "return torch.linalg.matrix_norm(jacobian, ord=2).detach()"), title="the result cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to the scores. Something cuts the "
                 "graph: detach, .data, no_grad, item(), NumPy, or autograd's own Jacobian, which is cut off unless "
                 "it is told `create_graph=True`."),
    Same(LARGEST, "singular-values", instead="""
        p = torch.nn.functional.softmax(scores, -1)
        return torch.linalg.svdvals(torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p))[..., 0]
    """),
    Same(LARGEST, "eigenvalues", instead="""
        p = scores.softmax(-1)
        eye = torch.eye(p.shape[-1], device=p.device)
        return torch.linalg.eigvalsh(p.unsqueeze(-1) * (eye - p.unsqueeze(-2))).amax(-1)
    """),
    Same(LARGEST, "norm-of-two-axes", instead="""
        p = torch.softmax(scores, dim=-1)
        return torch.linalg.norm(torch.diag_embed(p) - p[..., None] @ p[..., None, :], ord=2, dim=(-2, -1))
    """),
    Same(LARGEST, "autograd-row-by-row", instead="""
        norms = []
        for row in scores.reshape(-1, scores.shape[-1]):
            jacobian = torch.autograd.functional.jacobian(lambda z: torch.softmax(z, 0), row, create_graph=True)
            norms.append(torch.linalg.matrix_norm(jacobian, 2))
        return torch.stack(norms).reshape(scores.shape[:-1])
    """),
    Same(LARGEST, "power-iteration", instead="""
        p = torch.softmax(scores, dim=-1)
        jacobian = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
        power = jacobian
        for _ in range(12):
            power = power @ power
            power = power / power.norm(dim=(-2, -1), keepdim=True)
        return (jacobian * power).sum((-2, -1)) / power.diagonal(dim1=-2, dim2=-1).sum(-1)
    """),
    Equal(LARGEST, "torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)",
          "p.unsqueeze(-1) * p.unsqueeze(-2) - torch.diag_embed(p)", why="a matrix and its negative are of one norm"),
]
