"""What students get wrong in lesson 17, and what to tell them."""

from helpers.authoring import Accepted, EquivalentMutant, Mistake, Shortcut

TRAINING, MATRICES, STEP, PARTS, AGAIN, WORK, MEAN, LAW = (
    "training_bytes",
    "attention_bytes",
    "scaled_step",
    "accumulated_gradients",
    "checkpointed",
    "flops_per_token",
    "averaged",
    "fit_power_law",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ------------------------------------------------------------------------------------- training_bytes
    Mistake(TRAINING, "one-moment", edit=("4 * parameters, 4 * parameters, 8 * parameters",
                                          "4 * parameters, 4 * parameters, 4 * parameters"),
            title="one moment in float32",
            says="In float32 your optimiser keeps one number for each parameter. AdamW keeps two: a running mean of "
                 "the gradients and one of their squares."),
    Mistake(TRAINING, "no-gradients",
            edit=(("2 * parameters, 2 * parameters, 12", "2 * parameters, 0, 12"),
                  ("4 * parameters, 4 * parameters, 8", "4 * parameters, 0, 8")), title="gradients forgotten",
            says="You count nothing for the gradients. There is one for each parameter, of its own type."),
    Mistake(TRAINING, "no-master-weights", edit=("12 * parameters", "8 * parameters"), title="no master weights",
            says="In mixed precision your optimiser keeps the two moments and no copy of the weights in 32 bits. "
                 "Without it most steps would be lost."),
    Mistake(TRAINING, "everything-in-half", edit=("12 * parameters", "4 * parameters"),
            title="moments in 16 bits",
            says="In mixed precision you count what the optimiser keeps in 16 bits. All of that stays in 32."),
    Mistake(TRAINING, "master-in-half", edit=("12 * parameters", "10 * parameters"),
            title="master weights in 16 bits",
            says="In mixed precision your master weights have two bytes each. They are there to have four."),
    Mistake(TRAINING, "mixed-as-float32", instead="return 4 * parameters, 4 * parameters, 8 * parameters",
            title="mixed precision counted as float32",
            says="You give the same three numbers for both. Their sums are equal, and the parts are not."),
    Mistake(TRAINING, "float32-as-mixed", instead="return 2 * parameters, 2 * parameters, 12 * parameters",
            title="float32 counted as mixed precision",
            says="You give the same three numbers for both. In float32 weights and gradients have four bytes each."),
    Mistake(TRAINING, "weights-in-float32", edit=("return 2 * parameters, 2 * parameters, 12 * parameters",
                                                  "return 4 * parameters, 2 * parameters, 12 * parameters"),
            title="weights of mixed precision in float32",
            says="In mixed precision the weights that the model computes with have 16 bits. The copy in 32 belongs to "
                 "the optimiser."),
    Accepted(TRAINING, "as-a-list", instead="""
        half = precision == "mixed"
        small = 2 if half else 4
        return [small * parameters, small * parameters, (4 * half + 8) * parameters]
    """),
    Accepted(TRAINING, "table", instead="""
        table = {"float32": (4, 4, 8), "mixed": (2, 2, 12)}
        return tuple(parameters * each for each in table[precision])
    """),
    # ------------------------------------------------------------------------------------ attention_bytes
    Mistake(MATRICES, "heads-forgotten", edit=("b * h * t**2", "b * t**2"), title="the heads forgotten",
            says="You count one matrix for each row and block. Each head has a matrix of its own."),
    Mistake(MATRICES, "one-row-of-weights", edit=("t**2", "t"), title="t in the place of t²",
            says="You count t numbers a head. There is one for each pair of a query and a key."),
    Mistake(MATRICES, "half-the-matrix", edit=("b * h * t**2 * depth * copies * bytes_each",
                                               "b * h * (t * (t + 1) // 2) * depth * copies * bytes_each"),
            title="only what the mask leaves",
            says="You count half of each matrix. Behind a causal mask stand zeros, and they take as much room as other "
                 "numbers."),
    Mistake(MATRICES, "one-block", edit=(" * depth", ""), title="one block",
            says="You count the matrices of one block. The backward pass needs those of all of them."),
    Mistake(MATRICES, "copies-forgotten", edit=(" * copies", ""), title="the copies forgotten",
            says="Your number does not depend on `copies`."),
    Mistake(MATRICES, "always-four-bytes", edit=("* bytes_each", "* 4"), title="always four bytes",
            says="Your number does not depend on `bytes_each`: you count four bytes a number whatever it says."),
    Mistake(MATRICES, "numbers-not-bytes", edit=(" * bytes_each", ""), title="numbers and not bytes",
            says="You count numbers. Each of them has `bytes_each` bytes."),
    Mistake(MATRICES, "megabytes", edit=("* bytes_each", "* bytes_each / 1e6"), title="megabytes",
            says="You return megabytes. Bytes are asked for."),
    Mistake(MATRICES, "one-row", edit=("b * h", "h"), title="one row of the batch",
            says="You count one row of the batch. Each has its own matrices."),
    Accepted(MATRICES, "product", instead="return math.prod((b, h, t, t, depth, copies, bytes_each))"),
    Accepted(MATRICES, "float", instead="return float(b) * h * t * t * depth * bytes_each * copies"),
    # ---------------------------------------------------------------------------------------- scaled_step
    # as in a published trainer
    Mistake(STEP, "clipped-first", instead="""
        learned = [parameter for parameter in parameters if parameter.grad is not None]
        nn.utils.clip_grad_norm_(learned, limit)
        for parameter in learned:
            parameter.grad.div_(scale)
        if not all(parameter.grad.isfinite().all() for parameter in learned):
            return scale / 2
        optimiser.step()
        return scale * growth
    """, title="clipped before it was divided",
            says="You clip while the gradients are still multiplied by the scale, and divide afterwards. What is left "
                 "of them is the limit divided by the scale. Divide first."),
    Mistake(STEP, "not-divided", edit=("parameter.grad.div_(scale)", "pass"), title="not divided by the scale",
            says="Your gradients stay multiplied by the scale: the step is that many times too long, or clipped when "
                 "it should not be."),
    Mistake(STEP, "multiplied", edit=(".div_(scale)", ".mul_(scale)"), title="multiplied by the scale again",
            says="You multiply the gradients by the scale. The loss was multiplied; undo it."),
    Mistake(STEP, "not-clipped", edit=("nn.utils.clip_grad_norm_(learned, limit)\n", "\n"), title="not clipped",
            says="Your step is not clipped: the gradients together may be longer than `limit`."),
    Mistake(STEP, "each-by-itself", edit=("nn.utils.clip_grad_norm_(learned, limit)",
                                          "[nn.utils.clip_grad_norm_([one], limit) for one in learned]"),
            title="each parameter clipped by itself",
            says="You clip each parameter's gradient by itself, which changes the direction of the step. The limit is "
                 "for all of them together."),
    Mistake(STEP, "clipped-by-value", edit=("clip_grad_norm_", "clip_grad_value_"), title="clipped number by number",
            says="You cut each number of the gradients at the limit. It is their common norm that is limited."),
    Mistake(STEP, "step-anyway", edit=("if not all(parameter.grad.isfinite().all() for parameter in learned):\n"
                                       "        return scale / 2",
                                       "whole = all(parameter.grad.isfinite().all() for parameter in learned)"),
            title="a step with infinity or NaN",
            says="You make a step although a gradient holds an infinity or NaN. It ruins the weights for good, and "
                 "the scale has to be halved."),
    Mistake(STEP, "nan-not-seen", edit=("if not all(parameter.grad.isfinite().all() for parameter in learned):",
                                        "if any(parameter.grad.isinf().any() for parameter in learned):"),
            title="NaN is not seen",
            says="You look for infinities alone. Where two of them meet in the backward pass the result is NaN."),
    Mistake(STEP, "made-finite", edit=("if not all(parameter.grad.isfinite().all() for parameter in learned):\n"
                                       "        return scale / 2",
                                       "spoilt = not all(parameter.grad.isfinite().all() for parameter in learned)\n"
                                       "    for parameter in learned:\n"
                                       "        parameter.grad.nan_to_num_(0, 0, 0)"),
            title="infinities replaced by zeros",
            says="You replace infinities and NaN and make a step with what is left. Their true values are not known: "
                 "leave the step out and halve the scale."),
    Mistake(STEP, "zeroed-and-stepped", edit=("return scale / 2", "[one.grad.zero_() for one in learned]\n"
                                              "        optimiser.step()\n        return scale / 2"),
            title="a step with zeros",
            says="Where a gradient is infinite or NaN you make a step with zeros. The optimiser's momentum moves the "
                 "weights all the same: leave the step out."),
    Mistake(STEP, "never-halved", edit=("return scale / 2", "return scale"), title="the scale is never halved",
            says="After a step that was left out your scale stays as it was, and the next one is infinite again."),
    Mistake(STEP, "never-grows", edit=("return scale * growth", "return scale"), title="the scale never grows",
            says="After a good step your scale stays as it was. After a few halvings it would be too small for ever."),
    Mistake(STEP, "grows-anyway", edit=("return scale / 2", "return scale * growth"),
            title="the scale grows after infinity",
            says="Where a gradient was infinite your scale grows. It was too large: halve it."),
    Mistake(STEP, "doubles", edit=("scale * growth", "scale * 2"), title="the scale is doubled",
            says="Your scale is doubled after each good step. It grows by the factor `growth`."),
    Mistake(STEP, "grad-of-none", edit=(" if parameter.grad is not None]", "]"),
            title="every parameter is taken to have a gradient",
            says="Your code fails on a parameter whose `.grad` is None, such as one of a layer that was not used. Pass "
                 "it over."),
    Mistake(STEP, "no-step", idle=True, edit=("    optimiser.step()\n", ""), title="no step at all",
            says="The gradients are prepared and no step is made with them."),
    Accepted(STEP, "by-hand", instead="""
        some = [p.grad for p in parameters if p.grad is not None]
        with torch.no_grad():
            for gradient in some:
                gradient.copy_(gradient / scale)
            norm = torch.stack([gradient.norm() for gradient in some]).norm()
            if not torch.isfinite(norm):
                return scale * 0.5
            if norm > limit:
                for gradient in some:
                    gradient *= limit / norm
        optimiser.step()
        return growth * scale
    """),
    Accepted(STEP, "inverse", edit=("parameter.grad.div_(scale)", "parameter.grad.mul_(1 / scale)")),
    Shortcut(STEP, "grad-scaler", instead="""
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_factor=growth, growth_interval=1)
        scaler.scale(torch.zeros(()))
        scaler.unscale_(optimiser)
        nn.utils.clip_grad_norm_(parameters, limit)
        scaler.step(optimiser)
        scaler.update()
        return scaler.get_scale()
    """),
    # ------------------------------------------------------------------------------ accumulated_gradients
    # as nearly all trainers had it until 2024
    Mistake(PARTS, "unchanged", instead="""
        for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts)):
            logits = model(some_ids).flatten(0, 1)
            loss = F.cross_entropy(logits, some_targets.flatten(), ignore_index=pad)
            (loss / parts).backward()
    """, title="the mean of the parts' means",
            says="You average the means of the parts. A part with few targets then counts as much as one with many. "
                 "Each target of the whole batch has to count the same."),
    Mistake(PARTS, "not-divided", edit=("(loss / tokens).backward()", "loss.backward()"),
            title="the sum over all targets",
            says="You leave the gradient of the *sum* of all losses. It is to be that of their mean over the batch."),
    Mistake(PARTS, "sum-of-means", edit=(("pad,\n                               reduction=\"sum\")", "pad)"),
                                         ("(loss / tokens).backward()", "loss.backward()")),
            title="the sum of the parts' means",
            says="You add up the means of the parts and divide by nothing: your gradients grow with the number of "
                 "parts."),
    Mistake(PARTS, "divided-by-parts-too", edit=("loss / tokens", "loss / tokens / parts"),
            title="divided twice",
            says="You divide by the number of targets in the batch and by the number of parts as well. The first is "
                 "enough."),
    Mistake(PARTS, "mean-and-tokens", edit=("pad,\n                               reduction=\"sum\")", "pad)"),
            title="a mean divided again",
            says="Each part's loss is a mean already, and you divide it by the number of targets once more."),
    Mistake(PARTS, "padding-counted", edit=("(targets != pad).sum()", "targets.numel()"), title="padding counted",
            says="You divide by all positions, padding included. Only targets that are no padding count."),
    Mistake(PARTS, "padding-learned", edit=("ignore_index=pad,", "ignore_index=-100,"), title="padding learned",
            says="Your loss counts the padding: the model is trained to predict it."),
    Mistake(PARTS, "padding-of-the-ids", edit=("(targets != pad)", "(ids != pad)"), title="the inputs counted",
            says="You count the inputs that are no padding. The loss is over the targets."),
    Mistake(PARTS, "cleared-each-time", edit=("logits = model(some_ids)", "model.zero_grad()\n"
                                              "        logits = model(some_ids)"),
            title="cleared before each part",
            says="You clear the gradients before each part, so only the last part's are left. Once, before the first."),
    Mistake(PARTS, "not-cleared", edit=("model.zero_grad()\n", "\n"), title="gradients from before",
            says="What stood in `.grad` before your function was called is still in it. Clear it once, at the "
                 "beginning."),
    Mistake(PARTS, "weighed-by-rows", instead="""
        for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts)):
            logits = model(some_ids).flatten(0, 1)
            loss = F.cross_entropy(logits, some_targets.flatten(), ignore_index=pad)
            (loss * len(some_ids) / len(ids)).backward()
    """, title="parts weighed by their rows",
            says="You weigh each part's mean by its number of rows. Rows have different numbers of targets: weigh by "
                 "these."),
    Mistake(PARTS, "clipped-in-parts", edit=("(loss / tokens).backward()", "(loss / tokens).backward()\n"
                                             "        nn.utils.clip_grad_norm_(model.parameters(), 0.1)"),
            title="clipped after each part",
            says="You clip after each part. Clipping belongs to the whole gradient, before the step, and is not asked "
                 "for here."),
    Accepted(PARTS, "tokens-in-front", instead="""
        count = (targets != pad).float().sum()
        for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts)):
            nats = F.cross_entropy(model(some_ids).transpose(1, 2), some_targets, ignore_index=pad, reduction="none")
            torch.div(nats.sum(), count).backward()
    """),
    Accepted(PARTS, "divided-at-the-end", instead="""
        for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts)):
            F.cross_entropy(model(some_ids).flatten(0, 1), some_targets.flatten(), ignore_index=pad,
                            reduction="sum").backward()
        for parameter in model.parameters():
            parameter.grad /= (targets != pad).sum()
    """),
    # --------------------------------------------------------------------------------------- checkpointed
    Mistake(AGAIN, "not-at-all", edit=("return Checkpoint.apply(block, x, *block.parameters())", "return block(x)"),
            title="not checkpointed",
            says="Your function runs the block as usual, and autograd keeps all that it computes."),
    # as in a published model
    Mistake(AGAIN, "other-draws", edit=("        set_random_state(x.device, context.state)\n", ""),
            title="other draws in the second run",
            says="Without dropout your gradients are right. With it the second run draws other numbers: they are the "
                 "gradients of another network. Put the random numbers back to where they stood."),
    Mistake(AGAIN, "random-not-put-back", edit=("        set_random_state(x.device, now)\n", ""),
            title="random numbers not put back afterwards",
            says="After your backward pass the random numbers stand where they stood after the forward pass of this "
                 "block, and everything drawn since would be drawn again. Note where they stand before you put them "
                 "back."),
    Mistake(AGAIN, "state-taken-late", edit=(("        context.state = random_state(x.device)\n", ""),
                                             ("        return block(x)\n        ### END SOLUTION",
                                              "        y = block(x)\n"
                                              "        context.state = random_state(x.device)\n"
                                              "        return y\n        ### END SOLUTION")),
            title="the random state noted after the run",
            says="You note the random state after the block has run. The second run has to begin where the first one "
                 "began."),
    Mistake(AGAIN, "no-gradient-for-x", edit=("return None, *torch.autograd.grad(y, [x, *context.parameters], slope)",
                                              "return None, None, *torch.autograd.grad(y, context.parameters, slope)"),
            title="no gradient for the input",
            says="The parameters get their gradients, and x gets none: nothing below this block would learn."),
    Mistake(AGAIN, "parameters-not-handed-over", edit=(("block, x, *block.parameters())", "block, x)"),
                                                       ("context.block, context.parameters = block, parameters",
                                                        "context.block, context.parameters = block, []")),
            title="the parameters not handed over",
            says="The parameters are not handed to `apply`, so autograd does not know of them, and they get no "
                 "gradient."),
    Mistake(AGAIN, "only-through-x", edit=(("block, x, *block.parameters())", "block, x)"),
                                           ("return None, *torch.autograd.grad(y, [x, *context.parameters], slope)",
                                            "y.backward(slope)\n        return None, x.grad"),
                                           ("context.block, context.parameters = block, parameters",
                                            "context.block = block")),
            title="nothing learned where x needs no gradient",
            says="Where x needs a gradient, all is right. Where it needs none, as in a first block, autograd never "
                 "calls your backward pass. Hand the parameters to `apply` too."),
    Mistake(AGAIN, "slope-forgotten", edit=("[x, *context.parameters], slope)",
                                            "[x, *context.parameters], torch.ones_like(slope))"),
            title="the slope from above not used",
            says="Your gradients are those of the sum of the output. What comes from above, `slope`, has to be "
                 "multiplied in: hand it to `torch.autograd.grad`."),
    Mistake(AGAIN, "evaluation-mode", edit=("y = context.block(x)", "y = context.block.eval()(x)"),
            title="the second run in evaluation mode",
            says="Your second run is in evaluation mode, without dropout. It has to be the same network as the first."),
    Mistake(AGAIN, "twice-the-gradient", edit=("[x, *context.parameters], slope)",
                                               "[x, *context.parameters], 2 * slope)"),
            title="twice the gradient",
            says="All your gradients are twice as large as they should be."),
    EquivalentMutant(AGAIN, "return block(x)", "return block(x).detach()",
        "in a Function's forward nothing is recorded anyway"),
    Accepted(AGAIN, "attributes", edit=(("context.save_for_backward(x)", "context.x = x"),
                                    ("(x,) = context.saved_tensors", "x = context.x"))),
    Accepted(AGAIN, "by-backward", edit=("return None, *torch.autograd.grad(y, [x, *context.parameters], slope)",
                                     "y.backward(slope)\n"
                                     "        return None, x.grad, *(None for _ in context.parameters)")),
    Accepted(AGAIN, "forked", edit=(("        now = random_state(x.device)\n"
                                 "        set_random_state(x.device, context.state)\n"
                                 "        with torch.enable_grad():\n", "        with torch.enable_grad(), "
                                 "torch.random.fork_rng():\n            set_random_state(x.device, context.state)\n"),
                                ("        set_random_state(x.device, now)\n", ""))),
    Shortcut(AGAIN, "pytorchs", edit=("return Checkpoint.apply(block, x, *block.parameters())",
                                      "return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)")),
    # ------------------------------------------------------------------------------------ flops_per_token
    Mistake(WORK, "attention-forgotten", edit=("2 * entries + 4 * depth * e * t", "2 * entries"),
            title="attention forgotten",
            says="You count the matrices alone. Scores and the mixing of values are products too, of queries with "
                 "keys and of weights with values."),
    Mistake(WORK, "scores-alone", edit=("4 * depth * e * t", "2 * depth * e * t"), title="the scores alone",
            says="You count the scores and not the mixing of values, which takes as many operations."),
    Mistake(WORK, "attention-of-one-block", edit=("4 * depth * e * t", "4 * e * t"),
            title="attention in one block",
            says="You count attention in one block. Each block has its own."),
    Mistake(WORK, "multiplications-alone", edit=("2 * entries + 4", "entries + 2"),
            title="multiplications without additions",
            says="You count multiplications. Each comes with an addition, and both are operations."),
    Mistake(WORK, "embedding-counted", edit=("e * n", "2 * e * n"), title="the embedding counted as a product",
            says="You count the embedding as a product with a matrix. It is a row that is looked up: nothing is "
                 "multiplied."),
    Mistake(WORK, "output-forgotten", edit=("12 * depth * e**2 + e * n", "12 * depth * e**2"),
            title="the output layer forgotten",
            says="You leave out the output layer, a matrix from e to n."),
    Mistake(WORK, "output-in-every-block", edit=("12 * depth * e**2 + e * n", "(12 * e**2 + e * n) * depth"),
            title="an output layer in each block",
            says="You count the output layer once for each block. There is one, at the end."),
    Mistake(WORK, "feed-forward-once", edit=("12 * depth", "8 * depth"), title="half of the feed-forward network",
            says="Your blocks have 8e² entries. Attention has four matrices (e, e), and the feed-forward network two "
                 "of (4e, e)."),
    Mistake(WORK, "no-unify", edit=("12 * depth", "11 * depth"), title="three matrices of attention",
            says="You count queries, keys and values. The heads are mixed by a fourth matrix."),
    Mistake(WORK, "backward-once", edit=("3 * forward", "2 * forward"), title="one product in the backward pass",
            says="In training you count twice the forward pass. The backward pass alone is twice as much: a product "
                 "for the input's gradient and one for the matrix's."),
    Mistake(WORK, "six-times-entries", edit=("3 * forward", "6 * entries"), title="attention not trained",
            says="Forward you count attention, and in training you do not: its products have gradients too."),
    Mistake(WORK, "causal-half", edit=("4 * depth * e * t", "2 * depth * e * (t + 1)"),
            title="only what the mask leaves",
            says="You count the pairs that a causal mask leaves. By the usual count, and in a plain program, all are "
                 "computed."),
    Accepted(WORK, "in-steps", instead="""
        block = 2 * (4 * e * e + 2 * 4 * e * e) + 2 * 2 * t * e
        total = depth * block + 2 * n * e
        return total, total + 2 * total
    """),
    Accepted(WORK, "six-n", instead="""
        N = 12 * depth * e * e + n * e
        return 2 * N + 4 * depth * e * t, 6 * N + 12 * depth * e * t
    """),
    # ------------------------------------------------------------------------------------------- averaged
    Mistake(MEAN, "plain-mean", edit=("sum(count * g for count, g in zip(counts, of_all)) / total",
                                      "sum(of_all) / len(of_all)"),
            title="the plain mean of the workers",
            says="You average over the workers. With equal shares that is right; a worker with few tokens has to count "
                 "less."),
    Mistake(MEAN, "sum", edit=("sum(count * g for count, g in zip(counts, of_all)) / total", "sum(of_all)"),
            title="the sum over the workers",
            says="You add the gradients up. The loss is a mean over all tokens."),
    Mistake(MEAN, "not-divided", edit=(" / total)", ")"), title="not divided by all tokens",
            says="You make each worker's mean a sum, and add up. Divide by the number of all tokens."),
    Mistake(MEAN, "divided-by-workers", edit=("/ total", "/ len(counts)"), title="divided by the number of workers",
            says="You weigh by tokens and divide by the number of workers. Divide by the number of all tokens."),
    Mistake(MEAN, "other-way-round", edit=("zip(counts, of_all)", "zip(counts[::-1], of_all)"),
            title="weights in the wrong order",
            says="Your weights belong to the workers in the opposite order."),
    Mistake(MEAN, "total-less-own", edit=("count * g for", "(total - count) * g for"),
            title="weighed by the others' tokens",
            says="You weigh each worker by the tokens of the others. One with many tokens has to count more."),
    Mistake(MEAN, "first-alone", edit=("sum(count * g for count, g in zip(counts, of_all)) / total", "of_all[0]"),
            title="the first worker's alone",
            says="You return the gradients of the first worker."),
    Mistake(MEAN, "as-if-sums", edit=("sum(count * g for count, g in zip(counts, of_all)) / total",
                                      "sum(of_all) / total"),
            title="means taken for sums",
            says="You add the workers' gradients up and divide by all tokens, as if they were sums. Each is a mean "
                 "over its own tokens."),
    Mistake(MEAN, "by-worker", edit=("zip(*gradients)", "gradients"), title="averaged over parameters",
            says="You go through the workers and average over the parameters of each. It is the other way round."),
    Mistake(MEAN, "in-place", edit=("        result.append(sum(count * g for count, g in zip(counts, of_all)) / total)",
                                    "        for count, g in zip(counts, of_all):\n"
                                    "            g *= count / total\n"
                                    "        result.append(sum(of_all))"), title="the workers' own changed",
            says="The numbers are right, and the workers' own gradients are changed on the way: `*=` writes into the "
                 "tensor."),
    EquivalentMutant(MEAN, "zip(counts, of_all)", "zip(of_all, counts)", "the two are multiplied"),
    Accepted(MEAN, "stacked", instead="""
        shares = [count / sum(counts) for count in counts]
        return [torch.stack([share * g for share, g in zip(shares, some)]).sum(0) for some in zip(*gradients)]
    """),
    Accepted(MEAN, "indices", instead="""
        result = []
        for place in range(len(gradients[0])):
            total = torch.zeros_like(gradients[0][place])
            for worker, count in enumerate(counts):
                total = total + gradients[worker][place] * count
            result.append(total / sum(counts))
        return tuple(result)
    """),
    # -------------------------------------------------------------------------------------- fit_power_law
    Mistake(LAW, "no-logarithm-of-sizes", edit=("torch.tensor(sizes, dtype=torch.float64).log()",
                                                "torch.tensor(sizes, dtype=torch.float64)"),
            title="a line in N",
            says="You take the logarithm of the losses alone, which fits an exponential. Take that of the sizes too."),
    Mistake(LAW, "no-logarithm-of-losses", edit=("torch.tensor(losses, dtype=torch.float64).log()",
                                                 "torch.tensor(losses, dtype=torch.float64)"),
            title="a line in the losses",
            says="You take the logarithm of the sizes alone. Take that of the losses too."),
    Mistake(LAW, "no-logarithms", edit=(("torch.tensor(sizes, dtype=torch.float64).log()",
                                         "torch.tensor(sizes, dtype=torch.float64)"),
                                        ("torch.tensor(losses, dtype=torch.float64).log()",
                                         "torch.tensor(losses, dtype=torch.float64)"),
                                        ("math.exp(y.mean() - slope * x.mean())",
                                         "(y.mean() - slope * x.mean()).item()")),
            title="a line without logarithms",
            says="You fit a straight line to the numbers themselves. A power law is a line in the logarithms of both."),
    Mistake(LAW, "sign", edit=("-slope.item()", "slope.item()"), title="the slope with its sign",
            says="You return the slope of the line. The law is written with a minus in the exponent, so α is minus the "
                 "slope."),
    Mistake(LAW, "height-in-logarithms", edit=("math.exp(y.mean() - slope * x.mean())",
                                               "(y.mean() - slope * x.mean()).item()"),
            title="ln a in the place of a",
            says="Your first number is the height of the line, ln a. Take it back out of the logarithm."),
    Mistake(LAW, "exchanged", edit=("return math.exp(y.mean() - slope * x.mean()), -slope.item()",
                                    "return -slope.item(), math.exp(y.mean() - slope * x.mean())"),
            title="a and α exchanged",
            says="You return α first. Asked is a, then α."),
    Mistake(LAW, "first-and-last", edit=("slope = (x_off * y_off).sum() / (x_off * x_off).sum()",
                                         "slope = (y[-1] - y[0]) / (x[-1] - x[0])"),
            title="through the first and the last point",
            says="Your slope is that from the first point to the last. Points on a line agree with it; otherwise all "
                 "points count."),
    Mistake(LAW, "through-the-origin", edit=("x_off, y_off = x - x.mean(), y - y.mean()", "x_off, y_off = x, y"),
            title="the means not taken off",
            says="Your slope is that of a line through the origin. Take the means off before you multiply."),
    Mistake(LAW, "other-axis", edit=("(x_off * y_off).sum() / (x_off * x_off).sum()",
                                     "(y_off * y_off).sum() / (x_off * y_off).sum()"),
            title="sizes fitted to losses",
            says="Your line is the nearest along the other axis: it predicts sizes from losses. On a line both agree."),
    Mistake(LAW, "first-point", edit=("math.exp(y.mean() - slope * x.mean())", "math.exp(y[0] - slope * x[0])"),
            title="through the first point",
            says="Your slope is right, and your line goes through the first point. The line of least squares goes "
                 "through the point of the means."),
    Mistake(LAW, "sign-of-the-height", edit=("y.mean() - slope * x.mean()", "y.mean() + slope * x.mean()"),
            title="the height with the wrong sign",
            says="α is right. For the height at x = 0 you go up the line where you have to go down it."),
    Mistake(LAW, "decimal-logarithms", edit=(("torch.tensor(sizes, dtype=torch.float64).log()",
                                              "torch.tensor(sizes, dtype=torch.float64).log10()"),
                                             ("torch.tensor(losses, dtype=torch.float64).log()",
                                              "torch.tensor(losses, dtype=torch.float64).log10()")),
            title="two kinds of logarithm",
            says="You take logarithms to base 10 and come back by e. α is the same in both, and a is not."),
    EquivalentMutant(LAW, "y - y.mean()", "y", "x_off adds up to 0, so that no constant in y matters"),
    EquivalentMutant(LAW, "y - y.mean()", "y + y.mean()", "x_off adds up to 0, so that no constant in y matters"),
    EquivalentMutant(LAW, "y.mean()", "y.sum()", "x_off adds up to 0, so that no constant in y matters"),
    EquivalentMutant(LAW, "torch.tensor(losses, dtype=torch.float64)", "torch.tensor(losses)",
        "exact enough for losses"),
    EquivalentMutant(LAW, "torch.tensor(sizes, dtype=torch.float64)", "torch.tensor(sizes)", "exact enough for sizes"),
    Accepted(LAW, "least-squares", instead="""
        x, y = (torch.tensor(some, dtype=torch.float64).log() for some in (sizes, losses))
        table = torch.stack([torch.ones_like(x), x], dim=1)
        height, slope = torch.linalg.lstsq(table, y.unsqueeze(1)).solution.flatten().tolist()
        return math.exp(height), -slope
    """),
    Accepted(LAW, "plain-python", instead="""
        x, y = [math.log(size) for size in sizes], [math.log(loss) for loss in losses]
        k = len(x)
        up = k * sum(p * q for p, q in zip(x, y)) - sum(x) * sum(y)
        alpha = -up / (k * sum(p * p for p in x) - sum(x) ** 2)
        return math.exp((sum(y) + alpha * sum(x)) / k), alpha
    """),
]
