"""What students get wrong in lesson 7, and what to tell them."""

import textwrap

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

GRADIENT, NORM, NETWORK, BLOCK, STACK, COUNT = (
    "gradient_by_depth",
    "LayerNorm",
    "FeedForward",
    "TransformerBlock",
    "Transformer",
    "block_parameters",
)

# The two orders of the block, as the solution has them, and what students make of either.
LAST = """
    x = self.norm1(x + self.dropout(self.attention(x, mask)))
    return self.norm2(x + self.dropout(self.feed_forward(x)))
"""
FIRST = """
    x = x + self.dropout(self.attention(self.norm1(x), mask))
    return x + self.dropout(self.feed_forward(self.norm2(x)))
"""


def block_of(last=LAST, first=FIRST):
    """The bodies of a block that does this with the norm last, and that with the norm first."""
    first, last = (textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ") for lines in (first, last))
    return "", f"if self.pre_norm:\n{first}\nelse:\n{last}"


def in_each_order(slug, last, first, title, says, alone):
    """A mistake that is made in both orders, or in one of them: three mistakes.

    says: of both. alone: the same as a phrase that begins with "you" and stands after "With pre_norm=...,".
    """
    return [
        Mistake(BLOCK, slug, instead=block_of(last, first), title=title, says=says),
        Mistake(BLOCK, f"{slug}-norm-last", instead=block_of(last=last), title=f"{title}, with pre_norm=False",
                says=f"With pre_norm=False, {alone}"),
        Mistake(BLOCK, f"{slug}-norm-first", instead=block_of(first=first), title=f"{title}, with pre_norm=True",
                says=f"With pre_norm=True, {alone}"),
    ]  # fmt: skip


# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ---------------------------------------------------------------------------------- gradient_by_depth
    Mistake(GRADIENT, "piles-up", instead="""
        loss.backward()
        norms = [torch.cat([p.grad.flatten() for p in block.parameters()]).norm() for block in model.blocks]
        return torch.stack(norms)
    """, title="gradients added to those from before",
            says="`backward()` adds to the `.grad` that a parameter holds already, and does not replace it: on a model "
                 "that has been trained, or at your second call, the numbers are those of two losses. Clear the "
                 "gradients first, or use torch.autograd.grad, which keeps nothing."),
    Mistake(GRADIENT, "no-root", edit=("norms.append(squares.sqrt())", "norms.append(squares)"),
            title="the square of the norm",
            says="You return the sum of the squares. A norm is its root."),
    Mistake(GRADIENT, "norms-added",
            edit=(("gradient.square().sum()", "gradient.norm()"), ("squares.sqrt()", "squares")),
            title="the parameters' norms added up",
            says="You take the norm of each weight's gradient and add these norms. All gradients of a block are one "
                 "long vector here, and it is the squares that add up: root of the sum of all squares."),
    Mistake(GRADIENT, "mean-norm",
            edit=(("gradient.square().sum()", "gradient.norm()"), ("squares.sqrt()", "squares / len(gradients)")),
            title="the parameters' norms averaged",
            says="You average over the norms of a block's weights. All gradients of a block are one long vector here: "
                 "root of the sum of all squares."),
    Mistake(GRADIENT, "first-parameter", edit=("list(block.parameters())", "list(block.parameters())[:1]"),
            title="only one parameter of each block",
            says="You look at one parameter of each block, and a block has several: weights and biases of all its "
                 "layers. `block.parameters()` goes through all of them."),
    Mistake(GRADIENT, "last-parameter", edit=("list(block.parameters())", "list(block.parameters())[-1:]"),
            title="only the last parameter of each block",
            says="Only the last parameter of each block is in your number. Does the loop over the parameters keep "
                 "nothing but its last round? All of them belong in."),
    Mistake(GRADIENT, "matrices-only",
            edit=("list(block.parameters())", "[p for p in block.parameters() if p.dim() > 1]"),
            title="biases left out",
            says="You leave the biases out. They are parameters of the block as well."),
    Mistake(GRADIENT, "weights",
            edit=("gradient.square().sum() for gradient in gradients",
                  "p.detach().square().sum() for p in block.parameters()"),
            title="the norm of the weights, not of their gradients",
            says="You measure how large a block's weights are. What is asked for is how large the *derivatives of the "
                 "loss* by these weights are."),
    Mistake(GRADIENT, "backwards", edit=("for block in model.blocks:", "for block in reversed(model.blocks):"),
            title="last block first",
            says="Your numbers are right and stand in reverse order. Entry 0 belongs to the first block, the one next "
                 "to the input."),
    Mistake(GRADIENT, "running-sum",
            edit=(("norms = []", "norms, squares = [], 0.0"),
                  ("squares = sum(gradient.square().sum() for gradient in gradients)",
                   "squares = squares + sum(gradient.square().sum() for gradient in gradients)")),
            title="squares carried on from block to block",
            says="Your sum of squares is not set back to 0 between blocks, so each entry holds all blocks up to it."),
    Mistake(GRADIENT, "largest",
            edit=(("gradient.square().sum() for", "gradient.abs().max() for"),
                  ("sum(gradient", "max(gradient"),
                  ("squares.sqrt()", "squares")), title="the largest entry instead of the norm",
            says="You return the largest derivative of each block. The norm is the root of the sum of all squares."),
    Mistake(GRADIENT, "mean-square",
            edit=("norms.append(squares.sqrt())",
                  "norms.append((squares / sum(p.numel() for p in block.parameters())).sqrt())"),
            title="root of the mean of the squares",
            says="You divide by the number of parameters. The norm is the root of the *sum* of all squares."),
    Mistake(GRADIENT, "graph-gone", edit=(", retain_graph=True", ""), title="the graph is used up after one block",
            says="Autograd frees the graph on its way back, and your second call finds nothing left. Ask for all "
                 "derivatives in one call, or say `retain_graph=True`."),
    Mistake(GRADIENT, "backward-in-the-loop", instead="""
        norms = []
        for block in model.blocks:
            loss.backward(retain_graph=True)
            norms.append(torch.cat([p.grad.flatten() for p in block.parameters()]).norm())
        return torch.stack(norms)
    """, title="backward once for every block",
            says="`backward()` reaches all blocks at once and *adds* to every `.grad`. Called again for each block, "
                 "it has counted the second block's gradient twice, the third one's three times, and so on."),
    Mistake(GRADIENT, "whole-model",
            edit=("list(block.parameters())", "list(model.parameters())"),
            title="all parameters of the model for every block",
            says="You take the gradients of the whole model for each entry, so that all entries are alike. Entry m "
                 "belongs to the parameters of block m alone."),
    Mistake(GRADIENT, "absolute-values",
            edit=(("gradient.square().sum()", "gradient.abs().sum()"), ("squares.sqrt()", "squares")),
            title="the sum of the absolute values",
            says="You add absolute values up. The length of a vector is the root of the sum of the squares."),
    Mistake(GRADIENT, "sum-squared",
            edit=("gradient.square().sum() for", "gradient.sum().square() for"), title="summed before squaring",
            says="You add up the derivatives of a parameter first and square the sum, in which positive and negative "
                 "ones cancel. Square every entry, then add up."),
    Mistake(GRADIENT, "mean-of-squares",
            edit=("gradient.square().sum() for", "gradient.square().mean() for"),
            title="the mean of each parameter's squares",
            says="You take the mean of the squares of each parameter's gradient. The length of the one long vector "
                 "has the *sum* of all squares under its root."),
    Mistake(GRADIENT, "one-per-parameter", instead="""
        gradients = torch.autograd.grad(loss, list(model.blocks.parameters()))
        return torch.stack([gradient.norm() for gradient in gradients])
    """, title="one number for each parameter",
            says="You return a norm for every weight and every bias. All parameters of a block belong together: one "
                 "number a block."),
    Mistake(GRADIENT, "of-the-output", instead="""
        outputs = []
        hooks = [block.register_forward_hook(lambda module, given, made: outputs.append(made))
                 for block in model.blocks]
        loss = (model(x) - x.flip(1)).square().mean()
        for hook in hooks:
            hook.remove()
        return torch.stack([gradient.norm() for gradient in torch.autograd.grad(loss, outputs)])
    """, title="the gradient by the blocks' outputs",
            says="You measure the loss's gradient by what the blocks put out. What is asked for is the gradient by "
                 "their *parameters*."),
    Mistake(GRADIENT, "cleared-afterwards", instead="""
        loss.backward()
        model.zero_grad()
        return torch.stack([torch.cat([p.grad.flatten() for p in block.parameters()]).norm() for block in model.blocks])
    """, title="no gradients when they are read",
            says="Your code meets None where it expects a gradient, and no parameter of the model holds one. "
                 "`backward()` comes after the clearing and before the reading."),
    Mistake(GRADIENT, "never-backward", instead="""
        return torch.stack([sum((p.grad ** 2).sum() for p in block.parameters()) ** 0.5 for block in model.blocks])
    """, title="gradients read that nobody has computed",
            says="Your code reads `.grad`, and nothing in it computes gradients: a new model has None there, and a "
                 "trained one what was there before. `backward()` has to come first."),
    Mistake(GRADIENT, "on-the-cpu",
            edit=("return torch.stack(norms)",
                  "result = torch.zeros(len(norms))\n    result[:] = torch.stack(norms)\n    return result"),
            title="a result made on the CPU",
            says="Your numbers go into a tensor that was made on the CPU, wherever the model is. torch.stack makes one "
                 "where its parts are; or pass `device=x.device`."),
    Accepted(GRADIENT, "backward-and-clear", instead="""
        model.zero_grad()
        loss.backward()
        result = []
        for block in model.blocks:
            total = 0
            for p in block.parameters():
                total += (p.grad ** 2).sum()
            result.append(total ** 0.5)
        return torch.stack(result)
    """),
    Accepted(GRADIENT, "one-call", instead="""
        per_block = [list(block.parameters()) for block in model.blocks]
        gradients = iter(torch.autograd.grad(loss, [p for group in per_block for p in group]))
        return torch.stack([torch.cat([next(gradients).reshape(-1) for _ in group]).norm() for group in per_block])
    """),
    Accepted(GRADIENT, "norm-of-norms", instead="""
        for p in model.parameters():
            p.grad = None
        loss.backward()
        return torch.stack([torch.stack([p.grad.norm() for p in block.parameters()]).norm() for block in model.blocks])
    """),
    Accepted(GRADIENT, "numbers", instead="""
        model.zero_grad(set_to_none=True)
        loss.backward()
        squares = [sum(p.grad.square().sum().item() for p in block.parameters()) for block in model.blocks]
        return torch.tensor([square ** 0.5 for square in squares], device=x.device)
    """),
    Accepted(GRADIENT, "clipping", instead="""
        model.zero_grad()
        loss.backward()
        return torch.stack([nn.utils.clip_grad_norm_(block.parameters(), float("inf")) for block in model.blocks])
    """),
    EquivalentMutant(GRADIENT, "return torch.stack(norms)", "return torch.stack(norms).detach()",
          why="autograd.grad makes gradients without a graph of their own: there is nothing to cut"),
    EquivalentMutant(GRADIENT, "squares.sqrt()", "squares.sqrt_()",
        why="changes a tensor that the answer has just made"),
    # ------------------------------------------------------------------------------------------ LayerNorm
    Mistake(NORM, "epsilon-outside",
            edit=("torch.sqrt(variance + self.epsilon)", "(torch.sqrt(variance) + self.epsilon)"),
            title="epsilon outside the root",
            says="You add epsilon to the standard deviation. It belongs to the variance, under the root: for a vector "
                 "whose variance is about epsilon, √(variance + ε) and √variance + ε differ by almost a third."),
    Mistake(NORM, "no-epsilon", edit=("variance + self.epsilon", "variance"), title="no epsilon at all",
            says="Nothing keeps you from dividing by zero. A vector of equal components has variance 0, and 0/0 is "
                 "NaN; it has to come out as zeros (times `weight`, plus `bias`)."),
    Mistake(NORM, "unbiased", edit=("centred.square().mean(dim=-1, keepdim=True)", "x.var(dim=-1, keepdim=True)"),
            title="divided by e − 1 instead of e",
            says="Your variance is the unbiased one, a sum divided by e − 1: that is what `var` and `std` do by "
                 "default. The norm uses the plain mean of the squares, divided by e."),
    Mistake(NORM, "unchanged", instead="""
        mean = x.mean(dim=-1, keepdim=True)
        std = x.std(dim=-1, keepdim=True)
        return (x - mean) / (std + self.epsilon) * self.weight + self.bias
    """, title="the code as it came",
            says="Your numbers are those of the code as it came: two pieces of it are not those of the formula. Work "
                 "out by hand what the norm makes of (0, 2), and what it divides by where the variance is far below "
                 "epsilon."),
    Mistake(NORM, "root-of-the-deviation",
            edit=("torch.sqrt(variance + self.epsilon)",
                  "torch.sqrt(x.std(dim=-1, keepdim=True, unbiased=False) + self.epsilon)"),
            title="the root of the standard deviation",
            says="You take the root of the standard deviation, which is a root already. Under the root stand the "
                 "variance and epsilon."),
    Mistake(NORM, "root-of-the-unbiased-deviation",
            edit=("torch.sqrt(variance + self.epsilon)", "torch.sqrt(x.std(dim=-1, keepdim=True) + self.epsilon)"),
            title="the root of the standard deviation, divided by e − 1",
            says="You take the root of what `std` returns. Two things about it: it is a root already, and by default "
                 "it divides by e − 1."),
    Mistake(NORM, "larger-of-the-two",
            edit=("torch.sqrt(variance + self.epsilon)", "torch.sqrt(variance.clamp_min(self.epsilon))"),
            title="the larger of variance and epsilon",
            says="You replace small variances by epsilon. Epsilon is *added* to the variance, small or large."),
    Mistake(NORM, "own-epsilon", edit=("self.epsilon)", "1e-6)"), title="an epsilon of your own",
            says="You divide with an epsilon that you have written into the code. `self.epsilon` holds the one that "
                 "was asked for."),
    Mistake(NORM, "default-epsilon", edit=("self.epsilon)", "1e-5)"), title="the default epsilon, whatever was given",
            says="Your epsilon is 1e-5 whatever was asked for: a norm that is made with another one does not take it. "
                 "`self.epsilon` holds it."),
    Mistake(NORM, "difference-of-squares",
            edit=("centred.square().mean(dim=-1, keepdim=True)",
                  "x.square().mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).square()"),
            title="the variance as a difference of two large numbers",
            says="Mean of the squares minus square of the mean is the variance on paper. In a vector whose components "
                 "lie far from 0, both are large and nearly equal, and in their difference few digits are left, or "
                 "none. Take off the mean first, as the formula does."),
    Mistake(NORM, "over-positions",
            edit=(("x.mean(dim=-1,", "x.mean(dim=-2,"),
                  ("centred.square().mean(dim=-1,", "centred.square().mean(dim=-2,")),
            title="statistics over the positions",
            says="You take mean and variance over the positions, so that each position depends on all the others. Each "
                 "vector is normalised by itself, over its own e components."),
    Mistake(NORM, "over-the-batch",
            edit=(("x.mean(dim=-1,", "x.mean(dim=0,"),
                  ("centred.square().mean(dim=-1,", "centred.square().mean(dim=0,")), title="statistics over the batch",
            says="You take mean and variance over the batch: what comes out for one sequence depends on which others "
                 "are with it. Each vector is normalised by itself, over its own e components."),
    Mistake(NORM, "over-batch-and-positions",
            edit=(("x.mean(dim=-1,", "x.mean(dim=(0, 1),"),
                  ("centred.square().mean(dim=-1,", "centred.square().mean(dim=(0, 1),")),
            title="statistics over batch and positions, as a batch norm takes them",
            says="You normalise each component over batch and positions: that is batch normalisation. Here each vector "
                 "is normalised by itself, over its own e components."),
    Mistake(NORM, "over-sequences",
            edit=(("x.mean(dim=-1,", "x.mean(dim=(-2, -1),"),
                  ("centred.square().mean(dim=-1,", "centred.square().mean(dim=(-2, -1),")),
            title="one mean and variance for a whole sequence",
            says="You take one mean and one variance for all positions of a sequence together. Each position has its "
                 "own, over the last axis only."),
    Mistake(NORM, "over-everything",
            edit=(("x.mean(dim=-1, keepdim=True)", "x.mean()"),
                  ("centred.square().mean(dim=-1, keepdim=True)", "centred.square().mean()")),
            title="one mean and variance for everything",
            says="Your mean and variance are taken over the whole tensor. Each vector has its own, over the last axis "
                 "only."),
    Mistake(NORM, "no-root", edit=("torch.sqrt(variance + self.epsilon)", "(variance + self.epsilon)"),
            title="divided by the variance",
            says="You divide by the variance; its root is what measures how far the components lie from their mean."),
    Mistake(NORM, "not-centred", edit=("centred / torch", "x / torch"), title="the mean not taken off",
            says="You divide by the standard deviation, but the mean is still in. Subtract it first."),
    Mistake(NORM, "root-of-mean-square", edit=("centred = x - x.mean(dim=-1, keepdim=True)", "centred = x"),
            title="divided by the root of the mean square, without a mean",
            says="You leave the mean in, in the numerator and in the variance. There is a norm of this kind (RMSNorm), "
                 "and it is another one."),
    Mistake(NORM, "no-weight", edit=(" * self.weight + self.bias", ""), title="weight and bias not used",
            says="Your vectors are normalised and then left so. `weight` and `bias` come after: one factor and one "
                 "summand for each component, which the model learns."),
    Mistake(NORM, "bias-not-used", edit=(" * self.weight + self.bias", " * self.weight"), title="the bias not used",
            says="You multiply by `weight`, and `bias` is never added."),
    Mistake(NORM, "weight-not-used", edit=(" * self.weight + self.bias", " + self.bias"), title="the weight not used",
            says="You add `bias`, and never multiply by `weight`."),
    Mistake(NORM, "not-divided", edit=("centred / torch.sqrt(variance + self.epsilon)", "centred"),
            title="the mean taken off and nothing divided",
            says="You take the mean off and leave the size as it is. Divide by the root of variance plus epsilon."),
    Mistake(NORM, "epsilon-twice", edit=("variance + self.epsilon", "variance + 2 * self.epsilon"),
            title="epsilon added twice",
            says="Epsilon is in your variance twice. Once is enough."),
    Mistake(NORM, "epsilon-squared", edit=("variance + self.epsilon", "variance + self.epsilon ** 2"),
            title="the square of epsilon",
            says="You add the square of epsilon to the variance. It is epsilon itself that stands under the root."),
    Mistake(NORM, "deviation-at-least-epsilon",
            edit=("torch.sqrt(variance + self.epsilon)", "torch.sqrt(variance).clamp(min=self.epsilon)"),
            title="a standard deviation of at least epsilon",
            says="You raise standard deviations that are smaller than epsilon. Epsilon is *added*, and to the "
                 "variance, whatever its size."),
    Mistake(NORM, "of-length-one",
            edit=("centred / torch.sqrt(variance + self.epsilon)", "nn.functional.normalize(x, dim=-1)"),
            title="vectors of length 1",
            says="You divide each vector by its length. The norm takes the mean off and divides by the standard "
                 "deviation."),
    Mistake(NORM, "over-positions-unbiased",
            edit=(("x.mean(dim=-1,", "x.mean(dim=-2,"),
                  ("centred.square().mean(dim=-1, keepdim=True)", "x.var(dim=-2, keepdim=True)")),
            title="statistics over the positions, divided by t − 1",
            says="You take mean and variance over the positions; each vector is normalised by itself, over its own e "
                 "components. And `var` and `std` divide by one less than there are, unless they are told otherwise."),
    Mistake(NORM, "weight-as-one-plus", edit=("* self.weight", "* (1 + self.weight)"), title="times 1 + weight",
            says="You multiply by 1 + weight. `weight` begins at 1 here, so it is the factor itself."),
    Mistake(NORM, "bias-first", edit=(" * self.weight + self.bias", " * (self.weight + self.bias)"),
            title="bias added to the weight",
            says="You add the bias to the weight. It is added at the end, after the multiplication."),
    Mistake(NORM, "bias-times-weight", edit=("* self.weight + self.bias", "* self.weight + self.bias * self.weight"),
            title="the bias multiplied by the weight",
            says="You add the bias before you multiply, so that it is multiplied by the weight as well. First times "
                 "`weight`, then plus `bias`."),
    Mistake(NORM, "weight-and-bias-exchanged",
            edit=("* self.weight + self.bias", "* self.bias + self.weight"), title="weight and bias exchanged",
            says="You multiply by `bias` and add `weight`. It is the other way round."),
    Mistake(NORM, "mean-distance",
            edit=("torch.sqrt(variance + self.epsilon)", "(centred.abs().mean(dim=-1, keepdim=True) + self.epsilon)"),
            title="divided by the mean distance from the mean",
            says="You divide by the mean of the absolute differences. The standard deviation is the root of the mean "
                 "of their *squares*."),
    Mistake(NORM, "length-of-the-vector",
            edit=("centred.square().mean(dim=-1, keepdim=True)", "centred.square().sum(dim=-1, keepdim=True)"),
            title="divided by the length of the vector",
            says="You divide by the root of the *sum* of the squares, which is the vector's length. The variance is "
                 "their mean: the sum divided by e."),
    Mistake(NORM, "spread-with-the-mean-in",
            edit=("centred.square().mean(dim=-1, keepdim=True)", "x.square().mean(dim=-1, keepdim=True)"),
            title="the mean still in the variance",
            says="You take the mean off above the fraction line and leave it in below: the variance is the mean square "
                 "of the differences from the mean."),
    Mistake(NORM, "between-0-and-1",
            edit=("centred / torch.sqrt(variance + self.epsilon)",
                  "(x - x.amin(-1, True)) / (x.amax(-1, True) - x.amin(-1, True) + self.epsilon)"),
            title="squeezed between 0 and 1",
            says="You shift and scale each vector so that its smallest component is 0 and its largest 1. The norm "
                 "takes the mean off and divides by the standard deviation."),
    Mistake(NORM, "keepdim", edit=("x.mean(dim=-1, keepdim=True)", "x.mean(dim=-1)"),
            title="the last axis is not kept",
            says="What you subtract, or divide by, ends in the axis t, and x ends in e: t would meet e. With one "
                 "number for each vector, (b, t, 1) is the shape that fits, and `keepdim=True` keeps that axis of "
                 "length 1."),
    Alias(NORM, "keepdim-of-the-variance", of="keepdim",
          edit=("centred.square().mean(dim=-1, keepdim=True)", "centred.square().mean(dim=-1)")),
    Mistake(NORM, "mean-detached",
            edit=("x - x.mean(dim=-1, keepdim=True)", "x - x.mean(dim=-1, keepdim=True).detach()"),
            title="no gradient through the mean",
            says="Forwards you are right. But the mean depends on x too, and you cut its gradient off (detach, .data, "
                 "item or no_grad)."),
    Mistake(NORM, "statistics-detached",
            edit=(("x - x.mean(dim=-1, keepdim=True)", "x - x.mean(dim=-1, keepdim=True).detach()"),
                  ("centred.square().mean(dim=-1, keepdim=True)",
                   "centred.square().mean(dim=-1, keepdim=True).detach()")),
            title="no gradient through mean and variance",
            says="Forwards you are right. But mean and variance depend on x too, and you cut their gradients off "
                 "(detach, .data, item or no_grad)."),
    Mistake(NORM, "weights-detached",
            edit=("self.weight + self.bias", "self.weight.detach() + self.bias.detach()"),
            title="weight and bias cut off from the graph",
            says="Forwards you are right. But no gradient reaches `weight` and `bias`, so they would never learn: use "
                 "them as they are, without detach, .data or no_grad."),
    Mistake(NORM, "detached",
            edit=("centred.square().mean(dim=-1, keepdim=True)",
                  "centred.square().mean(dim=-1, keepdim=True).detach()"), title="no gradient through the variance",
            says="Forwards you are right. But the variance depends on x too, and you cut its gradient off (detach, "
                 ".data, item or no_grad)."),
    Mistake(NORM, "in-place",
            edit=("centred = x - x.mean(dim=-1, keepdim=True)",
                  "x -= x.mean(dim=-1, keepdim=True)\n        centred = x"), title="the input changed in place",
            says="`x -= ...` writes into the caller's tensor, and a shortcut around this layer would carry the changed "
                 "numbers. Make a new one: `x - ...`."),
    Accepted(NORM, "var", instead="""
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return self.weight * (x - mean) / (var + self.epsilon).sqrt() + self.bias
    """),
    Accepted(NORM, "correction", instead="""
        var, mean = torch.var_mean(x, dim=2, correction=0, keepdim=True)
        return self.bias + self.weight * ((x - mean) * torch.rsqrt(var + self.epsilon))
    """),
    Accepted(NORM, "mean-of-squares", instead="""
        b, t, e = x.shape
        mean = x.sum(dim=-1, keepdim=True) / e
        variance = ((x - mean) ** 2).sum(dim=-1, keepdim=True) / e
        return torch.addcmul(self.bias, self.weight, (x - mean) / torch.pow(variance + self.epsilon, 0.5))
    """),
    Accepted(NORM, "loops", instead="""
        rows = []
        for sequence in x:
            for vector in sequence:
                centred = vector - vector.mean()
                spread = (torch.dot(centred, centred) / len(vector) + self.epsilon) ** 0.5
                rows.append(self.weight * centred / spread + self.bias)
        return torch.stack(rows).reshape(x.shape)
    """),
    Accepted(NORM, "std-squared", instead="""
        std = x.std(dim=-1, keepdim=True, unbiased=False)
        normal = (x - x.mean(dim=-1, keepdim=True)) / torch.sqrt(std ** 2 + self.epsilon)
        return torch.einsum("bte,e->bte", normal, self.weight) + self.bias
    """),
    Shortcut(NORM, "pytorchs",
             instead="return torch.nn.functional.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.epsilon)"),
    Shortcut(NORM, "finished-part", instead="return FinishedNorm.forward(self, x)"),
    # ---------------------------------------------------------------------------------------- FeedForward
    Mistake(NETWORK, "no-activation", edit=("self.narrow(torch.relu(self.widen(x)))", "self.narrow(self.widen(x))"),
            title="nothing between the two layers",
            says="Two linear layers with nothing between them are one linear layer. A ReLU belongs in the middle."),
    Mistake(NETWORK, "activation-last",
            edit=("self.narrow(torch.relu(self.widen(x)))", "torch.relu(self.narrow(self.widen(x)))"),
            title="the ReLU at the end",
            says="Your ReLU comes after the second layer; it belongs between the two. At the end it would let no layer "
                 "ever subtract anything."),
    Mistake(NETWORK, "activation-twice",
            edit=("self.narrow(torch.relu(self.widen(x)))", "torch.relu(self.narrow(torch.relu(self.widen(x))))"),
            title="a second ReLU at the end",
            says="The second ReLU, after the last layer, is one too many: the output could never be negative."),
    Mistake(NETWORK, "activation-first",
            edit=("self.narrow(torch.relu(self.widen(x)))", "self.narrow(self.widen(torch.relu(x)))"),
            title="the ReLU in front of the first layer",
            says="Your ReLU comes before the first layer, and nothing stands between the two. It belongs in the "
                 "middle."),
    Mistake(NETWORK, "sigmoid", edit=("torch.relu(self.widen(x))", "torch.sigmoid(self.widen(x))"),
            title="a sigmoid instead of the ReLU",
            says="You bend with a sigmoid. The formula has max(0, ·), the ReLU."),
    Mistake(NETWORK, "tanh", edit=("torch.relu(self.widen(x))", "torch.tanh(self.widen(x))"),
            title="a tanh instead of the ReLU",
            says="You bend with a tanh. The formula has max(0, ·), the ReLU."),
    Mistake(NETWORK, "silu", edit=("torch.relu(self.widen(x))", "nn.functional.silu(self.widen(x))"),
            title="SiLU instead of ReLU",
            says="You bend with a SiLU, x times its sigmoid. The formula has max(0, ·), the ReLU."),
    Mistake(NETWORK, "smallest", edit=("torch.relu(self.widen(x))", "self.widen(x).clamp(max=0)"),
            title="min(0, ·) instead of max(0, ·)",
            says="You keep what is negative and put 0 in the place of the rest. max(0, ·) is the other way round."),
    Mistake(NETWORK, "leaky", edit=("torch.relu(self.widen(x))", "nn.functional.leaky_relu(self.widen(x))"),
            title="a leaky ReLU",
            says="Your ReLU leaks: it lets a hundredth of what is negative through. max(0, ·) lets nothing through."),
    Mistake(NETWORK, "absolute", edit=("torch.relu(self.widen(x))", "self.widen(x).abs()"),
            title="the absolute value instead of the ReLU",
            says="You turn negative numbers round. The ReLU puts 0 in their place."),
    Mistake(NETWORK, "softmax", edit=("torch.relu(self.widen(x))", "torch.softmax(self.widen(x), dim=-1)"),
            title="a softmax instead of the ReLU",
            says="You put a softmax between the layers. There is a ReLU in the formula; softmaxes belong to the "
                 "attention."),
    Mistake(NETWORK, "twice-as-wide", edit=("hidden = 4 * e if", "hidden = 2 * e if"),
            title="twice as wide inside",
            says="When no hidden width is given, your hidden layer is 2e wide. The convention is 4e."),
    Mistake(NETWORK, "cut-off",
            edit=("self.narrow(torch.relu(self.widen(x)))", "self.narrow(torch.relu(self.widen(x))).detach()"),
            title="the result cut off from the graph",
            says="Your result is cut off from the graph (detach, .data, no_grad), so nothing below it could learn."),
    Mistake(NETWORK, "gelu", edit=("torch.relu(self.widen(x))", "nn.functional.gelu(self.widen(x))"),
            title="GELU instead of ReLU",
            says="GELU is what GPT-2 takes, in lesson 12. The network of the paper, and of this exercise, has a ReLU."),
    Mistake(NETWORK, "hidden-e", edit=("hidden = 4 * e if", "hidden = e if"), title="as wide inside as outside",
            says="When no hidden width is given, your hidden layer is e wide. The convention is 4e."),
    Mistake(NETWORK, "hidden-ignored", edit=("hidden = 4 * e if hidden is None else hidden", "hidden = 4 * e"),
            title="the hidden width that was asked for is ignored",
            says="Your hidden layer is always 4e wide. That is the default, for when `hidden` is None; otherwise take "
                 "what was given."),
    Mistake(NETWORK, "shortcut-inside",
            edit=("return self.narrow(torch.relu(self.widen(x)))", "return x + self.narrow(torch.relu(self.widen(x)))"),
            title="a shortcut inside the network",
            says="You add x to the result. The shortcut belongs to the block, which would then add x twice."),
    Mistake(NETWORK, "no-bias", edit=("nn.Linear(e, hidden)", "nn.Linear(e, hidden, bias=False)"),
            title="first layer without bias",
            says="Your first layer has no bias. Both have one."),
    Mistake(NETWORK, "no-biases",
            edit=(("nn.Linear(e, hidden)", "nn.Linear(e, hidden, bias=False)"),
                  ("nn.Linear(hidden, e)", "nn.Linear(hidden, e, bias=False)")), title="layers without bias",
            says="Your layers have no biases. Both have one; only the projections of the attention go without."),
    Accepted(NETWORK, "method", instead=("", "return self.narrow(self.widen(x).clamp(min=0))")),
    Accepted(NETWORK, "other-words", instead=("""
        if not hidden:
            hidden = e * 4
        self.narrow = nn.Linear(in_features=hidden, out_features=e)
        self.widen = nn.Linear(in_features=e, out_features=hidden)
        self.activation = nn.ReLU()
    """, """
        inside = self.activation(self.widen(x))
        return self.narrow(inside)
    """)),
    Accepted(NETWORK, "einsum", instead=("", """
        inside = torch.einsum("bte,fe->btf", x, self.widen.weight) + self.widen.bias
        inside = torch.where(inside > 0, inside, 0)
        return inside @ self.narrow.weight.T + self.narrow.bias
    """)),
    Accepted(NETWORK, "position-by-position", instead=("", """
        return torch.stack([self.narrow(nn.functional.relu(self.widen(x[:, i]))) for i in range(x.shape[1])], dim=1)
    """)),
    EquivalentMutant(NETWORK, "torch.relu(self.widen(x))", "torch.relu(torch.relu(self.widen(x)))",
          why="what the first ReLU gives is not negative, and the second leaves it as it is"),
    Shortcut(NETWORK, "finished-part", instead=("", "return FinishedFeedForward.forward(self, x)")),
    # ----------------------------------------------------------------------------------- TransformerBlock
    *in_each_order("no-shortcuts", """
        x = self.norm1(self.dropout(self.attention(x, mask)))
        return self.norm2(self.dropout(self.feed_forward(x)))
    """, """
        x = self.dropout(self.attention(self.norm1(x), mask))
        return self.dropout(self.feed_forward(self.norm2(x)))
    """, "no shortcuts",
        "Neither layer has a shortcut: what goes into a layer has to be added to what comes out of it.",
        "neither layer has a shortcut: what goes into a layer has to be added to what comes out of it."),
    *in_each_order("one-shortcut", """
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(self.dropout(self.feed_forward(x)))
    """, """
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        return self.dropout(self.feed_forward(self.norm2(x)))
    """, "no shortcut around the feed-forward network",
        "The attention has its shortcut, the feed-forward network has none. Both need one.",
        "the attention has its shortcut, the feed-forward network has none. Both need one."),
    *in_each_order("shortcut-around-attention-missing", """
        x = self.norm1(self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
    """, """
        x = self.dropout(self.attention(self.norm1(x), mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    """, "no shortcut around the attention",
        "The feed-forward network has its shortcut, the attention has none. Both need one.",
        "the feed-forward network has its shortcut, the attention has none. Both need one."),
    *in_each_order("shortcut-from-the-start", """
        start = x
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(start + self.dropout(self.feed_forward(x)))
    """, """
        start = x
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        return start + self.dropout(self.feed_forward(self.norm2(x)))
    """, "the second shortcut starts at the block's input",
        "Your second shortcut carries the x that came into the block, and what the attention has added is lost from "
        "it. Each shortcut goes around one layer: it starts where that layer starts.",
        "your second shortcut carries the x that came into the block, and what the attention has added is lost from "
        "it. Each shortcut goes around one layer: it starts where that layer starts."),
    *in_each_order("side-by-side", """
        y = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(y + self.dropout(self.feed_forward(x)))
    """, """
        y = x + self.dropout(self.attention(self.norm1(x), mask))
        return y + self.dropout(self.feed_forward(self.norm2(x)))
    """, "both layers read the same x",
        "Your feed-forward network reads the x that came into the block. It comes second: it reads what stands there "
        "after the attention.",
        "your feed-forward network reads the x that came into the block. It comes second: it reads what stands there "
        "after the attention."),
    *in_each_order("network-first", """
        x = self.norm2(x + self.dropout(self.feed_forward(x)))
        return self.norm1(x + self.dropout(self.attention(x, mask)))
    """, """
        x = x + self.dropout(self.feed_forward(self.norm2(x)))
        return x + self.dropout(self.attention(self.norm1(x), mask))
    """, "feed-forward network before the attention",
        "The attention comes first, then the feed-forward network.",
        "your feed-forward network comes before the attention. The attention is first."),
    *in_each_order("norms-swapped", """
        x = self.norm2(x + self.dropout(self.attention(x, mask)))
        return self.norm1(x + self.dropout(self.feed_forward(x)))
    """, """
        x = x + self.dropout(self.attention(self.norm2(x), mask))
        return x + self.dropout(self.feed_forward(self.norm1(x)))
    """, "norm1 and norm2 exchanged",
        "`norm1` belongs to the attention and `norm2` to the feed-forward network; you have them the other way round.",
        "`norm1` and `norm2` are exchanged: `norm1` belongs to the attention, `norm2` to the feed-forward network."),
    *in_each_order("norm1-twice", """
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm1(x + self.dropout(self.feed_forward(x)))
    """, """
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        return x + self.dropout(self.feed_forward(self.norm1(x)))
    """, "norm1 for both layers",
        "You make two norms and use `norm1` for both layers. `norm2` belongs to the feed-forward network.",
        "you use `norm1` for both layers. `norm2` belongs to the feed-forward network."),
    *in_each_order("no-norms", """
        x = x + self.dropout(self.attention(x, mask))
        return x + self.dropout(self.feed_forward(x))
    """, """
        x = x + self.dropout(self.attention(x, mask))
        return x + self.dropout(self.feed_forward(x))
    """, "no norms",
        "You make the norms and never call them. Each layer has one of its own.",
        "you never call the norms. Each layer has one of its own."),
    *in_each_order("no-norm1", """
        x = x + self.dropout(self.attention(x, mask))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
    """, """
        x = x + self.dropout(self.attention(x, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    """, "no norm for the attention",
        "The feed-forward network has its norm, the attention has none. `norm1` belongs to it.",
        "the feed-forward network has its norm, the attention has none. `norm1` belongs to it."),
    *in_each_order("no-norm2", """
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return x + self.dropout(self.feed_forward(x))
    """, """
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        return x + self.dropout(self.feed_forward(x))
    """, "no norm for the feed-forward network",
        "The attention has its norm, the feed-forward network has none. `norm2` belongs to it.",
        "the attention has its norm, the feed-forward network has none. `norm2` belongs to it."),
    *in_each_order("no-attention", """
        return self.norm2(x + self.dropout(self.feed_forward(self.norm1(x))))
    """, """
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    """, "the attention is left out",
        "Your block never calls its attention, so no position hears of another.",
        "your block never calls its attention, so no position hears of another."),
    *in_each_order("no-network", """
        return self.norm1(x + self.dropout(self.attention(x, mask)))
    """, """
        return x + self.dropout(self.attention(self.norm1(x), mask))
    """, "the feed-forward network is left out",
        "Your block ends after the attention. The feed-forward network comes next, with a shortcut and a norm of its "
        "own.",
        "your block ends after the attention. The feed-forward network comes next, with a shortcut and a norm of its "
        "own."),
    *in_each_order("norm-of-the-layer", """
        x = x + self.dropout(self.norm1(self.attention(x, mask)))
        return x + self.dropout(self.norm2(self.feed_forward(x)))
    """, """
        x = x + self.norm1(self.dropout(self.attention(x, mask)))
        return x + self.norm2(self.dropout(self.feed_forward(x)))
    """, "the norm over what a layer gives",
        "You normalise what a layer gives and add x afterwards. With the norm last, it comes after the *sum*; with the "
        "norm first, it comes before the *layer*.",
        "you normalise what a layer gives and add x afterwards. With the norm last, it comes after the *sum*; with the "
        "norm first, it comes before the *layer*."),
    Mistake(BLOCK, "shortcut-after-the-norm", instead=block_of(first="""
        x = self.norm1(x)
        x = x + self.dropout(self.attention(x, mask))
        x = self.norm2(x)
        return x + self.dropout(self.feed_forward(x))
    """), title="the shortcut starts after the norm",
            says="With pre_norm you normalise x and then add to the *normalised* x. The norm belongs to the layer, "
                 "inside the detour; the shortcut carries x as it came in, untouched."),
    Mistake(BLOCK, "normalised-twice", instead=block_of(first="""
        x = self.norm1(x + self.dropout(self.attention(self.norm1(x), mask)))
        return self.norm2(x + self.dropout(self.feed_forward(self.norm2(x))))
    """), title="both orders at once",
            says="With pre_norm you normalise what goes into a layer, and the sum as well. The norm comes first there, "
                 "and only first: the sum is left as it is."),
    Mistake(BLOCK, "norm-of-the-second-sum", instead=block_of(first="""
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
    """), title="norm first for the attention, norm last for the network",
            says="With pre_norm your attention reads a normalised x, but the feed-forward network reads it as it is "
                 "and the sum is normalised afterwards. Both layers have the norm in front."),
    Mistake(BLOCK, "norm-first-of-the-network", instead=block_of(last="""
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    """), title="norm last for the attention, norm first for the network",
            says="With pre_norm=False the sum after your attention is normalised, as it should be; around the "
                 "feed-forward network the norm comes first. Both sums are normalised in this order."),
    Mistake(BLOCK, "norm-at-the-end-too", instead=block_of(first="""
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        return self.norm2(x + self.dropout(self.feed_forward(self.norm2(x))))
    """), title="norm first, and once more at the end",
            says="With pre_norm you normalise what the block gives, too. The norms are in front of the layers only; "
                 "what comes out is the plain sum."),
    Mistake(BLOCK, "attention-shortcut-after-the-norm", instead=block_of(first="""
        x = self.norm1(x)
        x = x + self.dropout(self.attention(x, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    """), title="the first shortcut starts after the norm",
            says="With pre_norm, your shortcut around the attention carries the *normalised* x. It carries x as it "
                 "came in; the one around the feed-forward network is right."),
    Mistake(BLOCK, "network-shortcut-after-the-norm", instead=block_of(first="""
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        x = self.norm2(x)
        return x + self.dropout(self.feed_forward(x))
    """), title="the second shortcut starts after the norm",
            says="With pre_norm, your shortcut around the feed-forward network carries the *normalised* x. It carries "
                 "x as the attention has left it; the one around the attention is right."),
    Mistake(BLOCK, "shortcut-twice", instead=block_of("""
        x = x + self.norm1(x + self.dropout(self.attention(x, mask)))
        return x + self.norm2(x + self.dropout(self.feed_forward(x)))
    """), title="a second shortcut around the norm",
            says="With pre_norm=False you add x inside the norm and once more outside. Once, inside."),
    Mistake(BLOCK, "always-last", edit=("if self.pre_norm:", "if False:"), title="pre_norm ignored",
            says="Your block normalises last whatever `pre_norm` says. With pre_norm=True the norm comes first, inside "
                 "the detour."),
    Mistake(BLOCK, "always-first", edit=("if self.pre_norm:", "if True:"), title="always norm first",
            says="Your block normalises first whatever `pre_norm` says. With pre_norm=False the norm comes last, after "
                 "the sum."),
    Mistake(BLOCK, "orders-swapped", edit=("if self.pre_norm:", "if not self.pre_norm:"),
            title="the two orders exchanged",
            says="Both orders are there, the wrong way round: pre_norm=True means that the norm comes first."),
    Mistake(BLOCK, "mask-not-handed-on",
            edit=(("self.attention(self.norm1(x), mask)", "self.attention(self.norm1(x))"),
                  ("self.attention(x, mask)", "self.attention(x)")), title="the mask is not handed on",
            says="`forward` takes a mask and the attention never sees it, so everybody looks everywhere. Nothing "
                 "raises, because the attention's mask may be left out."),
    Mistake(BLOCK, "mask-lost-in-one-order",
            edit=("self.attention(self.norm1(x), mask)", "self.attention(self.norm1(x))"),
            title="the mask is not handed on with pre_norm",
            says="With pre_norm=False the attention gets the mask, with pre_norm=True it does not."),
    Mistake(BLOCK, "mask-lost-with-norm-last", edit=("self.attention(x, mask)", "self.attention(x)"),
            title="the mask is not handed on with pre_norm=False",
            says="With pre_norm=True the attention gets the mask, with pre_norm=False it does not."),
    Mistake(BLOCK, "mask-turned-round", instead=block_of("""
        mask = mask if mask is None else ~mask
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
    """, """
        mask = mask if mask is None else ~mask
        x = x + self.dropout(self.attention(self.norm1(x), mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    """), title="the mask turned round",
            says="Your mask lets a position look where it may not, and nowhere else. True means *may look*, and the "
                 "attention takes the mask as it comes."),
    Mistake(BLOCK, "one-norm",
            edit=(("self.norm2 = FinishedNorm(e)", "pass"),
                  ("self.norm2(x)))", "self.norm1(x)))"),
                  ("self.norm2(x + ", "self.norm1(x + ")), title="one norm for both layers",
            says="You use one norm twice. The block has two, `norm1` and `norm2`, each with a weight and a bias of its "
                 "own: what suits one layer need not suit the other."),
    Mistake(BLOCK, "dropped-in-evaluation",
            edit=("self.dropout = nn.Dropout(dropout)", "self.dropout = lambda y: nn.functional.dropout(y, dropout)"),
            title="dropout active in evaluation",
            says="After `model.eval()` your block still drops: the same input gives another output at each call. The "
                 "function F.dropout does not know what mode the module is in unless you tell it, "
                 "`training=self.training`; the module nn.Dropout does."),
    Mistake(BLOCK, "no-dropout", edit=("self.dropout = nn.Dropout(dropout)", "self.dropout = nn.Identity()"),
            title="dropout ignored",
            says="`dropout` is taken and not used: in training nothing is ever dropped."),
    Mistake(BLOCK, "dropout-for-the-network-only",
            edit=(("x + self.dropout(self.attention(self.norm1(x), mask))", "x + self.attention(self.norm1(x), mask)"),
                  ("x + self.dropout(self.attention(x, mask))", "x + self.attention(x, mask)")),
            title="dropout for the feed-forward network only",
            says="What the feed-forward network gives is subject to dropout, what the attention gives is not. Both "
                 "have to be."),
    Mistake(BLOCK, "dropout-after-the-norm", instead=block_of("""
        x = self.dropout(self.norm1(x + self.attention(x, mask)))
        return self.dropout(self.norm2(x + self.feed_forward(x)))
    """), title="dropout after the norm, with pre_norm=False",
            says="With pre_norm=False you drop from what the norm gives, and the shortcut's share is dropped with it. "
                 "Dropout is for what the *layer* gives, before it is added."),
    Mistake(BLOCK, "dropped-twice",
            edit=(("x + self.dropout(self.attention(self.norm1(x), mask))",
                   "x + self.dropout(self.dropout(self.attention(self.norm1(x), mask)))"),
                  ("x + self.dropout(self.feed_forward(self.norm2(x)))",
                   "x + self.dropout(self.dropout(self.feed_forward(self.norm2(x))))"),
                  ("self.norm1(x + self.dropout(self.attention(x, mask)))",
                   "self.norm1(x + self.dropout(self.dropout(self.attention(x, mask))))"),
                  ("self.norm2(x + self.dropout(self.feed_forward(x)))",
                   "self.norm2(x + self.dropout(self.dropout(self.feed_forward(x))))")),
            title="dropout applied twice",
            says="What a layer gives goes through dropout twice, so that more of it is dropped than the given chance "
                 "says. Once is enough."),
    Mistake(BLOCK, "not-scaled",
            edit=("self.dropout = nn.Dropout(dropout)",
                  "self.dropout = lambda y: y * (torch.rand_like(y) >= dropout) if self.training else y"),
            title="what is kept is not scaled up",
            says="You drop components and leave the others as they are, so that a layer's output is smaller in "
                 "training than in evaluation. What is kept is multiplied with 1/(1 − dropout); nn.Dropout does both."),
    Mistake(BLOCK, "keeping-for-dropping", edit=("nn.Dropout(dropout)", "nn.Dropout(1 - dropout)"),
            title="the chance of keeping taken for that of dropping",
            says="You drop with a chance of 1 − dropout. nn.Dropout wants the chance of *dropping*."),
    Mistake(BLOCK, "dropout-on-the-sum", instead=("", """
        if self.pre_norm:
            x = self.dropout(x + self.attention(self.norm1(x), mask))
            return self.dropout(x + self.feed_forward(self.norm2(x)))
        x = self.norm1(self.dropout(x + self.attention(x, mask)))
        return self.norm2(self.dropout(x + self.feed_forward(x)))
    """), title="dropout on the sum, shortcut included",
            says="You drop after the sum, and the shortcut is dropped with it. Dropout is for what the *layer* gives, "
                 "before it is added."),
    Mistake(BLOCK, "dropout-before-the-layers", instead=("", """
        if self.pre_norm:
            x = x + self.attention(self.dropout(self.norm1(x)), mask)
            return x + self.feed_forward(self.dropout(self.norm2(x)))
        x = self.norm1(x + self.attention(self.dropout(x), mask))
        return self.norm2(x + self.feed_forward(self.dropout(x)))
    """), title="dropout on what goes into the layers",
            says="You drop from what goes into a layer. Dropout is for what comes out of it, before it is added."),
    Mistake(BLOCK, "dropout-once",
            edit=(("x + self.dropout(self.feed_forward(self.norm2(x)))", "x + self.feed_forward(self.norm2(x))"),
                  ("x + self.dropout(self.feed_forward(x))", "x + self.feed_forward(x)")),
            title="dropout for the attention only",
            says="What the attention gives is subject to dropout, what the feed-forward network gives is not. Both "
                 "have to be."),
    Mistake(BLOCK, "in-place", instead=("", """
        if self.pre_norm:
            x += self.dropout(self.attention(self.norm1(x), mask))
            x += self.dropout(self.feed_forward(self.norm2(x)))
            return x
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
    """), title="the input changed in place",
            says="`x += ...` writes into the caller's tensor: after the call, the caller's x is the block's output. `x "
                 "= x + ...` makes a new one."),
    Mistake(BLOCK, "in-place-under-autograd", instead=block_of("""
        x = x.clone()
        x += self.dropout(self.attention(x, mask))
        x = self.norm1(x)
        x += self.dropout(self.feed_forward(x))
        return self.norm2(x)
    """), title="what autograd has kept is changed in place",
            says="On the way back autograd gives up: `x += ...` overwrites the x that a layer has read, and that layer "
                 "needs it for its gradient. `x = x + ...` makes a new one."),
    Accepted(BLOCK, "names-for-steps", instead=("""
        self.norm1, self.norm2 = nn.LayerNorm(e), nn.LayerNorm(e)
        self.attention = SelfAttention(e, h)
        self.feed_forward = FinishedFeedForward(e)
        self.drop1, self.drop2 = nn.Dropout(p=dropout), nn.Dropout(p=dropout)
        self.first = pre_norm
    """, """
        inside = self.norm1(x) if self.first else x
        attended = self.drop1(self.attention(inside, mask=mask)) + x
        if not self.first:
            attended = self.norm1(attended)
        inside = self.norm2(attended) if self.first else attended
        y = attended + self.drop2(self.feed_forward(inside))
        return y if self.first else self.norm2(y)
    """)),
    Accepted(BLOCK, "function-with-mode",
         edit=("self.dropout = nn.Dropout(dropout)",
               "self.dropout = lambda y: nn.functional.dropout(y, p=dropout, training=self.training)")),
    Accepted(BLOCK, "dropped-by-hand", instead=("""
        self.pre_norm, self.chance = pre_norm, dropout
        self.attention, self.feed_forward = SelfAttention(e, h), FinishedFeedForward(e)
        self.norm1, self.norm2 = FinishedNorm(e), FinishedNorm(e)
    """, """
        def drop(y):
            if not self.training or self.chance == 0:
                return y
            kept = torch.rand_like(y) >= self.chance
            return y * kept / (1 - self.chance) if self.chance < 1 else y * 0
        if self.pre_norm:
            x = x + drop(self.attention(self.norm1(x), mask))
            return x + drop(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + drop(self.attention(x, mask)))
        return self.norm2(x + drop(self.feed_forward(x)))
    """)),
    Accepted(BLOCK, "one-helper", instead=("", """
        def around(x, norm, layer):
            if self.pre_norm:
                return torch.add(x, self.dropout(layer(norm(x))))
            return norm(torch.add(x, self.dropout(layer(x))))
        x = around(x, self.norm1, lambda y: self.attention(y, mask))
        return around(x, self.norm2, self.feed_forward)
    """)),
    Accepted(BLOCK, "in-place-on-a-copy", instead=block_of(first="""
        y = x.clone()
        y += self.dropout(self.attention(self.norm1(x), mask))
        return y + self.dropout(self.feed_forward(self.norm2(y)))
    """)),
    Shortcut(BLOCK, "finished-part", instead=("", "return FinishedBlock.forward(self, x, mask)")),
    # ---------------------------------------------------------------------------------------- Transformer
    Mistake(STACK, "one-block-shared",
            edit=("[FinishedBlock(e, h, pre_norm, dropout) for _ in range(depth)]",
                  "[FinishedBlock(e, h, pre_norm, dropout)] * depth"), title="one block, shared by all places",
            says="`[block] * depth` is a list that holds the *same* block in every place. It runs, it is as deep as it "
                 "should be, and it has the weights of a single block: see what is missing from its parameters. Make a "
                 "new block for each place."),
    Alias(STACK, "one-block-in-a-loop", of="one-block-shared",
          edit=("nn.ModuleList(blocks)",
                "nn.ModuleList()\n        block = FinishedBlock(e, h, pre_norm, dropout)\n        for _ in "
                "range(depth):\n            self.blocks.append(block)")),
    Mistake(STACK, "plain-list", edit=("nn.ModuleList(blocks)", "blocks"), title="blocks in a plain list",
            says="PyTorch does not look into Python lists: the blocks' parameters are neither trained, nor saved, nor "
                 "moved to a GPU with the model. nn.ModuleList is a list that it looks into."),
    Mistake(STACK, "no-final-norm", edit=("self.norm = FinishedNorm(e) if pre_norm else None", "self.norm = None"),
            title="final norm missing with pre_norm",
            says="With pre_norm the blocks normalise what goes *into* their layers, so nothing has normalised the sum "
                 "that leaves the last one. One more norm belongs at the end."),
    Mistake(STACK, "final-norm-not-used", edit=("return x if self.norm is None else self.norm(x)", "return x"),
            title="the final norm is made and not used",
            says="You make the norm for the end and never call it."),
    Mistake(STACK, "final-norm-always",
            edit=("self.norm = FinishedNorm(e) if pre_norm else None", "self.norm = FinishedNorm(e)"),
            title="a final norm after blocks that end in one",
            says="With pre_norm=False each block ends in a norm already, the last one too. The extra norm is for "
                 "pre_norm=True only."),
    Mistake(STACK, "norm-in-front", instead=("", """
        if self.norm is not None:
            x = self.norm(x)
        for block in self.blocks:
            x = block(x, mask)
        return x
    """), title="the extra norm in front instead of at the end",
            says="Your extra norm comes before the first block, which begins with a norm anyway. It belongs after the "
                 "last one."),
    Mistake(STACK, "final-norm-turned-round",
            edit=("FinishedNorm(e) if pre_norm else None", "None if pre_norm else FinishedNorm(e)"),
            title="the final norm for the wrong order",
            says="Your stack ends in a norm with pre_norm=False, where the last block has just normalised, and has "
                 "none with pre_norm=True, where nobody has. It is the other way round."),
    Mistake(STACK, "sequential-with-a-mask", edit=(("nn.ModuleList(blocks)", "nn.Sequential(*blocks)"), ("""
        for block in self.blocks:
            x = block(x, mask)
""", """
        x = self.blocks(x, mask)
""")), title="nn.Sequential called with a mask",
            says="nn.Sequential hands on one thing from module to module and has no place for a mask. Go through the "
                 "blocks in a loop, and give each of them x and the mask."),
    Mistake(STACK, "list-called", edit=("""
        for block in self.blocks:
            x = block(x, mask)
""", """
        x = self.blocks(x, mask)
"""), title="nn.ModuleList called like a module",
            says="nn.ModuleList keeps modules and does not know what to do with an input. Go through it in a loop."),
    Mistake(STACK, "shortcut-around-blocks", edit=("x = block(x, mask)", "x = x + block(x, mask)"),
            title="a shortcut around each block",
            says="You add x to what each block gives. The shortcuts are inside the blocks already."),
    Mistake(STACK, "first-block-again", edit=("x = block(x, mask)", "x = self.blocks[0](x, mask)"),
            title="the first block again and again",
            says="Your loop calls the same block each time. It has to call each block once, one after the other."),
    Mistake(STACK, "returned-in-the-loop", instead=("", """
        for block in self.blocks:
            x = block(x, mask)
            return x if self.norm is None else self.norm(x)
    """), title="returned after the first block",
            says="Only the first block has a part in your result. Does a `return` stand inside the loop?"),
    Mistake(STACK, "single-block", edit=("range(depth)", "range(1)"), title="a single block, whatever the depth",
            says="Your stack has one block, whatever `depth` says."),
    Mistake(STACK, "norm-of-none", edit=("return x if self.norm is None else self.norm(x)", "return self.norm(x)"),
            title="the norm called where there is none",
            says="With pre_norm=False your `norm` is None, and you call it all the same. nn.Identity() could be "
                 "called; or ask first."),
    Mistake(STACK, "last-block-first", edit=("in self.blocks:", "in reversed(self.blocks):"), title="last block first",
            says="You go through the blocks from the last one to the first. x goes through the first block first."),
    Mistake(STACK, "last-block-left-out", edit=("in self.blocks:", "in self.blocks[:-1]:"),
            title="the last block is not called",
            says="All blocks are there, and your loop ends before the last one."),
    Mistake(STACK, "one-too-many", edit=("range(depth)", "range(depth + 1)"), title="one block too many",
            says="Your stack has depth + 1 blocks."),
    Mistake(STACK, "always-pre-norm", edit=("FinishedBlock(e, h, pre_norm, dropout)",
                                            "FinishedBlock(e, h, True, dropout)"),
            title="the blocks always normalise first",
            says="Your blocks are made with pre_norm=True, whatever was asked for. Hand on what came in."),
    Mistake(STACK, "mask-last-block-only", instead=("", """
        *others, last = self.blocks
        for block in others:
            x = block(x)
        x = last(x, mask)
        return x if self.norm is None else self.norm(x)
    """), title="only the last block gets the mask",
            says="Your last block obeys the mask and the others do not. What it must not see, the others have mixed in "
                 "before: every block needs it."),
    Mistake(STACK, "norm-in-the-loop", instead=("", """
        for block in self.blocks:
            x = block(x, mask)
            if self.norm is not None:
                x = self.norm(x)
        return x
    """), title="the final norm after every block",
            says="Your final norm stands inside the loop and is applied after every block. Once, at the end."),
    Mistake(STACK, "always-the-input", instead=("", """
        for block in self.blocks:
            y = block(x, mask)
        return y if self.norm is None else self.norm(y)
    """), title="every block gets the first input",
            says="Each block reads the x that came in, and only the last one's result is kept. Each has to read what "
                 "the one before it gave."),
    Mistake(STACK, "one-too-few", edit=("range(depth)", "range(depth - 1)"), title="one block too few",
            says="Your stack has depth − 1 blocks."),
    Mistake(STACK, "pre-norm-not-handed-on",
            edit=("FinishedBlock(e, h, pre_norm, dropout)", "FinishedBlock(e, h, dropout=dropout)"),
            title="pre_norm is not handed on to the blocks",
            says="Your blocks are made without `pre_norm`, so they always normalise last."),
    Mistake(STACK, "mask-not-handed-on", edit=("block(x, mask)", "block(x)"), title="the mask is not handed on",
            says="`forward` takes a mask and the blocks never see it, so everybody looks everywhere. Nothing raises, "
                 "because a block's mask may be left out."),
    Mistake(STACK, "mask-first-block-only", instead=("", """
        for block in self.blocks:
            x = block(x, mask)
            mask = None
        return x if self.norm is None else self.norm(x)
    """), title="only the first block gets the mask",
            says="Your first block obeys the mask and the others do not. What the first one hid, the second one sees: "
                 "every block needs it."),
    Mistake(STACK, "dropout-not-handed-on",
            edit=("FinishedBlock(e, h, pre_norm, dropout)", "FinishedBlock(e, h, pre_norm)"),
            title="dropout is not handed on to the blocks",
            says="`dropout` is taken and the blocks never hear of it, so nothing is dropped in training."),
    Mistake(STACK, "pre-norm-as-dropout",
            edit=("FinishedBlock(e, h, pre_norm, dropout)", "FinishedBlock(e, h, dropout, pre_norm)"),
            title="pre_norm and dropout exchanged",
            says="You hand `pre_norm` and `dropout` to the block in the wrong order; both are numbers to Python, so "
                 "nothing raises. Name them: `dropout=dropout`."),
    Accepted(STACK, "copies", instead=("""
        import copy
        first = FinishedBlock(e, h, pre_norm=pre_norm, dropout=dropout)
        self.blocks = nn.ModuleList(copy.deepcopy(first) for _ in range(depth))
        self.norm = nn.LayerNorm(e) if pre_norm else nn.Identity()
    """, """
        for k in range(len(self.blocks)):
            x = self.blocks[k](x, mask=mask)
        return self.norm(x)
    """)),
    Accepted(STACK, "append", instead=("""
        self.pre_norm = pre_norm
        self.blocks = nn.ModuleList()
        while len(self.blocks) < depth:
            self.blocks.append(FinishedBlock(e, h, pre_norm, dropout))
        if pre_norm:
            self.norm = FinishedNorm(e)
    """, """
        for block in self.blocks:
            x = block(x, mask)
        if self.pre_norm:
            x = self.norm(x)
        return x
    """)),
    Accepted(STACK, "sequence-of-blocks", edit=("nn.ModuleList(blocks)", "nn.Sequential(*blocks)")),
    # ----------------------------------------------------------------------------------- block_parameters
    Mistake(COUNT, "no-biases", edit=("return attention + network + norms", "return 12 * e * e"), title="matrices only",
            says="12e² is what the matrices hold, and for large e that is nearly everything. The biases and the two "
                 "norms are missing."),
    Mistake(COUNT, "no-norms", edit=("attention + network + norms", "attention + network"),
            title="4e short: the norms, or the bias of `widen`",
            says="You are 4e short. So many are the two norms, each with a weight and a bias of e numbers; and so many "
                 "is the bias of `widen`."),
    Mistake(COUNT, "one-norm", edit=("norms = 2 * (2 * e)", "norms = 2 * e"),
            title="2e short: one norm, or half of each",
            says="You are 2e short. There are two norms, and each has a weight *and* a bias of e numbers; and `unify` "
                 "and `narrow` have a bias of e numbers each."),
    Mistake(COUNT, "biased-projections", edit=("4 * e * e + e ", "4 * e * e + 4 * e "),
            title="biases for the three projections",
            says="You count 3e too many: queries, keys and values are projected without biases here. (GPT-2's have "
                 "them.)"),
    Mistake(COUNT, "no-unify-bias", edit=("4 * e * e + e ", "4 * e * e "),
            title="e short: the bias of unify, or of narrow",
            says="You are e short. `unify`, which mixes the heads, has a bias of e numbers, and so has `narrow`."),
    Mistake(COUNT, "no-unify", edit=("4 * e * e + e ", "3 * e * e "), title="unify left out",
            says="You count three matrices for the attention. The fourth mixes the heads, `unify`, and it has a bias."),
    Mistake(COUNT, "hidden-bias", edit=("(e * hidden + hidden)", "(e * hidden + e)"),
            title="3e short: the hidden layer's bias counted as e, or the norms",
            says="You are 3e short. The bias of `widen` has as many numbers as that layer has outputs, 4e and not e; "
                 "and the norms have 4e together."),
    Mistake(COUNT, "network-without-biases", edit=("(e * hidden + hidden) + (hidden * e + e)", "2 * e * hidden"),
            title="5e short: the biases of the network, or as many numbers elsewhere",
            says="You are 5e short. The biases of the network's two layers are 5e, one of 4e and one of e numbers; and "
                 "so many are the two norms together with the bias of `unify`."),
    Mistake(COUNT, "narrow-network", edit=("hidden = 4 * e", "hidden = e"), title="a hidden layer of width e",
            says="You count the feed-forward network as if its hidden layer were e wide. It is 4e."),
    Mistake(COUNT, "times-heads", edit=("4 * e * e + e ", "4 * h * e * e + e "), title="every head counted as e wide",
            says="You multiply by the number of heads. They share the width e among them, d = e/h each, so together "
                 "they have four e × e matrices, whatever h is."),
    Mistake(COUNT, "full-heads", edit=("4 * e * e + e ", "3 * h * e * e + e * e + e "),
            title="three full matrices for every head",
            says="You count three e × e matrices for every head. The heads share the width e among them, d = e/h each, "
                 "so together their projections are three e × e matrices, whatever h is."),
    Mistake(COUNT, "norms-but-no-biases",
            edit=(("4 * e * e + e ", "4 * e * e "), ("(e * hidden + hidden) + (hidden * e + e)", "2 * e * hidden")),
            title="6e short: no biases",
            says="You are 6e short. So many are the biases: e in `unify`, and 5e in the two layers of the network."),
    Mistake(COUNT, "attention-only", edit=("attention + network + norms", "attention"), title="the attention only",
            says="You count the attention. The feed-forward network and the two norms belong to the block as well."),
    Mistake(COUNT, "no-network", edit=("attention + network + norms", "attention + norms"),
            title="the feed-forward network left out",
            says="You have left the feed-forward network out, and it is the larger part."),
    Mistake(COUNT, "no-attention", edit=("attention + network + norms", "network + norms"),
            title="the attention, or one layer of the network, left out",
            says="You are 4e² + e short. That is what the attention has, three projections and `unify` with its bias; "
                 "and it is what the network's second layer has."),
    Mistake(COUNT, "head-width", edit=("4 * e * e + e ", "3 * e * (e // h) + e * e + e "),
            title="the projections of one head only",
            says="You count the projections of a single head, e × d. There are h of them, and h·d = e."),
    Accepted(COUNT, "formula", instead="return 12 * e**2 + 10 * e"),
    Accepted(COUNT, "layer-by-layer", instead="""
        def linear(m, n, bias=True):
            return m * n + n * bias
        heads = sum(linear(e, e // h, bias=False) * 3 for _ in range(h))
        return heads + linear(e, e) + linear(e, 4 * e) + linear(4 * e, e) + sum([e, e]) * 2
    """),
    Accepted(COUNT, "factored", instead="return 2 * e * (6 * e + 5)"),
    Shortcut(COUNT, "ask-the-block", instead="return sum(p.numel() for p in FinishedBlock(e, h).parameters())"),
]
