"""What students get wrong in lesson 1, and what to tell them."""

from helpers.authoring import Alias, Mistake, Same, Shortcut

FILMS, RAW, SOFTMAX, SELF, GAP = (
    "masked_squared_error",
    "raw_weights",
    "row_softmax",
    "self_attention",
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
    Same(FILMS, "multiplied-by-mask", instead="""
        errors = (users @ films.T - ratings) * seen
        return (errors ** 2).sum() / seen.sum()
    """),
    Same(FILMS, "loops", instead="""
        total, count = 0.0, 0
        for u in range(users.shape[0]):
            for f in range(films.shape[0]):
                if seen[u, f]:
                    total = total + ((users[u] * films[f]).sum() - ratings[u, f]) ** 2
                    count += 1
        return total / count
    """),
    Same(FILMS, "mse-loss", instead="""
        predicted = torch.einsum("uk,fk->uf", users, films)
        return torch.nn.functional.mse_loss(predicted[seen], ratings[seen])
    """),
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
    Same(RAW, "einsum", instead="return torch.einsum('kie,kje->kij', x, x)"),
    Same(RAW, "bmm", instead="return torch.bmm(x, x.mT)"),
    Same(RAW, "loops", instead="""
        b, t, e = x.shape
        raw = torch.zeros(b, t, t, dtype=x.dtype, device=x.device)
        for k in range(b):
            for i in range(t):
                for j in range(t):
                    raw[k, i, j] = (x[k, i] * x[k, j]).sum()
        return raw
    """),
    Same(RAW, "broadcast", instead="return (x.unsqueeze(2) * x.unsqueeze(1)).sum(-1)"),
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
    Same(SOFTMAX, "torch-functions", instead="""
        highest = torch.max(scores, dim=-1, keepdim=True).values
        return torch.exp(scores - highest) / torch.sum(torch.exp(scores - highest), -1, True)
    """),
    Same(SOFTMAX, "logsumexp", instead="return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))"),
    Same(SOFTMAX, "detached-maximum", instead="""
        e = (scores - scores.detach().max(-1, keepdim=True)[0]).exp()
        return e / e.sum(-1).unsqueeze(-1)
    """),
    Same(SOFTMAX, "row-by-row", instead="""
        rows = []
        for row in scores.reshape(-1, scores.shape[-1]):
            powers = torch.exp(row - row.max())
            rows.append(powers / powers.sum())
        return torch.stack(rows).reshape(scores.shape)
    """),
    Shortcut(SOFTMAX, "library", instead="return torch.softmax(scores, dim=-1)"),
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
    Same(SELF, "scaled-dot-product",
         instead="return torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1.0)"),
    Same(SELF, "einsum", instead="""
        a = torch.nn.functional.softmax(torch.einsum("bie,bje->bij", x, x), -1)
        return torch.einsum("bij,bje->bie", a, x)
    """),
    Same(SELF, "sentence-by-sentence", instead="""
        outputs = []
        for sentence in x:
            weights = torch.exp(sentence @ sentence.T)
            outputs.append(weights / weights.sum(1, keepdim=True) @ sentence)
        return torch.stack(outputs)
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
    Same(GAP, "index-select", instead="""
        first = attention(x.index_select(1, order))
        then = torch.index_select(attention(x), 1, order)
        return torch.max(torch.abs(then - first)).item()
    """),
    Same(GAP, "gather-by-list", instead="""
        positions = order.tolist()
        moved = torch.stack([x[:, p] for p in positions], dim=1)
        y = attention(x)
        difference = attention(moved) - torch.stack([y[:, p] for p in positions], 1)
        return torch.linalg.vector_norm(difference, ord=float("inf"))
    """),
]
