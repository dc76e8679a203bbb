"""What students get wrong in lesson 1, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

FILMS, RAW, SOFTMAX, SELF, HURRIED, GAP = (
    "masked_squared_error",
    "raw_weights",
    "row_softmax",
    "self_attention",
    "hurried_attention",
    "equivariance_gap",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ------------------------------------------------------------------------------- masked_squared_error
    Mistake(FILMS, "unseen-too", edit=("errors[seen]", "errors"), title="averaged over unseen ratings too",
            says="Your mean runs over the whole table. The cells that nobody rated hold numbers without a meaning, and "
                 "they pull your vectors towards them. Use `seen` to keep the known ones only."),
    Mistake(FILMS, "divided-by-all", edit=("(errors[seen] ** 2).mean()", "(errors ** 2 * seen).mean()"),
            title="divided by the number of all ratings",
            says="The unseen errors are set to zero, and that is right; but the sum is then divided by the number of "
                 "all cells. Divide by how many were seen."),
    Mistake(FILMS, "sum", edit=(".mean()", ".sum()"), title="a sum where the mean is asked",
            says="You add up the squared errors and do not divide. The mean does not grow with the number of ratings."),
    Mistake(FILMS, "not-squared", edit=("errors[seen] ** 2", "errors[seen].abs()"),
            title="absolute errors, not squared",
            says="You average the sizes of the errors; the exercise asks for their squares."),
    Mistake(FILMS, "root", edit=("(errors[seen] ** 2).mean()", "(errors[seen] ** 2).mean().sqrt()"),
            title="the root of the mean squared error",
            says="Your number is the square root of the one asked for. The mean of the squares is the loss, as it is."),
    Mistake(FILMS, "unseen-only", edit=("errors[seen]", "errors[~seen]"), title="averaged over the unseen ratings",
            says="The mask is used the wrong way round: you average exactly the cells that nobody rated."),
    Mistake(FILMS, "in-place", edit=("errors = users @ films.T - ratings", "errors = ratings.sub_(users @ films.T)"),
            title="the ratings changed in place",
            says="Your code writes its result into the caller's `ratings`: after one step of training the data are "
                 "gone. Methods whose names end in _ change their tensor."),
    Mistake(FILMS, "zero-is-unseen", edit=("errors[seen]", "errors[ratings != 0]"),
            title="a rating of 0 taken for none",
            says="You look at the ratings to find out which of them exist: where a rating is not 0. A rating may well "
                 "be 0, and a cell that nobody rated may hold any number. `seen` says which are known."),
    Mistake(FILMS, "zero-is-unseen-too", edit=("errors[seen]", "errors[seen & (ratings != 0)]"),
            title="ratings of 0 left out",
            says="You leave out ratings that are 0, though `seen` says that they are known. 0 is a rating like any "
                 "other."),
    Mistake(FILMS, "per-viewer", instead="""
        errors = (users @ films.T - ratings) ** 2 * seen
        return (errors.sum(dim=1) / seen.sum(dim=1)).mean()
    """, title="a mean of the viewers' means",
            says="You average over each viewer's films first, and then over the viewers. A viewer with one rating "
                 "then counts as much as one with a hundred, and one with none makes 0/0. All known ratings count "
                 "alike: one mean over all of them."),
    Mistake(FILMS, "per-film", instead="""
        errors = (users @ films.T - ratings) ** 2 * seen
        return (errors.sum(dim=0) / seen.sum(dim=0)).mean()
    """, title="a mean of the films' means",
            says="You average over each film's viewers first, and then over the films. A film with one rating then "
                 "counts as much as one with a hundred, and one with none makes 0/0. All known ratings count alike: "
                 "one mean over all of them."),
    Mistake(FILMS, "absolute-sum", edit=("(errors[seen] ** 2).mean()", "errors[seen].abs().sum()"),
            title="a sum of absolute errors",
            says="Two things. You add up the errors' sizes where their squares are asked, and the sum is not divided "
                 "by the number of known ratings."),
    Mistake(FILMS, "squared-mean", edit=("(errors[seen] ** 2).mean()", "errors[seen].mean() ** 2"),
            title="the square of the mean",
            says="You average the errors and then square. Errors of opposite signs cancel that way: square each one "
                 "before the mean."),
    Mistake(FILMS, "half", edit=("(errors[seen] ** 2).mean()", "(errors[seen] ** 2).mean() / 2"),
            title="half of the mean squared error",
            says="Your number is half of the one asked for. Many books put ½ in front of a square because it cancels "
                 "in the derivative; the loss here has none."),
    Mistake(FILMS, "ratings-masked", instead="""
        errors = users @ films.T - ratings * seen
        return (errors ** 2).sum() / seen.sum()
    """, title="only the ratings are masked",
            says="You set the unknown ratings to 0 and keep the predictions that stand beside them, so each unknown "
                 "cell counts as if its rating were 0. The *errors* of the unknown cells have to go."),
    Mistake(FILMS, "predictions-masked", instead="""
        errors = (users @ films.T) * seen - ratings
        return (errors ** 2).sum() / seen.sum()
    """, title="only the predictions are masked",
            says="You set the predictions for unknown cells to 0 and keep the numbers that stand beside them. The "
                 "*errors* of the unknown cells have to go."),
    Mistake(FILMS, "by-viewers", edit=("(errors[seen] ** 2).mean()", "(errors[seen] ** 2).sum() / len(users)"),
            title="divided by the number of viewers",
            says="You divide the sum by the number of viewers. The mean is over known ratings: divide by how many of "
                 "them there are."),
    Mistake(FILMS, "users-detached", edit=("users @ films.T", "users.detach() @ films.T"),
            title="no gradient for the users",
            says="Your number is right, and users get no gradient (detach, .data or no_grad): only the films would "
                 "learn. Both are parameters."),
    Mistake(FILMS, "films-detached", edit=("users @ films.T", "users @ films.detach().T"),
            title="no gradient for the films",
            says="Your number is right, and films get no gradient (detach, .data or no_grad): only the users would "
                 "learn. Both are parameters."),
    Mistake(FILMS, "kept-apart", edit=("(errors[seen] ** 2).mean()", "errors[seen] ** 2"),
            title="the squares, without their mean",
            says="You return the squared errors one by one. A loss is a single number: their mean."),
    Mistake(FILMS, "detached", edit=("(errors[seen] ** 2).mean()", "(errors[seen] ** 2).mean().detach()"),
            title="a loss that is cut off from its parameters",
            says="Your number is right, and no gradient flows from it back to users and films (detach, .data, item() "
                 "or no_grad), so nothing could be learned. Stay with tensors from start to end."),
    # a tensor made anew from the number asks for a gradient, and is cut off all the same
    Mistake(FILMS, "made-anew", edit=("return (errors[seen] ** 2).mean()",
            "loss = (errors[seen] ** 2).mean().item()\n    return torch.tensor(loss, requires_grad=True)"),
            title="a new tensor made of the loss",
            says="Your number is right, and the tensor that holds it is a new one: it does not know that it came from "
                 "users and films, so no gradient reaches them. Return what your computation gave, without item(), "
                 "float() or torch.tensor()."),
    Accepted(FILMS, "multiplied-by-mask", instead="""
        errors = (users @ films.T - ratings) * seen
        return (errors ** 2).sum() / seen.sum()
    """),
    Accepted(FILMS, "loops", instead="""
        total, count = 0.0, 0
        for u in range(users.shape[0]):
            for f in range(films.shape[0]):
                if seen[u, f]:
                    total = total + ((users[u] * films[f]).sum() - ratings[u, f]) ** 2
                    count += 1
        return total / count
    """),
    Accepted(FILMS, "mse-loss", instead="""
        predicted = torch.einsum("uk,fk->uf", users, films)
        return torch.nn.functional.mse_loss(predicted[seen], ratings[seen])
    """),
    Accepted(FILMS, "difference-turned-round", edit=("users @ films.T - ratings", "ratings - users @ films.T")),
    Accepted(FILMS, "masked-select", instead="""
        u, f = seen.nonzero(as_tuple=True)
        return ((users[u] * films[f]).sum(-1) - ratings[u, f]).pow(2).sum() / len(u)
    """),
    EquivalentMutant(FILMS, "users @ films.T - ratings", "ratings - users @ films.T", why="the difference is squared"),
    EquivalentMutant(FILMS, "return (errors[seen] ** 2).mean()", "return (errors[seen] ** 2).mean().mT",
          why="a single number has no axes to exchange"),
    EquivalentMutant(FILMS, "return (errors[seen] ** 2).mean()", "return (errors[seen] ** 2).mean().squeeze()",
          why="a single number has no axis to lose"),
    # ---------------------------------------------------------------------------------------- raw_weights
    Mistake(RAW, "width-products", edit=("x @ x.transpose(1, 2)", "x.transpose(1, 2) @ x"),
            title="products over the positions, not over the width",
            says="Your result is (b, e, e): it compares the components of the vectors with each other, summed over "
                 "positions. We want positions compared, summed over the width: the transposed one goes on the right."),
    Mistake(RAW, "softmaxed", edit=("x @ x.transpose(1, 2)", "torch.softmax(x @ x.transpose(1, 2), dim=-1)"),
            title="softmax already applied",
            says="Your rows are positive and add up to 1: these are the finished weights. The raw ones are the plain "
                 "dot products; softmax is the next exercise."),
    Mistake(RAW, "scaled", edit=("x @ x.transpose(1, 2)", "x @ x.transpose(1, 2) / x.shape[-1] ** 0.5"),
            title="divided by the root of the width",
            says="You divide by √e. That is a good idea whose time is lesson 3; here the raw weights are the plain dot "
                 "products."),
    Mistake(RAW, "cosine", edit=("return x @", "x = x / x.norm(dim=-1, keepdim=True)\n    return x @"),
            title="cosines instead of dot products",
            says="Your diagonal is 1: you divide by the lengths of the vectors, which gives cosines. A dot product "
                 "keeps the lengths; a long vector counts for more."),
    Mistake(RAW, "cosine-in-place", edit=("return x @", "x /= x.norm(dim=-1, keepdim=True)\n    return x @"),
            title="the input normalised in place",
            says="`x /= ...` changes the caller's own tensor, and gives cosines where dot products are asked. Leave x "
                 "as it came."),
    Mistake(RAW, "entrywise", edit=("x @ x.transpose(1, 2)", "x * x"), title="an entrywise product",
            says="`*` multiplies entry by entry and gives (b, t, e). Dot products between all pairs of rows are a "
                 "matrix product: `@`."),
    Mistake(RAW, "reshaped", edit=("x.transpose(1, 2)", "x.reshape(x.shape[0], x.shape[2], x.shape[1])"),
            title="the axes exchanged by a reshape",
            says="`reshape` and `view` keep the numbers in their order and only cut them into rows of another length, "
                 "so components of different positions get mixed. Exchanging two axes is a transpose."),
    Mistake(RAW, "one-triangle", edit=("x @ x.transpose(1, 2)", "torch.tril(x @ x.transpose(1, 2))"),
            title="one triangle only",
            says="Your entries are right up to the diagonal, and 0 beyond it. The matrix is its own mirror image, and "
                 "both halves of it are asked for."),
    # the mirror image of the same
    Mistake(RAW, "other-triangle", edit=("x @ x.transpose(1, 2)", "torch.triu(x @ x.transpose(1, 2))"),
            title="one triangle only (the upper one)",
            says="Your entries are right from the diagonal on, and 0 before it. The matrix is its own mirror image, "
                 "and both halves of it are asked for."),
    Mistake(RAW, "no-diagonal",
            edit=("x @ x.transpose(1, 2)", "(x @ x.transpose(1, 2)) * (1 - torch.eye(x.shape[1], device=x.device))"),
            title="nothing on the diagonal",
            says="Your diagonal is 0. A vector has a product with itself too, the square of its length; it belongs to "
                 "the raw weights."),
    Mistake(RAW, "one-sentence-for-all",
            edit=("return x @ x.transpose(1, 2)", "return (x[:1] @ x[:1].transpose(1, 2)).expand(len(x), -1, -1)"),
            title="the first sentence for all of them",
            says="You compute the products of the first sentence and hand them out for the whole batch. Each sentence "
                 "gets a matrix of its own."),
    Mistake(RAW, "across-the-batch",
            edit=("x @ x.transpose(1, 2)", "x @ x[-1].T"), title="every sentence compared with one",
            says="Right for the last sentence of the batch only: all others are compared with that one. Each sentence "
                 "is compared with itself."),
    Mistake(RAW, "distances", edit=("x @ x.transpose(1, 2)", "torch.cdist(x, x)"), title="distances",
            says="You return how far the vectors lie apart. A dot product says how well they agree: it is large where "
                 "a distance is small."),
    Mistake(RAW, "sizes", edit=("x @ x.transpose(1, 2)", "(x @ x.transpose(1, 2)).abs()"),
            title="products without their signs",
            says="You take the signs away. A negative product says that two vectors point apart, and raw weights may "
                 "well be negative."),
    Mistake(RAW, "squared-distances", edit=("x @ x.transpose(1, 2)", "-torch.cdist(x, x).square()"),
            title="negative squared distances",
            says="You return how far the vectors lie apart, squared and negative. The raw weights are the plain dot "
                 "products, in which long vectors count for more."),
    Mistake(RAW, "detached", edit=("x @ x.transpose(1, 2)", "(x @ x.transpose(1, 2)).detach()"),
            title="the products cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to x (detach, .data, no_grad, item() "
                 "or NumPy), so nothing that makes these vectors could learn."),
    Accepted(RAW, "einsum", instead="return torch.einsum('kie,kje->kij', x, x)"),
    Accepted(RAW, "bmm", instead="return torch.bmm(x, x.mT)"),
    Accepted(RAW, "loops", instead="""
        b, t, e = x.shape
        raw = torch.zeros(b, t, t, dtype=x.dtype, device=x.device)
        for k in range(b):
            for i in range(t):
                for j in range(t):
                    raw[k, i, j] = (x[k, i] * x[k, j]).sum()
        return raw
    """),
    Accepted(RAW, "broadcast", instead="return (x.unsqueeze(2) * x.unsqueeze(1)).sum(-1)"),
    Accepted(RAW, "matmul-permuted", instead="return torch.matmul(x, x.permute(0, 2, 1))"),
    EquivalentMutant(RAW, "return x @ x.transpose(1, 2)", "return (x @ x.transpose(1, 2)).mT",
          why="the matrix is its own mirror image"),
    # ---------------------------------------------------------------------------------------- row_softmax
    Mistake(SOFTMAX, "columns", edit=(("amax(dim=-1,", "amax(dim=-2,"), ("powers.sum(dim=-1,", "powers.sum(dim=-2,")),
            title="softmax over the columns",
            says="Your columns add up to 1; the rows have to. Row i holds the weights that make output i, so the sum "
                 "runs over the last axis."),
    Mistake(SOFTMAX, "batch", edit=(("amax(dim=-1,", "amax(dim=0,"), ("powers.sum(dim=-1,", "powers.sum(dim=0,")),
            title="softmax over the batch",
            says="You divide across the batch, so the sentences compete with each other. Each row of each sentence has "
                 "to sum to 1 by itself: the last axis."),
    Mistake(SOFTMAX, "no-maximum", edit=("scores - scores.amax(dim=-1, keepdim=True)", "scores"),
            title="exp without subtracting the maximum",
            says="Your softmax is right for small scores and breaks for large ones: exp(89) is infinite in 32 bits, "
                 "and ∞/∞ is NaN; exp(−10000) is 0, and so is 0/0. Take the largest score of each row off first; the "
                 "result does not change."),
    Mistake(SOFTMAX, "one-maximum", edit=("scores.amax(dim=-1, keepdim=True)", "scores.max()"),
            title="one maximum for the whole tensor",
            says="You subtract the largest score of all. A row that lies far below it gets exp of a huge negative "
                 "number, zero everywhere, and then 0/0. Each row needs its own maximum."),
    Mistake(SOFTMAX, "no-exp", edit=("shifted.exp()", "scores"), title="divided by the sum, without exp",
            says="Your rows add up to 1, but the numbers are not positive: the exponential is missing. Dividing by the "
                 "sum alone can even divide by 0."),
    Mistake(SOFTMAX, "not-normalised", edit=(" / powers.sum(dim=-1, keepdim=True)", ""),
            title="exponentials without the division",
            says="Your numbers are positive, but a row does not add up to 1. Divide each row by its own sum."),
    Mistake(SOFTMAX, "in-place",
            edit=("scores - scores.amax(dim=-1, keepdim=True)", "scores.sub_(scores.amax(dim=-1, keepdim=True))"),
            title="the scores changed in place",
            says="Your numbers are right, but the caller's scores are not what they were: a method whose name ends in "
                 "_ (or -=) writes into its tensor. Make a new one."),
    Mistake(SOFTMAX, "axis-lost", edit=("powers.sum(dim=-1, keepdim=True)", "powers.sum(dim=-1)"),
            title="the sum lost its axis",
            says="`sum(-1)` turns (b, t, s) into (b, t), and that does not line up with the rows. Here it raises; on a "
                 "square matrix it would silently divide the columns instead. Keep the axis: `keepdim=True`."),
    Mistake(SOFTMAX, "mean-off",
            edit=("scores.amax(dim=-1, keepdim=True)", "scores.mean(dim=-1, keepdim=True)"),
            title="another number than the largest taken off",
            says="Your softmax is right as long as the scores of a row lie close together. Where one score lies far "
                 "above the number that you take off, its exponential is infinite all the same. Only with the "
                 "*largest* score of the row is every exponent 0 or less."),
    # whatever is taken off of a mixed row that is not its largest score, overflows in the same places
    Alias(SOFTMAX, "smallest-off", of="mean-off", edit=("scores.amax(", "scores.amin(")),
    Alias(SOFTMAX, "first-off", of="mean-off", edit=("scores.amax(dim=-1, keepdim=True)", "scores[..., :1]")),
    Mistake(SOFTMAX, "largest-size-off", edit=("scores.amax(", "scores.abs().amax("),
            title="the largest absolute value taken off",
            says="You take off the largest score by size, without its sign. A row whose scores are all far below 0 "
                 "then gets exponents twice as far below it, every power vanishes, and 0/0 is not a number."),
    Mistake(SOFTMAX, "epsilon-instead",
            edit=(("scores - scores.amax(dim=-1, keepdim=True)", "scores"),
                  ("/ powers.sum(dim=-1, keepdim=True)", "/ (powers.sum(dim=-1, keepdim=True) + 1e-9)")),
            title="an epsilon instead of the maximum",
            says="A small number in the denominator keeps 0/0 away, and nothing else: large scores still overflow, "
                 "and rows of very negative ones come out as zeros. Take the largest score of each row off first."),
    Mistake(SOFTMAX, "clamped", edit=("scores - scores.amax(dim=-1, keepdim=True)", "scores.clamp(-50, 50)"),
            title="scores cut off at a limit",
            says="You cut the scores off at a limit, so that all scores beyond it count the same. Taking the largest "
                 "score of each row off keeps their differences, which is all that a softmax looks at."),
    Mistake(SOFTMAX, "logarithms", edit=("powers / powers.sum(dim=-1, keepdim=True)",
            "shifted - powers.sum(dim=-1, keepdim=True).log()"), title="the logarithms of the shares",
            says="You return the logarithms of the shares. They are never positive; the shares themselves are asked "
                 "for."),
    Mistake(SOFTMAX, "applied-twice", edit=("return powers / powers.sum(dim=-1, keepdim=True)",
            "once = powers / powers.sum(dim=-1, keepdim=True)\n    return once.exp() / once.exp().sum(-1, True)"),
            title="softmax applied twice",
            says="Your shares go through the exponential and the division once more, which makes every row nearly "
                 "even. Once is enough."),
    Mistake(SOFTMAX, "powers-of-two", edit=("shifted.exp()", "2**shifted"), title="powers of 2",
            says="You raise 2 to the scores. Your rows add up to 1, but a softmax uses powers of e: `exp`."),
    Mistake(SOFTMAX, "squares", edit=("shifted.exp()", "scores**2"), title="squares instead of exponentials",
            says="You make the scores positive by squaring them, so a very negative score counts as much as a very "
                 "positive one. The exponential keeps their order."),
    Mistake(SOFTMAX, "whole-matrix", edit=("powers.sum(dim=-1, keepdim=True)", "powers.sum()"),
            title="divided by the sum of the whole tensor",
            says="You divide by the sum of all powers there are, so everything together adds up to 1. Each row has to, "
                 "by itself."),
    Mistake(SOFTMAX, "sign", edit=("scores - scores.amax(dim=-1,", "-scores - (-scores).amax(dim=-1,"),
            title="the sign turned round",
            says="Your largest scores get the smallest shares: somewhere the sign of the scores is turned round."),
    Mistake(SOFTMAX, "divided-by-the-largest", edit=("scores - scores.amax", "scores / scores.amax"),
            title="divided by the largest score",
            says="You divide each row by its largest score. Taking it *off* changes nothing in a softmax; dividing "
                 "changes how far the scores lie apart."),
    Mistake(SOFTMAX, "unshifted-sum", edit=("/ powers.sum(", "/ scores.exp().sum("),
            title="two kinds of exponentials",
            says="Above the line stand exponentials of the shifted scores, below it a sum of exponentials of the "
                 "scores as they came. Both have to be shifted alike, or nothing cancels."),
    Mistake(SOFTMAX, "sigmoid", edit=("powers / powers.sum(dim=-1, keepdim=True)", "1 / (1 + (-scores).exp())"),
            title="a sigmoid",
            says="Your numbers lie between 0 and 1, each by itself, as those of a sigmoid do. In a softmax the scores "
                 "of a row compete: its shares add up to 1."),
    Mistake(SOFTMAX, "scaled", edit=("shifted.exp()", "(shifted / scores.shape[-1] ** 0.5).exp()"),
            title="the scores divided by a root",
            says="You divide the scores before the exponential, by the root of how many there are in a row. A softmax "
                 "takes them as they are."),
    Mistake(SOFTMAX, "nan-overwritten",
            edit=(("scores - scores.amax(dim=-1, keepdim=True)", "scores"),
                  ("return powers / powers.sum(dim=-1, keepdim=True)",
                   "return (powers / powers.sum(dim=-1, keepdim=True)).nan_to_num()")),
            title="NaN overwritten",
            says="You replace the NaN that large scores make, and what stands there then is no share of anything: the "
                 "row does not add up to 1. Keep it from arising: take the largest score of each row off first."),
    Mistake(SOFTMAX, "epsilon-that-shows",
            edit=("/ powers.sum(dim=-1, keepdim=True)", "/ (powers.sum(dim=-1, keepdim=True) + 0.01)"),
            title="an epsilon that shows",
            says="What you add to the sum is large enough to change the result: your rows add up to a little less than "
                 "1. Once the largest score is taken off, the sum is at least 1, and needs nothing added."),
    Mistake(SOFTMAX, "detached",
            edit=("return powers / powers.sum(dim=-1, keepdim=True)",
                  "return (powers / powers.sum(dim=-1, keepdim=True)).detach()"),
            title="the shares cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to the scores (detach, .data, no_grad, "
                 "item() or NumPy), so nothing that makes these scores could learn."),
    Mistake(SOFTMAX, "sum-detached",
            edit=("/ powers.sum(dim=-1, keepdim=True)", "/ powers.sum(dim=-1, keepdim=True).detach()"),
            title="the sum cut off from the graph",
            says="Your numbers are right, and their gradients are not: what you divide by is cut off from the graph, "
                 "so raising one score would not lower the other shares."),
    Accepted(SOFTMAX, "torch-functions", instead="""
        highest = torch.max(scores, dim=-1, keepdim=True).values
        return torch.exp(scores - highest) / torch.sum(torch.exp(scores - highest), -1, True)
    """),
    Accepted(SOFTMAX, "detached-maximum", instead="""
        e = (scores - scores.detach().max(-1, keepdim=True)[0]).exp()
        return e / e.sum(-1).unsqueeze(-1)
    """),
    Accepted(SOFTMAX, "row-by-row", instead="""
        rows = []
        for row in scores.reshape(-1, scores.shape[-1]):
            powers = torch.exp(row - row.max())
            rows.append(powers / powers.sum())
        return torch.stack(rows).reshape(scores.shape)
    """),
    Accepted(SOFTMAX, "in-double-precision", instead="""
        z = scores.double() - scores.double().max(dim=-1, keepdim=True).values
        return (z.exp() / z.exp().sum(-1, keepdim=True)).to(scores.dtype)
    """),
    EquivalentMutant(SOFTMAX, "shifted.exp()", "shifted.exp_()", why="it writes into a tensor of its own making"),
    Shortcut(SOFTMAX, "library", instead="return torch.softmax(scores, dim=-1)"),
    Shortcut(SOFTMAX, "logsumexp", instead="return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))"),
    Shortcut(SOFTMAX, "library-by-name", instead='return getattr(torch, "softmax")(scores, -1)'),
    # ------------------------------------------------------------------------------------- self_attention
    Mistake(SELF, "no-softmax", edit=("torch.softmax(raw, dim=-1)", "raw"), title="no softmax",
            says="You average with the raw weights: they may be negative and do not add up to 1, so the outputs are no "
                 "averages and grow with the cube of the inputs."),
    Mistake(SELF, "columns", edit=("dim=-1", "dim=1"), title="softmax over the columns, or the weights transposed",
            says="In your weights the columns add up to 1, not the rows: each input hands out one unit of weight, and "
                 "an output can get more or less than that. Either the softmax runs over the wrong axis (the last one "
                 "is right), or the finished weights were transposed before the product."),
    Mistake(SELF, "batch", edit=("dim=-1", "dim=0"), title="softmax over the batch",
            says="The softmax runs over axis 0, the batch: sentences compete with each other. Each row of each "
                 "sentence sums to 1 by itself."),
    # x_i·x_j = x_j·x_i: turning the finished weights round and normalising the columns are the same thing here
    Alias(SELF, "weights-transposed", of="columns", edit=("weights @ x ", "weights.transpose(1, 2) @ x ")),
    Mistake(SELF, "scaled", edit=("x @ x.transpose(1, 2) ", "x @ x.transpose(1, 2) / x.shape[-1] ** 0.5 "),
            title="divided by the root of the width",
            says="You divide the scores by √e. That is lesson 3's idea; self-attention here is softmax(XXᵀ)X, plain."),
    Mistake(SELF, "weights-returned", edit=("return weights @ x", "return weights"),
            title="the weights returned, not the average",
            says="You return the weights, (b, t, t). One product is missing: the average of the inputs with these "
                 "weights."),
    Mistake(SELF, "in-place", edit=("return weights @ x", "return x.copy_(weights @ x)"),
            title="the input changed in place",
            says="Your outputs are right, and they are written over the caller's input. Return a new tensor and leave "
                 "x as it came."),
    Mistake(SELF, "softmax-twice", edit=("torch.softmax(raw, dim=-1) ", "torch.softmax(raw.softmax(dim=-1), dim=-1) "),
            title="softmax applied twice",
            says="Your weights went through the softmax twice, which makes every row nearly even: each output is close "
                 "to the plain mean. Once is enough."),
    Mistake(SELF, "one-sentence", edit=("return weights @ x ", "return weights[-1] @ x "),
            title="one sentence's weights for all of them",
            says="You use the weights of the last sentence for the whole batch. Each sentence is averaged with weights "
                 "of its own."),
    # of the first sentence instead
    Mistake(SELF, "first-sentence", edit=("return weights @ x ", "return weights[0] @ x "),
            title="one sentence's weights for all of them (the first one's)",
            says="You use the weights of the first sentence for the whole batch. Each sentence is averaged with "
                 "weights of its own."),
    Mistake(SELF, "batch-flattened", instead="""
        b, t, e = x.shape
        flat = x.reshape(b * t, e)
        return (torch.softmax(flat @ flat.T, dim=-1) @ flat).reshape(b, t, e)
    """, title="positions attend to other sentences",
            says="Batch and positions are one long axis in your code, so every position attends to the positions of "
                 "all sentences. Each sentence is by itself: its weights are (t, t)."),
    Mistake(SELF, "reshaped", edit=("x.transpose(1, 2) ", "x.reshape(x.shape[0], x.shape[2], x.shape[1]) "),
            title="the axes exchanged by a reshape",
            says="`reshape` and `view` keep the numbers in their order and only cut them into rows of another length, "
                 "so components of different positions get mixed. Exchanging two axes is a transpose."),
    Mistake(SELF, "residual", edit=("return weights @ x ", "return x + weights @ x "), title="the input added",
            says="You add x to the average. Later lessons do so, around the attention; self-attention itself is the "
                 "average and nothing else."),
    Mistake(SELF, "cosines",
            edit=("raw = x @ x.transpose(1, 2) ",
                  "n = x / x.norm(dim=-1, keepdim=True)\n    raw = n @ n.transpose(1, 2) "),
            title="weights made of cosines",
            says="Your weights are made of cosines, products of vectors that were brought to length 1. The raw weights "
                 "are plain dot products: a long vector counts for more."),
    Mistake(SELF, "without-itself",
            edit=("weights = torch.softmax(raw, dim=-1) ",
                  "eye = torch.eye(x.shape[1], device=x.device, dtype=torch.bool)\n    "
                  "weights = torch.softmax(raw.masked_fill(eye, -1e9), dim=-1) "),
            title="no position attends to itself",
            says="Your positions get no weight from themselves: the diagonal is taken out. It belongs in; a word may "
                 "well look at itself."),
    Mistake(SELF, "scaled-by-t", edit=("torch.softmax(raw, dim=-1) ", "raw / x.shape[1] "),
            title="divided by the number of positions, without a softmax",
            says="You divide the raw weights by t. They may still be negative and do not add up to 1: the softmax "
                 "makes shares of them."),
    Mistake(SELF, "over-the-width", instead="return x @ torch.softmax(x.transpose(1, 2) @ x, dim=-1)",
            title="components attend to each other, not positions",
            says="Your weights are (b, e, e): they compare the components of the vectors. Positions are compared here, "
                 "with weights (b, t, t) that stand on the left of the second product."),
    Mistake(SELF, "causal",
            edit=("torch.softmax(raw, dim=-1) ",
                  "torch.softmax(raw.masked_fill(torch.ones_like(raw).triu(1).bool(), -1e9), dim=-1) "),
            title="only earlier positions are looked at",
            says="Your positions see themselves and the ones before, and none after. A mask of that kind comes in "
                 "lesson 5; here every position sees all of them."),
    Mistake(SELF, "divided-by-e", edit=("x @ x.transpose(1, 2) ", "x @ x.transpose(1, 2) / x.shape[-1] "),
            title="divided by the width",
            says="You divide the raw weights by e. Self-attention here is softmax(XXᵀ)X, plain."),
    Mistake(SELF, "whole-matrix",
            edit=("torch.softmax(raw, dim=-1) ", "torch.softmax(raw.flatten(1), dim=-1).reshape(raw.shape) "),
            title="one softmax for the whole matrix",
            says="All weights of a sentence together add up to 1 in your code. Each *row* has to: an output is an "
                 "average of its own."),
    Mistake(SELF, "logarithms", edit=("torch.softmax(raw, dim=-1) ", "torch.log_softmax(raw, dim=-1) "),
            title="logarithms of the weights",
            says="You sum with the logarithms of the weights, which are never positive. `log_softmax` is for losses; "
                 "an average takes the weights themselves."),
    Mistake(SELF, "winner-takes-all",
            edit=("weights = torch.softmax(raw, dim=-1) ",
                  "weights = (raw == raw.amax(dim=-1, keepdim=True)).to(x.dtype) "), title="the best match alone",
            says="Each of your outputs is the one input that matches best. Every input has its share in an average."),
    Mistake(SELF, "plain-mean", edit=("weights @ x ", "x.mean(dim=1, keepdim=True).expand_as(x) "),
            title="the plain mean",
            says="Every output of yours is the plain mean of the inputs, whatever they are. The weights come from the "
                 "dot products."),
    Mistake(SELF, "detached", edit=("return weights @ x ", "return (weights @ x).detach() "),
            title="the outputs cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to x (detach, .data, no_grad, item() or "
                 "NumPy), so nothing that makes these vectors could learn."),
    Mistake(SELF, "weights-detached", edit=("return weights @ x ", "return weights.detach() @ x "),
            title="the weights cut off from the graph",
            says="Your numbers are right, and their gradients are not: the graph is cut at the weights (detach, .data, "
                 "no_grad, item() or NumPy), so whatever makes the vectors never learns who should look where."),
    Accepted(SELF, "scaled-dot-product",
         instead="return torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1.0)"),
    Accepted(SELF, "einsum", instead="""
        a = torch.nn.functional.softmax(torch.einsum("bie,bje->bij", x, x), -1)
        return torch.einsum("bij,bje->bie", a, x)
    """),
    Accepted(SELF, "sentence-by-sentence", instead="""
        outputs = []
        for sentence in x:
            weights = torch.exp(sentence @ sentence.T)
            outputs.append(weights / weights.sum(1, keepdim=True) @ sentence)
        return torch.stack(outputs)
    """),
    Accepted(SELF, "turned-round", instead="""
        xt = x.mT
        return (xt @ torch.softmax(x @ xt, dim=-1).mT).mT
    """),
    # ---------------------------------------------------------------------------------- hurried_attention
    Mistake(HURRIED, "unchanged", edit=("dim=-1", "dim=1"), title="softmax down the columns",
            says="It is still the columns of your weights that add up to 1: each input hands out one unit of weight, "
                 "and an output may get more of it, or less. Row i makes output i."),
    Mistake(HURRIED, "rows-divided", edit=("torch.softmax(raw, dim=-1)",
            "torch.softmax(raw, dim=1)\n    weights = weights / weights.sum(dim=-1, keepdim=True)"),
            title="the rows divided afterwards",
            says="Your rows add up to 1 now, and the outputs are back in the hull, but the numbers are wrong: the "
                 "columns were normalised first, and that stays in the weights. The cause is the softmax, not what "
                 "comes after it."),
    Mistake(HURRIED, "outputs-divided", edit=(("dim=-1", "dim=1"), ("return weights @ x, weights",
            "return weights @ x / weights.sum(dim=-1, keepdim=True), weights")), title="the outputs divided afterwards",
            says="You divide each output by the sum of its weights. That brings it back into the hull, to a wrong "
                 "place: the columns were normalised first. The cause is the softmax, not what comes after it."),
    Mistake(HURRIED, "softmax-again", edit=("torch.softmax(raw, dim=-1)",
            "torch.softmax(torch.softmax(raw, dim=1), dim=-1)"), title="a second softmax on top",
            says="You take a second softmax on top of the first, along the other axis. Its rows add up to 1, and they "
                 "are nearly even, because what goes into it lies between 0 and 1. One softmax, along the right axis, "
                 "is enough."),
    Mistake(HURRIED, "product-turned", edit=(("dim=-1", "dim=1"), ("weights @ x, weights",
            "weights.transpose(1, 2) @ x, weights")), title="right outputs beside transposed weights",
            says="Your outputs are right, and the weights that you return are the transposed ones: their columns add "
                 "up to 1, not their rows. Output i has to be made with row i of what you return."),
    # the right weights, returned the other way round: the same numbers, since the raw weights are symmetric
    Alias(HURRIED, "weights-turned", of="product-turned", edit=("weights @ x, weights", "weights @ x, weights.mT")),
    Mistake(HURRIED, "batch", edit=("dim=-1", "dim=0"), title="softmax over the batch",
            says="The softmax runs over axis 0 now, the batch: sentences compete with each other. Each row of each "
                 "sentence sums to 1 by itself."),
    Mistake(HURRIED, "both-axes", edit=("torch.softmax(raw, dim=-1)",
            "torch.softmax(raw.flatten(1), dim=-1).view_as(raw)"), title="softmax over the whole matrix",
            says="Your softmax runs over a whole matrix, so that all t² weights of a sentence add up to 1. Each row "
                 "has to, by itself."),
    Mistake(HURRIED, "raw-turned", edit=(("x @ x.transpose(1, 2)", "x.transpose(1, 2) @ x"),
            ("weights @ x, weights", "x @ weights, weights")), title="components compared, not positions",
            says="Your raw weights are (b, e, e): components are compared over positions. The product was right as it "
                 "stood; look at the line after it."),
    Mistake(HURRIED, "scaled", edit=("x @ x.transpose(1, 2)", "x @ x.transpose(1, 2) / x.shape[-1] ** 0.5"),
            title="divided by the root of the width",
            says="You divide the scores by √e. That is lesson 3's idea, and not what is wrong here: self-attention in "
                 "this lesson is softmax(XXᵀ)X."),
    Mistake(HURRIED, "outputs-alone", edit=("return weights @ x, weights", "return weights @ x"),
            title="the weights no longer returned",
            says="You return the outputs alone. Two things are asked for: the outputs and the weights."),
    Mistake(HURRIED, "exchanged", edit=("weights @ x, weights", "weights, weights @ x"), title="returned in the other "
                                                                                               "order",
            says="You return the weights first. The outputs come first, then the weights."),
    Mistake(HURRIED, "detached", edit=("weights @ x, weights", "(weights @ x).detach(), weights.detach()"),
            title="cut off from the graph",
            says="Your numbers are right, and no gradient flows from them back to x (detach, .data, no_grad, item() or "
                 "NumPy)."),
    Mistake(HURRIED, "weights-detached", edit=("weights @ x, weights", "weights @ x, weights.detach()"),
            title="the weights cut off from the graph",
            says="Your numbers are right, and no gradient flows back from the weights that you return (detach, .data, "
                 "no_grad, item() or NumPy)."),
    Accepted(HURRIED, "turned-twice", instead="""
        raw = x @ x.transpose(1, 2)
        weights = torch.softmax(raw, dim=1).transpose(1, 2)
        return weights @ x, weights
    """),
    Accepted(HURRIED, "axis-two", edit=("dim=-1", "dim=2")),
    Accepted(HURRIED, "by-hand", instead="""
        raw = torch.einsum("bie,bje->bij", x, x)
        powers = (raw - raw.amax(dim=2, keepdim=True)).exp()
        weights = powers / powers.sum(dim=2, keepdim=True)
        return torch.einsum("bij,bje->bie", weights, x), weights
    """),
    # ----------------------------------------------------------------------------------- equivariance_gap
    Mistake(GAP, "width",
            edit=(("x[:, order]", "x[:, :, order]"), ("attention(x)[:, order]", "attention(x)[:, :, order]")),
            title="the width permuted instead of the positions",
            says="You permute the last axis, the components of the vectors. Positions are axis 1: `x[:, order]`."),
    Mistake(GAP, "batch", edit=(("x[:, order]", "x[order]"), ("attention(x)[:, order]", "attention(x)[order]")),
            title="the batch permuted instead of the positions",
            says="`x[order]` picks along axis 0, the batch. Positions are axis 1, so a colon has to stand in front."),
    Mistake(GAP, "input-only", edit=("attention(x)[:, order]", "attention(x)"), title="only the input was permuted",
            says="You compare the outputs of the permuted input with outputs in the old order; they differ even for a "
                 "function that treats positions as a set. Permute the second side too."),
    Mistake(GAP, "inverse", edit=("attention(x)[:, order]", "attention(x)[:, order.argsort()]"),
            title="permuted back instead of alike",
            says="The outputs are put into the inverse order. Equivariance asks for the same order on both sides."),
    Mistake(GAP, "no-abs", edit=(".abs().max()", ".max()"), title="the largest difference without its absolute value",
            says="Without the absolute value a large negative difference counts for nothing. Take `.abs()` first."),
    Mistake(GAP, "mean", edit=(".abs().max()", ".abs().mean()"), title="the mean difference instead of the largest",
            says="You average the differences. A single position that is off would be lost among many that are not: "
                 "take the largest."),
    Mistake(GAP, "function-ignored", instead="""
        def self_attention(y):
            return torch.softmax(y @ y.transpose(1, 2), dim=-1) @ y
        return (self_attention(x[:, order]) - self_attention(x)[:, order]).abs().max()
    """, title="the function that is handed in is not measured",
            says="You measure a function of your own choice. The one to be measured is handed in: it is the first "
                 "argument, `attention`, and may be any function."),
    Mistake(GAP, "same-input-twice", edit=("attention(x[:, order])", "attention(x)[:, order]"),
            title="the same thing on both sides",
            says="Your number is 0 for every function, because both sides are the same. On one side x is permuted "
                 "*before* it goes into the function, on the other the outputs are permuted."),
    Alias(GAP, "input-permuted-twice", of="same-input-twice",
          edit=("attention(x)[:, order]", "attention(x[:, order])")),
    Mistake(GAP, "in-place",
            edit=("permuted_first = attention(x[:, order])", "x[:] = x[:, order]\n    permuted_first = attention(x)"),
            title="the input permuted in place",
            says="You write the permuted positions into the caller's x, so the function meets the permuted x in both "
                 "calls. `x[:, order]` makes a new tensor; leave x as it came."),
    Mistake(GAP, "output-only", edit=("attention(x[:, order])", "attention(x)"), title="only the output was permuted",
            says="You compare the outputs for x with the same outputs in another order; those differ even for a "
                 "function that treats positions as a set. On the first side x is permuted before the function sees "
                 "it."),
    Mistake(GAP, "permuted-both-times",
            edit=("permuted_after = attention(x)[:, order]", "permuted_after = attention(x[:, order])[:, order]"),
            title="permuted before and after",
            says="On the second side you permute twice: what goes into the function, and what comes out of it. There "
                 "x goes in as it came, and only the outputs are permuted."),
    Mistake(GAP, "input-on-one-side", edit=("permuted_first = attention(x[:, order])", "permuted_first = x[:, order]"),
            title="the input compared with an output",
            says="On one side you never call the function: you compare the permuted input with outputs. Both sides are "
                 "outputs of the function."),
    Mistake(GAP, "first-sentence", edit=(".abs().max()", "[0].abs().max()"), title="the first sentence only",
            says="You look at the first sentence of the batch only. The largest difference may lie in another."),
    Mistake(GAP, "root-mean-square", edit=(".abs().max()", ".square().mean().sqrt()"),
            title="the root of the mean square",
            says="You return the root of the mean squared difference. The largest absolute difference is asked for."),
    Mistake(GAP, "relative", edit=("return (permuted_first - permuted_after).abs().max()",
            "return ((permuted_first - permuted_after).abs() / permuted_after.abs()).max()"),
            title="relative differences",
            says="You divide the differences by the outputs. The largest absolute difference is asked for, as it is."),
    Mistake(GAP, "lengths", edit=(".abs().max()", ".norm(dim=-1).max()"), title="the largest distance of two vectors",
            says="You take the length of the difference at each position, and the largest of these. The largest single "
                 "entry is asked for."),
    Mistake(GAP, "maxima-compared", edit=("(permuted_first - permuted_after).abs().max()",
            "(permuted_first.max() - permuted_after.max()).abs()"), title="the two largest entries compared",
            says="You compare the largest entry of one side with the largest of the other; they may stand at different "
                 "places. Take the difference entry by entry first, and the largest of its sizes then."),
    Mistake(GAP, "sum", edit=(".abs().max()", ".abs().sum()"), title="the sum of the differences",
            says="You add all differences up. Your number then grows with the size of the tensors: take the largest."),
    Mistake(GAP, "norm", edit=(".abs().max()", ".norm()"), title="the norm of the difference",
            says="You take the root of the sum of all squares. The largest single difference is asked for."),
    Mistake(GAP, "squares", edit=(".abs().max()", ".square().max()"), title="the largest squared difference",
            says="You square the differences. The largest absolute difference is asked for, as it is."),
    Mistake(GAP, "smallest", edit=(".abs().max()", ".abs().min()"), title="the smallest difference",
            says="You take the smallest difference. It can be 0 for a function that mixes all positions up but one: "
                 "take the largest."),
    Mistake(GAP, "no-maximum", edit=(".abs().max()", ".abs()"), title="all the differences",
            says="You return a whole tensor of differences. One number is asked for: the largest of them."),
    Mistake(GAP, "yes-or-no", edit=("return (permuted_first - permuted_after).abs().max()",
            "return float(torch.allclose(permuted_first, permuted_after, atol=1e-5))"), title="yes or no",
            says="You say whether both sides agree. How far they are apart is asked for: the largest absolute "
                 "difference."),
    Accepted(GAP, "index-select", instead="""
        first = attention(x.index_select(1, order))
        then = torch.index_select(attention(x), 1, order)
        return torch.max(torch.abs(then - first)).item()
    """),
    Accepted(GAP, "gather-by-list", instead="""
        positions = order.tolist()
        moved = torch.stack([x[:, p] for p in positions], dim=1)
        y = attention(x)
        difference = attention(moved) - torch.stack([y[:, p] for p in positions], 1)
        return torch.linalg.vector_norm(difference, ord=float("inf"))
    """),
    Accepted(GAP, "both-in-one-batch", instead="""
        both = attention(torch.cat([x[:, order], x]))
        return float((both[: len(x)] - both[len(x) :][:, order]).abs().amax())
    """),
    Accepted(GAP, "permutation-matrix", instead="""
        moves = torch.eye(len(order), dtype=x.dtype, device=x.device)[order]
        return (moves @ attention(x) - attention(moves @ x)).abs().max().detach()
    """),
    EquivalentMutant(GAP, "permuted_first - permuted_after", "permuted_after - permuted_first",
        why="its size is taken"),
    EquivalentMutant(GAP, "(permuted_first - permuted_after).abs()", "(permuted_first - permuted_after).abs_()",
          why="it writes into a tensor of its own making"),
    EquivalentMutant(GAP, "return (permuted_first - permuted_after).abs().max()",
          "return (permuted_first - permuted_after).abs().max().mT", why="a single number has no axes to exchange"),
    EquivalentMutant(GAP, "return (permuted_first - permuted_after).abs().max()",
          "return (permuted_first - permuted_after).abs().max().squeeze()", why="a single number has no axis to lose"),
    EquivalentMutant(GAP, "return (permuted_first - permuted_after).abs().max()",
          "return (permuted_first - permuted_after).abs().max().detach()",
          why="one number is asked for, and a plain Python number is one: the instrument measures and is not learned"),
]
