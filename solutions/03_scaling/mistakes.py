"""What students get wrong in lesson 3, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake

VARIANCE, EARLY, BACKWARD, ENTROPY, PORTED = (
    "score_variance",
    "scaled_scores_early",
    "softmax_backward",
    "attention_entropy",
    "PortedHead",
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
    Accepted(VARIANCE, "all-at-once", instead="""
        q, k = torch.randn(2, samples, d, generator=generator)
        return torch.einsum("nd,nd->n", k, q).var(unbiased=False)
    """),
    Accepted(VARIANCE, "pair-by-pair", instead="""
        scores = []
        for _ in range(samples):
            query, key = torch.randn(d, generator=generator), torch.randn(d, generator=generator)
            scores.append(query @ key)
        return torch.stack(scores).var().item()
    """),
    Accepted(VARIANCE, "mean-square", instead="""
        k = torch.normal(0.0, 1.0, (samples, d, 1), generator=generator, device=generator.device)
        q = torch.normal(0.0, 1.0, (samples, 1, d), generator=generator, device=generator.device)
        return torch.mean(torch.bmm(q, k) ** 2)
    """),
    Accepted(VARIANCE, "empty-normal", instead="""
        q = torch.empty(samples, d, dtype=torch.float64).normal_(generator=generator)
        k = torch.empty(samples, d, dtype=torch.float64).normal_(generator=generator)
        s = torch.sum(q * k, 1)
        return ((s - s.mean()) ** 2).sum() / (samples - 1)
    """),
    Accepted(VARIANCE, "component-by-component", instead="""
        scores = torch.zeros(samples)
        for _ in range(d):
            first = torch.empty(samples).normal_(generator=generator)
            scores += first * torch.empty(samples).normal_(generator=generator)
        return float(scores.var())
    """),
    Accepted(VARIANCE, "distribution-by-hand", instead="""
        u = torch.rand(2, samples, d, 2, generator=generator, dtype=torch.float64).clamp(min=1e-12)
        q, k = (-2 * u[..., 0].log()).sqrt() * (2 * math.pi * u[..., 1]).cos()
        return (q * k).sum(-1).var()
    """),
    EquivalentMutant(VARIANCE, "return scores.var()", "return scores.var().mT",
        why="a single number has no axes to exchange"),
    EquivalentMutant(VARIANCE, "return scores.var()", "return scores.var().squeeze()",
        why="a single number has no axis to lose"),
    EquivalentMutant(VARIANCE, "return scores.var()", "return scores.var().detach()",
          why="a measurement of drawn numbers, of which nothing learns; a plain Python number is right too"),
    EquivalentMutant(VARIANCE, "(q * k).sum(dim=-1)", "(q * k).sum(dim=1)", why="of two axes the last is axis 1"),
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
    Accepted(EARLY, "einsum", instead="""
        fourth_root = math.sqrt(math.sqrt(k.size(-1)))
        return torch.einsum("...td,...sd->...ts", q / fourth_root, k / fourth_root)
    """),
    Accepted(EARLY, "all-on-the-queries", instead="return torch.matmul(q / math.sqrt(q.shape[-1]), k.mT)"),
    Accepted(EARLY, "powers", instead="""
        share = q.shape[-1] ** -0.25
        return (q * share) @ (share * k).transpose(-1, -2)
    """),
    Accepted(EARLY, "bmm-folded", instead="""
        d = torch.tensor(q.shape[-1]) ** 0.25
        left, right = (q / d).flatten(0, -3), (k / d).flatten(0, -3)
        return torch.bmm(left, right.mT).unflatten(0, q.shape[:-2])
    """),
    Accepted(EARLY, "in-single-and-back", instead="""
        scores = q.float() @ k.float().mT / math.sqrt(q.shape[-1])
        return scores.to(q.dtype)
    """),
    Accepted(EARLY, "loops", instead="""
        r = q.shape[-1] ** 0.25
        row = lambda one: torch.stack([(one * (k[..., j, :] / r)).sum(-1) for j in range(k.shape[-2])], dim=-1)
        return torch.stack([row(q[..., i, :] / r) for i in range(q.shape[-2])], dim=-2)
    """),
    EquivalentMutant(EARLY, "q", "k", why="queries and keys are equally wide"),
    # ----------------------------------------------------------------------------------- softmax_backward
    Mistake(BACKWARD, "no-mean", edit=("(g - mean)", "g"), title="the share of the other keys is missing",
            says="You have p_j g_j: what a score does to its own weight, as if the other weights stayed. They share a "
                 "sum of 1, and what one gains they lose: the part −p_j Σ_i p_i g_i is missing."),
    Mistake(BACKWARD, "plain-mean", edit=("(p * g).sum(dim=-1, keepdim=True)", "g.mean(dim=-1, keepdim=True)"),
            title="a plain mean of g",
            says="You take off the plain mean of g. What the sum over i gives is an average in which each g_i counts "
                 "with its weight p_i."),
    Mistake(BACKWARD, "sum-of-g", edit=("(p * g).sum(", "g.sum("), title="the sum of g, without the weights",
            says="You take off the sum of g. In Σ_i p_i g_i each g_i counts with its weight p_i. (δ_ij − p_j without "
                 "p_i in front is the derivative of log p.)"),
    Mistake(BACKWARD, "mean-of-products", edit=("(p * g).sum(", "(p * g).mean("), title="divided by the number of keys",
            says="You take the mean of the products p_i g_i, which divides by the number of keys. The weights add up "
                 "to 1 already: the sum of the products is their average."),
    Mistake(BACKWARD, "sign", edit=("(g - mean)", "(mean - g)"), title="the sign turned round",
            says="Your numbers have the wrong sign throughout. A weight rises with its own score: where g_j is above "
                 "the average, so is the gradient of score j above 0."),
    Mistake(BACKWARD, "plus", edit=("(g - mean)", "(g + mean)"), title="plus the average",
            says="You add the average. The entries of J beside the diagonal are −p_i p_j: it has to be taken off."),
    Mistake(BACKWARD, "sigmoid", instead="return p * (1 - p) * g", title="the diagonal alone",
            says="p(1 − p) is the diagonal of J: what a score does to its own weight. What it does to all the other "
                 "weights, −p_i p_j, is missing."),
    Mistake(BACKWARD, "no-factor", edit=("p * (g - mean)", "g - mean"), title="the factor p_j is missing",
            says="You have g_j − Σ_i p_i g_i. Both terms of the sum over i hold a p_j: it stands in front."),
    Mistake(BACKWARD, "outer-only", edit=("p * (g - mean)", "-p * mean"), title="diag(p) is missing",
            says="You have −p_j Σ_i p_i g_i, which comes from −ppᵀ. The term with i = j has p_j g_j besides."),
    Mistake(BACKWARD, "twice-the-weight", edit=("p * (g - mean)", "p * (p * g - mean)"), title="p_j² g_j",
            says="Your first term is p_j² g_j. diag(p) holds the weight once: p_j g_j."),
    Mistake(BACKWARD, "average-returned", edit=("p * (g - mean)", "mean.expand_as(p)"), title="the average itself",
            says="You return the average Σ_i p_i g_i for every key. It is what each g_j is compared with; the "
                 "difference, times p_j, is the answer."),
    Mistake(BACKWARD, "jacobian-returned", instead="""
        return torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    """, title="the matrix J",
            says="You return the matrix J. It is to be multiplied with g, so that one number for each score is left."),
    Mistake(BACKWARD, "softmax-again", edit=("mean = (p", "p = torch.softmax(p, dim=-1)\n    mean = (p"),
            title="softmax applied once more",
            says="You apply a softmax to p. What comes in are weights already, the outputs of a softmax."),
    Mistake(BACKWARD, "no-keepdim", edit=(", keepdim=True", ""), title="an axis lost in the sum",
            says="Your sum loses its axis: it has the shape (b, t), and next to (b, t, s) that either raises an error "
                 "or lines up with the wrong axis. `keepdim=True` leaves it (b, t, 1)."),
    Mistake(BACKWARD, "first-axis", edit=("dim=-1", "dim=0"), title="summed over the first axis",
            says="You sum over the first axis, which for (b, t, s) is the batch. The sum over i runs over the keys of "
                 "one row: the last axis."),
    Mistake(BACKWARD, "queries", edit=("dim=-1", "dim=p.dim() - 2"),
            title="summed over the queries",
            says="You sum over the axis before the last, the queries. The sum over i runs over the keys of one row: "
                 "the last axis."),
    Mistake(BACKWARD, "all-rows", edit=("(p * g).sum(dim=-1, keepdim=True)", "(p * g).sum()"),
            title="one average for all rows",
            says="You sum over all rows at once. Each row is a softmax of its own and has an average of its own."),
    Mistake(BACKWARD, "einsum-of-three", edit=("(p * g).sum(dim=-1, keepdim=True)",
            'torch.einsum("bts,bts->bt", p, g).unsqueeze(-1)'), title="an einsum for three axes only",
            says="Your letters name exactly three axes, and p may have one, or four. In einsum, `...` stands for any "
                 "number of axes in front."),
    Mistake(BACKWARD, "one-row-only", instead="return (torch.diag(p) - torch.outer(p, p)) @ g", title="one row only",
            says="`torch.diag` and `torch.outer` take a single row and know no batches. Sums over the last axis work "
                 "for any number of axes in front."),
    Mistake(BACKWARD, "in-place", edit=("p * (g - mean)", "p * g.sub_(mean)"), title="g changed in place",
            says="Your numbers are right, and the caller's g is no longer what it was: a method whose name ends in _, "
                 "or an operator like -=, writes into its tensor."),
    Mistake(BACKWARD, "detached", edit=("return p * (g - mean)", "return (p * (g - mean)).detach()"),
            title="the result cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to p and g. Something cuts the graph: "
                 "detach, .data, no_grad, item() or NumPy."),
    Mistake(BACKWARD, "average-detached", edit=("(g - mean)", "(g - mean.detach())"),
            title="the average cut off from the graph",
            says="Your numbers are right, and their own derivatives are not: the average depends on p and on g, and "
                 "somewhere it is cut off from them (detach, .data, no_grad, item())."),
    Accepted(BACKWARD, "matrix", instead="""
        jacobian = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
        return (jacobian @ g.unsqueeze(-1)).squeeze(-1)
    """),
    Accepted(BACKWARD, "einsum", instead="""
        return p * g - torch.einsum("...i,...i,...j->...j", p, g, p)
    """),
    Accepted(BACKWARD, "row-times-matrix", instead="""
        eye = torch.eye(p.shape[-1], device=p.device, dtype=p.dtype)
        return torch.einsum("...i,...ij->...j", g * p, eye - p[..., None, :])
    """),
    Accepted(BACKWARD, "two-terms", instead="""
        pulled = p * g
        return pulled - p * torch.linalg.vecdot(p, g).unsqueeze(-1)
    """),
    Accepted(BACKWARD, "column-by-column", instead="""
        s = p.shape[-1]
        columns = []
        for j in range(s):
            total = 0.0
            for i in range(s):
                total = total + g[..., i] * p[..., i] * ((1.0 if i == j else 0.0) - p[..., j])
            columns.append(total)
        return torch.stack(columns, dim=-1)
    """),
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
    Accepted(ENTROPY, "entr", instead="return torch.special.entr(weights).sum(-1)"),
    Accepted(ENTROPY, "where", instead="""
        safe = torch.where(weights > 0, weights, torch.ones_like(weights))
        return -(weights * torch.log(safe)).sum(-1)
    """),
    Accepted(ENTROPY, "clamp", instead="return -(weights * weights.clamp(min=1e-12).log()).sum(dim=-1)"),
    Accepted(ENTROPY, "epsilon", instead='return -torch.einsum("...j,...j->...", weights, torch.log(weights + 1e-9))'),
    Accepted(ENTROPY, "nan-to-num", instead="return -torch.nan_to_num(weights * weights.log(), nan=0.0).sum(-1)"),
    Accepted(ENTROPY, "base-two-and-back",
         instead="return -math.log(2) * torch.where(weights == 0, 0.0, weights * weights.log2()).sum(-1)"),
    Accepted(ENTROPY, "distribution", instead="return torch.distributions.Categorical(probs=weights).entropy()"),
    Accepted(ENTROPY, "loops", instead="""
        totals = []
        for row in weights.reshape(-1, weights.shape[-1]):
            totals.append(-sum((w * w.log() for w in row if w > 0), start=row.new_zeros(())))
        return torch.stack(totals).reshape(weights.shape[:-1])
    """),
    Accepted(ENTROPY, "masked-fill", instead="""
        logs = weights.log().masked_fill(weights == 0, 0.0)
        return torch.einsum("...s,...s->...", weights, logs).neg()
    """),
    # ----------------------------------------------------------------------------------------- PortedHead
    Mistake(PORTED, "unchanged", edit=(
        ("def __init__(self, e, d):", "def __init__(self, e, d, scale=False):"),
        ("super().__init__()", "super().__init__()\n        self.scale = scale"),
        (" / math.sqrt(q.shape[-1])", "\n        if self.scale:\n            scores = scores / math.sqrt(q.shape[-1])"),
    ), title="built without the division",
            says="A head that is built as `PortedHead(e, d)` and filled with trained weights still computes with the "
                 "scores as they are. Follow its scores from the product to the softmax, and ask what each line finds "
                 "when only e and d were passed. (Changing the weights in the constructor does not last: what is "
                 "loaded replaces them.)"),
    # what the constructor does to the weights is overwritten by loading: the same numbers as without
    Alias(PORTED, "fresh-weights-divided", of="unchanged", edit=(
        (" / math.sqrt(q.shape[-1])", ""),
        ("    def weights", "        with torch.no_grad():\n            self.to_queries.weight /= d**0.5\n\n    def "
                            "weights"),
    )),
    Mistake(PORTED, "root-of-e", edit=("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1])"), title="the root of e",
            says="You divide by √e, the width of x. A score is a sum over the d components of a query and a key, and "
                 "it is their number that counts."),
    Mistake(PORTED, "divided-by-d", edit=("math.sqrt(q.shape[-1])", "q.shape[-1]"), title="divided by d",
            says="Your scores are divided by d in all: by d itself, or twice by its root. The weights were trained "
                 "with scores that were divided once, by √d."),
    # once by the caller and once in the softmax's argument: √d twice
    Alias(PORTED, "divided-twice", of="divided-by-d",
          edit=("torch.softmax(scores, dim=-1)", "torch.softmax(scores / math.sqrt(q.shape[-1]), dim=-1)")),
    Mistake(PORTED, "divided-outside", edit=((" / math.sqrt(q.shape[-1])", ""),
            ("return torch.softmax(scores, dim=-1)", "return torch.softmax(scores, dim=-1) / math.sqrt(q.shape[-1])")),
            title="the weights divided, not the scores",
            says="You divide what comes out of the softmax. It is the scores that are too large, and the softmax has "
                 "made its choice by then; besides, your weights no longer add up to 1."),
    Mistake(PORTED, "multiplied", edit=("/ math.sqrt(", "* math.sqrt("), title="multiplied by √d",
            says="You multiply by √d, so the scores are d times as large as the model was trained for. Divide."),
    Mistake(PORTED, "eight", edit=("math.sqrt(q.shape[-1])", "8"), title="divided by 8, whatever the width",
            says="You divide by 8, which is right for d = 64 alone. The head has to look at how wide its queries are."),
    Mistake(PORTED, "fourth-root", edit=("math.sqrt(q.shape[-1])", "q.shape[-1] ** 0.25"), title="half of the division",
            says="You divide by d^(1/4) in all. That is the share of one side: divide queries **and** keys by it, or "
                 "the scores by √d."),
    Mistake(PORTED, "scale-stored", edit=("    def weights",
            "        self.register_buffer('scale', torch.tensor(True))\n\n    def weights"),
            title="the scale stored with the weights",
            says="You keep the scale, or the switch for it, among the weights (a parameter or a buffer). The file of "
                 "the trained model holds three matrices and nothing else, so it no longer loads. Whether to divide "
                 "belongs to the code."),
    Alias(PORTED, "scale-learned", of="scale-stored", edit=("    def weights",
          "        self.scale = torch.nn.Parameter(torch.tensor(float(d)))\n\n    def weights")),
    Mistake(PORTED, "softmax-of-queries", edit=("dim=-1)", "dim=-2)"), title="softmax over the queries",
            says="The softmax runs over the queries now. Each row, one query, shares out its weight among the keys: "
                 "the last axis was right."),
    Mistake(PORTED, "renamed", edit=(("self.to_queries = ", "self.q = "), ("self.to_queries(x)", "self.q(x)")),
            title="a matrix renamed",
            says="You renamed a matrix. The file of the trained model knows it by the name to_queries, and loads it "
                 "under no other."),
    Accepted(PORTED, "switch-on", edit=(("def __init__(self, e, d):", "def __init__(self, e, d, scale=True):"),
         ("super().__init__()", "super().__init__()\n        self.scale = scale"),
         ("scores = q @ k.mT / math.sqrt(q.shape[-1])",
          "scores = q @ k.mT\n        if self.scale:\n            scores = scores / math.sqrt(q.shape[-1])"))),
    Accepted(PORTED, "both-sides", edit=("q @ k.mT / math.sqrt(q.shape[-1])",
         "(q / q.shape[-1] ** 0.25) @ (k / q.shape[-1] ** 0.25).mT")),
    Accepted(PORTED, "width-kept", edit=(("super().__init__()", "super().__init__()\n        self.d = d"),
         ("math.sqrt(q.shape[-1])", "self.d ** 0.5"))),
    Accepted(PORTED, "ready-made", edit=("return self.weights(x) @ self.to_values(x)",
         "return torch.nn.functional.scaled_dot_product_attention(\n"
         "            self.to_queries(x), self.to_keys(x), self.to_values(x))")),
    EquivalentMutant(PORTED, "q", "k", why="queries and keys are equally wide"),
]
