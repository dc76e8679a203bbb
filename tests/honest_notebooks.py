"""Notebooks that are unusual and honest: each right, and each handed in by somebody who did nothing wrong.

An edit is given a released notebook in which every exercise already holds its right answer, and changes it as a
student would: lines for the shell, helpers in cells of one's own, drafts, scratch work, cells merged, split or moved,
metadata lost. In Jupyter, from top to bottom on that student's machine, every answer of the outcome is right.
"""

import base64
import textwrap
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Honest:
    name: str  # unique, in words
    lesson: str  # as "01_dot_product_attention"
    edit: Callable[[dict], None]  # changes the notebook in place
    loses: tuple[str, ...] = ()  # exercises that rightly earn nothing; all others are right


DOT = "01_dot_product_attention"
HEADS = "04_multi_head"
MASKS = "05_masking"
WRITER = "09_character_generator"
GPT = "12_gpt2"
BERT = "14_bert"

_found: list[Honest] = []


def honest(lesson, *, loses=()):
    """Keeps an edit under the words of its name."""

    def keep(edit):
        _found.append(Honest(edit.__name__.replace("_", " "), lesson, edit, tuple(loses)))
        return edit

    return keep


# Finding cells, and making them.


def text_of(source):
    """Code as it stands in a cell: without the margin it has in this file."""
    return textwrap.dedent(source).strip("\n")


def grade_id(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def cell_of(nb, name):
    """The cell of an exercise, of a check ("check_…"), or the setup cell ("setup")."""
    return next(cell for cell in nb["cells"] if grade_id(cell) == name)


def place_of(nb, name):
    return nb["cells"].index(cell_of(nb, name))


def exercises_of(nb):
    """The cells that hold answers, those of predictions too."""
    return [cell for cell in nb["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")]


def code_cells(nb):
    return [cell for cell in nb["cells"] if cell["cell_type"] == "code"]


def fresh_id(nb):
    taken = {cell.get("id") for cell in nb["cells"]}
    return next(f"own-{k}" for k in range(10_000) if f"own-{k}" not in taken)


def insert(nb, place, source, kind="code"):
    """Puts a new cell at a place, and returns it."""
    cell = {"cell_type": kind, "id": fresh_id(nb), "metadata": {}, "source": text_of(source)}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    nb["cells"].insert(place, cell)
    return cell


def add_before(nb, name, *sources):
    for source in sources:
        insert(nb, place_of(nb, name), source)


def add_after(nb, name, *sources):
    for source in reversed(sources):
        insert(nb, place_of(nb, name) + 1, source)


def add_first(nb, *sources):
    for source in reversed(sources):
        insert(nb, 0, source)


def add_last(nb, *sources):
    for source in sources:
        insert(nb, len(nb["cells"]), source)


def note_before(nb, name, text):
    insert(nb, place_of(nb, name), text, "markdown")


# Changing what a cell says.


def rewrite(nb, name, source):
    cell_of(nb, name)["source"] = text_of(source)


def append_to(nb, name, source):
    cell_of(nb, name)["source"] += "\n\n" + text_of(source)


def prepend_to(nb, name, source):
    cell = cell_of(nb, name)
    cell["source"] = text_of(source) + "\n" + cell["source"]


def swap(nb, name, old, new):
    """Puts new words for old ones, which stand once in the cell."""
    cell = cell_of(nb, name)
    assert cell["source"].count(old) == 1, f"{name}: {old!r} stands there {cell['source'].count(old)} times"
    cell["source"] = cell["source"].replace(old, new)


# Moving, merging, losing.


def remove(nb, name):
    nb["cells"].remove(cell_of(nb, name))


def move(nb, name, place):
    cell = cell_of(nb, name)
    nb["cells"].remove(cell)
    nb["cells"].insert(place, cell)


def merge_cells(nb, first, second):
    """The second cell's text stands in the first, and the second is gone."""
    cell_of(nb, first)["source"] += "\n\n" + cell_of(nb, second)["source"]
    remove(nb, second)


def split_cell(nb, name, before):
    """Two cells for one, with the same metadata; the second begins with the words of `before`."""
    cell, place = cell_of(nb, name), place_of(nb, name)
    upper, mark, lower = cell["source"].partition(before)
    assert mark, f"{name}: {before!r} does not stand there"
    twin = dict(cell, id=fresh_id(nb), metadata=dict(cell["metadata"]), source=mark + lower)
    cell["source"] = upper.rstrip("\n")
    nb["cells"].insert(place + 1, twin)


def duplicate(nb, name):
    """A copy of the cell under it, with its metadata. Returns the copy."""
    cell = cell_of(nb, name)
    twin = dict(cell, id=fresh_id(nb), metadata=dict(cell["metadata"]))
    nb["cells"].insert(place_of(nb, name) + 1, twin)
    return twin


def drop_ids(nb):
    """As a program writes it that knows no ids of cells."""
    nb["nbformat_minor"] = 4
    for cell in nb["cells"]:
        cell.pop("id", None)


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def result(count, plain, **others):
    """What Jupyter saves for the value of a cell's last line; others by their type, as text_html."""
    data = {"text/plain": plain} | {kind.replace("_", "/", 1): value for kind, value in others.items()}
    return {"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}}


def as_run(nb):
    """Numbers beside the cells, as a run from top to bottom leaves them."""
    for count, cell in enumerate(code_cells(nb), 1):
        cell["execution_count"] = count


# Lesson 1


@honest(DOT)
def on_colab_from_a_drive(nb):
    add_first(
        nb,
        """
        import os, sys
        IN_COLAB = 'google.colab' in sys.modules
        if IN_COLAB:
            from google.colab import drive
            drive.mount('/content/drive')
            %cd /content/drive/MyDrive/dot-product-to-gpt2
            !pip install -q safetensors seaborn
        """,
        "!nvidia-smi || echo no GPU today",
        "%pip install -q tqdm",
        """
        try:
            from google.colab import drive
            drive.mount('/content/drive', force_remount=True)
        except Exception as problem:
            print('not on Colab:', problem)
        """,
    )
    nb["metadata"] |= {"accelerator": "GPU", "colab": {"provenance": [], "gpuType": "T4", "toc_visible": True}}
    for number, cell in enumerate(nb["cells"]):
        cell["metadata"]["id"] = f"Xy{number:010d}"
        if cell["cell_type"] == "code":
            cell["metadata"] |= {"colab": {"base_uri": "https://localhost:8080/"}, "outputId": f"0c1f-{number}"}
    as_run(nb)


@honest(DOT)
def colab_kept_no_metadata_of_cells(nb):
    """The metadata is gone from every cell. The names are still there, in what the cells say."""
    for number, cell in enumerate(nb["cells"]):
        cell["metadata"] = {"id": f"q{number}"}


@honest(DOT)
def no_metadata_and_no_ids(nb):
    for cell in nb["cells"]:
        cell["metadata"] = {}
    drop_ids(nb)


@honest(DOT)
def magics_inside_of_answers(nb):
    prepend_to(nb, "raw_weights", "%%time\n# how long does the definition take?")
    append_to(
        nb,
        "masked_squared_error",
        """
        trial = %time masked_squared_error(torch.ones(2, 2), torch.ones(3, 2), torch.zeros(2, 3), torch.eye(2, 3) > 0)
        masked_squared_error?
        """,
    )
    append_to(nb, "row_softmax", "%timeit -n 3 -r 1 row_softmax(torch.randn(2, 5, 5))\n!echo timed\nlisted = !ls")
    prepend_to(nb, "self_attention", "%matplotlib inline\n%load_ext autoreload\n%autoreload 2")
    append_to(nb, "equivariance_gap", "?equivariance_gap\n%who function")


@honest(DOT)
def attention_from_ones_own_functions(nb):
    """Exercises 4 and 5 are built of the answers to 2 and 3."""
    rewrite(
        nb,
        "self_attention",
        """
        def self_attention(x):
            weights = row_softmax(raw_weights(x))
            return weights @ x
        """,
    )
    rewrite(
        nb,
        "hurried_attention",
        """
        def hurried_attention(x):
            weights = row_softmax(raw_weights(x))
            return self_attention(x), weights
        """,
    )


@honest(DOT)
def answers_that_are_lambdas(nb):
    rewrite(nb, "raw_weights", "raw_weights = lambda x: x @ x.transpose(1, 2)")
    rewrite(nb, "self_attention", "self_attention = lambda x: softmax(raw_weights(x), dim=-1) @ x")
    add_before(nb, "self_attention", "softmax = torch.softmax    # shorter")
    rewrite(
        nb,
        "equivariance_gap",
        "equivariance_gap = lambda attention, x, order: farthest(attention(x[:, order]), attention(x)[:, order])",
    )
    add_before(nb, "equivariance_gap", "farthest = lambda a, b: (a - b).abs().max()")


@honest(DOT)
def hints_that_need_imports_from_elsewhere(nb):
    add_after(
        nb,
        "setup",
        "import numpy as np",
        "from torch import Tensor\nimport torch.nn.functional as F",
        "from typing import Callable, TypeAlias\n\nAttention: TypeAlias = Callable[[Tensor], Tensor]",
    )
    swap(nb, "raw_weights", "def raw_weights(x):", "def raw_weights(x: Tensor) -> Tensor:")
    swap(nb, "row_softmax", "def row_softmax(scores):", 'def row_softmax(scores: "Tensor") -> "Tensor":')
    swap(nb, "self_attention", "torch.softmax(raw, dim=-1)", "F.softmax(raw, dim=-1)")
    swap(
        nb, "self_attention", "def self_attention(x):", "def self_attention(x: Tensor, axis: int = np.argmax([0, 1])):"
    )
    swap(
        nb,
        "equivariance_gap",
        "def equivariance_gap(attention, x, order):",
        "def equivariance_gap(attention: Attention, x: Tensor, order: Tensor) -> Tensor:",
    )


@honest(DOT)
def checks_merged_into_the_answers(nb):
    for name in ("raw_weights", "row_softmax", "hurried_attention"):
        merge_cells(nb, name, f"check_{name}")
    append_to(nb, "self_attention", "check(self_attention)")
    prepend_to(nb, "check_equivariance_gap", "# twice, to be sure\ncheck(equivariance_gap)")


@honest(DOT)
def drafts_before_the_last_word(nb):
    prepend_to(
        nb,
        "row_softmax",
        """
        def row_softmax(scores):    # overflows at 89
            return scores.exp() / scores.exp().sum(-1, keepdim=True)

        # def row_softmax(scores):
        #     return scores.softmax(-1)      not allowed

        """,
    )
    append_to(nb, "raw_weights", "    # return x @ x.T                 # turns all three axes!\n    # print(x.shape)")
    swap(
        nb,
        "raw_weights",
        "    return x @ x.transpose(1, 2)\n",
        '    return x @ x.transpose(1, 2)\n    raise NotImplementedError("write this")\n',
    )
    add_before(nb, "self_attention", "def self_attention(x):\n    return raw_weights(x) @ x    # softmax is missing")
    add_after(nb, "check_self_attention", "# old, from before the lecture:\n# def self_attention(x): return x.mean(1)")


@honest(DOT)
def two_answers_merged_into_one_cell(nb):
    move(nb, "row_softmax", place_of(nb, "raw_weights") + 1)
    merge_cells(nb, "raw_weights", "row_softmax")
    note_before(nb, "check_row_softmax", "My answer to exercise 3 stands in the cell of exercise 2.")


@honest(DOT)
def answers_split_into_two_cells(nb):
    rewrite(
        nb,
        "row_softmax",
        """
        def largest_of_rows(scores):
            return scores.amax(dim=-1, keepdim=True)

        def shares(powers):
            return powers / powers.sum(dim=-1, keepdim=True)

        def row_softmax(scores):
            return shares((scores - largest_of_rows(scores)).exp())
        """,
    )
    split_cell(nb, "row_softmax", "def row_softmax")
    append_to(nb, "self_attention", "print(self_attention(torch.ones(1, 2, 3)))")
    split_cell(nb, "self_attention", "print(")


@honest(DOT)
def scratch_prints_with_variables_of_the_lesson(nb):
    append_to(
        nb,
        "masked_squared_error",
        """
        print(table.users.shape, expected.shape)
        print(masked_squared_error(table.users, table.films, expected + 1, expected > 0))    # 1?
        plt.hist(expected.flatten().tolist())
        plt.show()
        """,
    )
    append_to(nb, "raw_weights", "print(vocabulary[:5], raw_weights(vectors[:3].unsqueeze(0)))")
    append_to(
        nb,
        "self_attention",
        "print((self_attention(x) - self_attention_in_loops(x)).abs().max())\nplots.heat(weights[0])",
    )
    append_to(nb, "equivariance_gap", "equivariance_gap(self_attention, x, order)")


@honest(DOT)
def windows_line_ends_and_tabs(nb):
    swap(nb, "row_softmax", "    powers = shifted.exp()\n", "    powers = shifted.exp()    \n\n")
    for name in ("raw_weights", "self_attention"):
        cell = cell_of(nb, name)
        cell["source"] = cell["source"].replace("    ", "\t")
    for cell in code_cells(nb):
        cell["source"] = cell["source"].replace("\n", "\r\n")


@honest(DOT)
def names_in_other_languages(nb):
    add_before(
        nb,
        "row_softmax",
        """
        # Größter Wert jeder Zeile — 每行的最大值 · самое большое число строки 🎈
        def größter_wert(zahlen):
            return zahlen.amax(dim=-1, keepdim=True)
        """,
        "Δ = lambda α, β: α - β\nполовина = 0.5; 一 = 1.0;",
    )
    rewrite(
        nb,
        "row_softmax",
        '''
        def row_softmax(scores):
            """Ein „Softmax“, geschrieben mit exp und Σ."""
            höhen = Δ(scores, größter_wert(scores)).exp()
            σ = höhen.sum(dim=-1, keepdim=True)
            return höhen / σ * (половина + половина) * 一;
        ''',
    )
    append_to(nb, "self_attention", "\n# ＯＫ\u00a0so…  ✅\n'¿por qué?', \"日本語\", '\\N{SNOWMAN}';")


@honest(DOT)
def tests_of_ones_own(nb):
    add_after(
        nb,
        "check_row_softmax",
        """
        import unittest

        class TestSoftmax(unittest.TestCase):
            def test_rows(self):
                self.assertTrue(torch.allclose(row_softmax(torch.randn(2, 3, 4)).sum(-1), torch.ones(2, 3)))

        unittest.main(argv=[''], exit=False, verbosity=0);
        """,
        """
        import doctest

        def double(number):
            '''
            >>> double(2)
            4
            '''
            return 2 * number

        doctest.testmod(verbose=False)
        """,
        "assert raw_weights(torch.ones(1, 2, 3)).tolist() == [[[3.0, 3.0], [3.0, 3.0]]], 'oh no'",
        "def test_self_attention():\n    assert self_attention(torch.ones(1, 2, 3)).shape == (1, 2, 3)",
    )
    append_to(nb, "row_softmax", "assert row_softmax(torch.zeros(1, 1, 4)).tolist() == [[[0.25] * 4]]")
    add_after(nb, "self_attention", "import inspect\nprint(inspect.getsource(self_attention))\ntest_self_attention()")


@honest(DOT)
def a_helper_between_the_answer_and_its_check(nb):
    """A function may call what is defined only later, if it is there when the function runs."""
    rewrite(
        nb,
        "equivariance_gap",
        """
        def equivariance_gap(attention, x, order):
            return distance(attention(permute(x, order)), permute(attention(x), order))
        """,
    )
    add_after(
        nb,
        "equivariance_gap",
        "def permute(x, order):\n    return x.index_select(AXIS_OF_POSITIONS, order)",
        "def distance(a, b):\n    return torch.max(torch.abs(a - b))\n\nAXIS_OF_POSITIONS = 1",
    )


@honest(DOT, loses=["row_softmax"])
def a_number_that_a_loop_has_found(nb):
    """The name is made by the loop and by nothing else."""
    add_before(
        nb,
        "row_softmax",
        """
        # the smallest number that 1 can be told from
        for tiny in (2.0 ** -k for k in range(100)):
            if 1 + tiny / 2 == 1:
                break
        """,
    )
    swap(
        nb,
        "row_softmax",
        "powers / powers.sum(dim=-1, keepdim=True)",
        "powers / (powers.sum(dim=-1, keepdim=True) + tiny)",
    )


# Lesson 4


@honest(HEADS)
def helpers_of_helpers(nb):
    """Each in a cell of its own, the last one three cells away."""
    add_after(
        nb,
        "setup",
        "TEMPLATE = 'e = {e} is not divisible by h = {h}'",
        "def complaint(e, h):\n    return TEMPLATE.format(e=e, h=h)",
        "def width_of_a_head(e, h):\n    if e % h:\n        raise ValueError(complaint(e, h))\n    return e // h",
    )
    rewrite(
        nb,
        "split_heads",
        """
        def split_heads(x, h):
            b, t, e = x.shape
            return x.view(b, t, h, width_of_a_head(e, h)).transpose(1, 2)
        """,
    )
    swap(
        nb,
        "MultiHeadAttention",
        '        if e % h != 0:\n            raise ValueError(f"e = {e} is not divisible by h = {h}")\n',
        "        width_of_a_head(e, h)    # complains\n",
    )


@honest(HEADS)
def a_base_class_in_another_cell(nb):
    add_before(
        nb,
        "MultiHeadAttention",
        """
        class Projected(nn.Module):
            '''Three projections and one to mix, made in a loop.'''

            NAMES = ('to_queries', 'to_keys', 'to_values')

            def __init__(self, e, bias=False):
                super().__init__()
                for name in self.NAMES:
                    setattr(self, name, nn.Linear(e, e, bias=bias))
                self.unify = nn.Linear(e, e)

            def projected(self, x):
                return [getattr(self, name)(x) for name in self.NAMES]
        """,
        "print(Projected(4).__dict__.keys())",
    )
    rewrite(
        nb,
        "MultiHeadAttention",
        """
        class MultiHeadAttention(Projected):
            def __init__(self, e, h):
                if e % h:
                    raise ValueError(f"cannot cut e = {e} into h = {h} heads: not divisible")
                super().__init__(e)
                self.h = h

            def forward(self, x):
                q, k, v = (finished_split(part, self.h) for part in self.projected(x))
                weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
                return self.unify(finished_merge(weights @ v))
        """,
    )


@honest(HEADS)
def records_in_other_cells(nb):
    add_after(
        nb,
        "setup",
        "from dataclasses import dataclass, field",
        """
        @dataclass(frozen=True)
        class Sizes:
            e: int
            h: int
            notes: list = field(default_factory=list)

            @property
            def d(self) -> int:
                return self.e // self.h

            @classmethod
            def of(cls, x, h):
                return cls(x.shape[-1], h)
        """,
        "from typing import NamedTuple",
        """
        class Layers(NamedTuple):
            projections: int
            unify: int

            def total(self):
                return sum(self)
        """,
    )
    rewrite(
        nb,
        "count_parameters",
        """
        def count_parameters(e, h, kind):
            sizes = Sizes(e, h)
            if kind == "narrow":
                layers = Layers(3 * e * e, e * e + e)
            elif kind == "wide":
                layers = Layers(projections=3 * e * h * e, unify=h * e * e + e)
            else:
                layers = Layers(e * e + 2 * e * sizes.d, e * e + e)
            return layers.total()
        """,
    )
    rewrite(
        nb,
        "folded_heads",
        """
        def folded_heads(q, k, v, h):
            b, t, e = q.shape
            sizes: Sizes = Sizes.of(q, h)
            folded = (x.reshape(b, t, h, sizes.d).transpose(1, 2) for x in (q, k, v))
            q, k, v = (x.reshape(b * h, t, sizes.d) for x in folded)
            weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(sizes.d), dim=-1)
            return torch.bmm(weights, v).reshape(b, h, t, sizes.d).transpose(1, 2).reshape(b, t, e)
        """,
    )


@honest(HEADS)
def match_and_walrus(nb):
    rewrite(
        nb,
        "count_parameters",
        """
        def count_parameters(e, h, kind):
            match kind:
                case "narrow":
                    return 4 * e**2 + e
                case "wide":
                    return 4 * h * e**2 + e
                case "multi-query" if (d := e // h):
                    return 2 * e**2 + 2 * e * d + e
                case _:
                    raise ValueError(kind)
        """,
    )
    swap(
        nb,
        "split_heads",
        "    b, t, e = x.shape\n    if e % h != 0:\n",
        "    b, t, e = x.shape\n    if (rest := e % h) != 0:\n",
    )
    swap(nb, "split_heads", "is not divisible by h = {h}", "is not divisible by h = {h}, {rest} would be left")


@honest(HEADS)
def formulas_in_a_table_elsewhere(nb):
    add_before(
        nb,
        "count_parameters",
        "BIAS = lambda e: e",
        """
        FORMULAS = {
            "narrow": lambda e, h: 4 * e * e + BIAS(e),
            "wide": lambda e, h: 4 * h * e * e + BIAS(e),
            "multi-query": lambda e, h: 2 * e * e + 2 * e * (e // h) + BIAS(e),
        }
        """,
        "for kind, formula in FORMULAS.items():\n    print(f'{kind:>12} {formula(512, 8):>12,}')",
    )
    rewrite(nb, "count_parameters", "def count_parameters(e, h, kind):\n    return FORMULAS[kind](e, h)")


@honest(HEADS)
def a_decorator_from_another_cell(nb):
    add_after(
        nb,
        "setup",
        "import functools\nfrom collections import Counter",
        "calls = Counter()",
        """
        def counted(function):
            @functools.wraps(function)
            def wrapper(*given, **named):
                calls[function.__name__] += 1
                return function(*given, **named)
            return wrapper
        """,
        """
        def told(words):
            '''A decorator with an argument.'''
            def decorate(function):
                function.words = words
                return function
            return decorate
        """,
    )
    for name in ("split_heads", "merge_heads"):
        prepend_to(nb, name, "@counted")
    prepend_to(nb, "fuse_heads", "@told('stacks rows')\n@counted")
    prepend_to(nb, "count_parameters", "@functools.lru_cache(maxsize=None)")
    add_after(nb, "check_count_parameters", "print(calls, fuse_heads.words, count_parameters.cache_info())")


@honest(HEADS)
def a_context_manager_of_ones_own(nb):
    add_before(
        nb,
        "folded_heads",
        """
        import time
        from contextlib import contextmanager

        spent = {}

        @contextmanager
        def timed(what):
            begin = time.perf_counter()
            try:
                yield
            finally:
                spent[what] = spent.get(what, 0) + time.perf_counter() - begin
        """,
    )
    rewrite(
        nb,
        "folded_heads",
        """
        def folded_heads(q, k, v, h):
            b, t, e = q.shape
            d = e // h
            with timed("fold"):
                q, k, v = (x.reshape(b, t, h, d).transpose(1, 2).reshape(b * h, t, d) for x in (q, k, v))
            with timed("attend"):
                weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d), dim=-1)
                y = torch.bmm(weights, v).reshape(b, h, t, d)
            return y.transpose(1, 2).reshape(b, t, e)

        print(spent)
        """,
    )


@honest(HEADS)
def hints_of_the_future(nb):
    """The import from __future__ has to stand first in a cell, and there it stands."""
    add_after(nb, "setup", "from __future__ import annotations")
    for name in ("split_heads", "fuse_heads"):
        prepend_to(nb, name, "from __future__ import annotations\n")
    swap(
        nb,
        "split_heads",
        "def split_heads(x, h):",
        "def split_heads(x: Float[Tensor, 'b t e'], h: int) -> Float[Tensor, 'b h t d']:",
    )
    swap(
        nb,
        "fuse_heads",
        "def fuse_heads(heads):",
        "def fuse_heads(heads: list[SingleHeadAttention]) -> tuple[Tensor, ...]:",
    )
    swap(nb, "merge_heads", "def merge_heads(x):", 'def merge_heads(x: "Float[Tensor, \'b h t d\']") -> "Tensor":')


@honest(HEADS)
def saved_by_vs_code(nb):
    nb["metadata"] = {
        "kernelspec": {"display_name": ".venv (3.11.9)", "language": "python", "name": "python3"},
        "language_info": {
            "codemirror_mode": {"name": "ipython", "version": 3},
            "file_extension": ".py",
            "mimetype": "text/x-python",
            "name": "python",
            "nbconvert_exporter": "python",
            "pygments_lexer": "ipython3",
            "version": "3.11.9",
        },
    }
    for cell in nb["cells"]:
        cell["metadata"] = {"vscode": {"languageId": "python"}} if cell["cell_type"] == "code" else {}
    insert(nb, 2, "%load_ext autoreload\n%autoreload 2\n%config InlineBackend.figure_format = 'retina'")
    as_run(nb)


@honest(HEADS)
def a_cell_copied_and_the_copy_edited(nb):
    copy = duplicate(nb, "split_heads")
    copy["source"] = text_of(
        """
        # second try, shorter
        def split_heads(x, h):
            b, t, e = x.shape
            if e % h:
                raise ValueError(f"e = {e} is not divisible by h = {h}")
            return x.unflatten(-1, (h, e // h)).transpose(1, 2)
        """
    )
    copy = duplicate(nb, "folded_heads")
    original = cell_of(nb, "folded_heads")
    right = "    y = torch.bmm(weights, v).reshape(b, h, t, d)\n    return y.transpose(1, 2).reshape(b, t, e)"
    assert right in original["source"]
    original["source"] = original["source"].replace(
        right, "    y = torch.bmm(weights, v)\n    return y.reshape(b, t, e)"
    )


@honest(HEADS)
def an_import_added_to_the_setup_cell(nb):
    swap(nb, "setup", "import math\n", "import math\nimport itertools\nimport numpy as np\n")
    append_to(nb, "setup", "from functools import partial, reduce\n\nnp.set_printoptions(precision=3)")
    swap(nb, "count_parameters", "return projections + unify", "return int(np.sum([projections, unify]))")
    rewrite(
        nb,
        "fuse_heads",
        """
        def fuse_heads(heads):
            names = ("to_queries", "to_keys", "to_values")
            stacked = partial(torch.cat, dim=0)
            return tuple(stacked([getattr(head, name).weight for head in heads]) for name in names)
        """,
    )
    add_after(nb, "setup", cell_of(nb, "setup")["source"] + "\n# once more, the kernel had died")


@honest(HEADS)
def pictures_inside_of_answers(nb):
    append_to(
        nb,
        "split_heads",
        """
        figure, ax = plt.subplots(1, 3, figsize=(6, 2))
        for axis, head in zip(ax, split_heads(torch.arange(30.0).view(1, 5, 6), 3)[0]):
            axis.imshow(head)
            axis.axis("off")
        figure.savefig("/tmp/heads.png")
        plt.show()
        """,
    )
    append_to(
        nb,
        "merge_heads",
        "from IPython.display import HTML, display\ndisplay(HTML('<b>merged</b>'), merge_heads(right[None]))",
    )
    append_to(nb, "fuse_heads", "plt.matshow(fuse_heads([SingleHeadAttention(6, 2)] * 3)[0].detach()); plt.colorbar();")
    append_to(
        nb, "MultiHeadAttention", "display(MultiHeadAttention(6, 3))\nget_ipython().run_line_magic('whos', 'Module')"
    )


@honest(HEADS)
def widgets_and_large_outputs_saved(nb):
    add_after(
        nb,
        "setup",
        "import ipywidgets as widgets\nwidgets.IntSlider(value=3, max=8, description='heads')",
        "print('roses ' * 200_000)",
        "from tqdm.notebook import tqdm\nfor _ in tqdm(range(3)):\n    pass",
    )
    slider, long, bar = nb["cells"][place_of(nb, "setup") + 1 :][:3]
    model = {"model_id": "0f3c", "version_major": 2, "version_minor": 0}
    view = result(2, "IntSlider(value=3, description='heads', max=8)")
    view["data"]["application/vnd.jupyter.widget-view+json"] = model
    slider["outputs"], long["outputs"] = [view], [printed("roses " * 200_000 + "\n")]
    bar["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"text/plain": "  0%|", **view["data"]}}]
    nb["metadata"]["widgets"] = {
        "application/vnd.jupyter.widget-state+json": {"state": {}, "version_major": 2, "version_minor": 0}
    }
    picture = base64.b64encode(b"\x89PNG" + b"heads" * 300_000).decode()
    as_run(nb)
    for cell in exercises_of(nb):
        shown = result(cell["execution_count"], "<Figure size 640x480 with 1 Axes>", text_html="<b>done</b>")
        shown["data"]["image/png"] = picture
        cell["outputs"] = [shown]


@honest(HEADS, loses=["merge_heads"])
def a_helper_from_a_file_that_was_run(nb):
    """What the magic brought from a file on the student's disk is not in the notebook."""
    add_before(nb, "merge_heads", "%run -i ~/lessons/shape_tools.py\n# has side_by_side(x): heads to one width")
    rewrite(nb, "merge_heads", "def merge_heads(x):\n    return side_by_side(x)")
    append_to(nb, "fuse_heads", "%run -i ~/lessons/show_weights.py")


# Lesson 5


@honest(MASKS)
def masks_kept_in_a_cache(nb):
    add_before(nb, "causal_mask", "KEPT = {}    # (t, device) -> mask")
    rewrite(
        nb,
        "causal_mask",
        """
        def causal_mask(t, device=None):
            key = t, str(device)
            if key not in KEPT:
                places = torch.arange(t, device=device)
                KEPT[key] = places <= places[:, None]
            return KEPT[key].clone()

        print(KEPT, causal_mask(3), KEPT)
        """,
    )
    add_before(
        nb,
        "padding_mask",
        """
        from functools import lru_cache

        @lru_cache
        def places_up_to(t, device):
            return torch.arange(t, device=device)
        """,
    )
    swap(nb, "padding_mask", "torch.arange(t, device=lengths.device)", "places_up_to(t, lengths.device)")


@honest(MASKS)
def a_layer_of_ones_own_masks(nb):
    """Exercise 5 calls the answers to 2 and 4 in place of the finished ones."""
    swap(nb, "CausalSelfAttention", "finished_masks.causal_mask(", "causal_mask(")
    swap(nb, "CausalSelfAttention", "finished_masks.masked_softmax(", "masked_softmax(")
    rewrite(
        nb,
        "causal_mask",
        """
        def causal_mask(t, device=None):
            return padding_mask(torch.arange(1, t + 1, device=device), t)[:, 0]    # of exercise 3, below
        """,
    )
    remove(nb, "check_causal_mask")
    insert(nb, place_of(nb, "check_padding_mask") + 1, "check(causal_mask)    # here, for it needs exercise 3")


@honest(MASKS)
def constants_of_many_kinds(nb):
    add_after(
        nb,
        "setup",
        "MINUS_INFINITY = -math.inf\nROOT = math.sqrt",
        "LOWEST: dict = {torch.float16: -65504.0, torch.bfloat16: torch.finfo(torch.bfloat16).min}",
        "FIRST, *OTHERS = 0.0, 1, 2\nNOTHING = torch.tensor(FIRST)",
        "softmax = torch.softmax\nfill_in = torch.Tensor.masked_fill",
        "import functools\nover_rows = functools.partial(softmax, dim=-1)",
        "lowest_of = lambda dtype: LOWEST.get(dtype, torch.finfo(dtype).min)",
    )
    rewrite(
        nb,
        "masked_softmax",
        """
        def masked_softmax(scores, mask):
            weights = over_rows(fill_in(scores, ~mask, lowest_of(scores.dtype)))
            return torch.where(mask, weights, NOTHING.to(weights))
        """,
    )
    swap(nb, "HurriedAttention", "math.sqrt(q.shape[-1])", "ROOT(q.shape[-1])")
    swap(nb, "HurriedAttention", "-math.inf", "MINUS_INFINITY")


@honest(MASKS)
def settings_left_on_in_scratch_cells(nb):
    add_after(
        nb,
        "check_leak_map",
        "torch.set_default_dtype(torch.float64)\nprint(leak_map(lambda x: x.cumsum(1), torch.randn(1, 3, 2)))",
        "torch.set_default_dtype(torch.float32)    # and back",
        "torch.manual_seed(42); import random; random.seed(42)\nimport numpy as np; np.random.seed(42)",
        'DEVICE = "cuda" if torch.cuda.is_available() else "cpu"\nprint(DEVICE, torch.get_num_threads())',
        "torch.set_printoptions(precision=2, sci_mode=False)\ntorch.backends.cudnn.benchmark = True",
        "torch.autograd.set_detect_anomaly(True)",
    )
    add_last(nb, "torch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\nlayer(x.double().float())")


@honest(MASKS)
def threads_waiting_and_awaiting(nb):
    add_after(
        nb,
        "check_causal_mask",
        "import asyncio\nawait asyncio.sleep(0.1)",
        """
        import threading, time

        def wait():
            time.sleep(0.2)
            print("waited")

        thread = threading.Thread(target=wait, daemon=True)
        thread.start(); thread.join()
        """,
        """
        async def slowly(t):
            await asyncio.sleep(0)
            return causal_mask(t)

        async with asyncio.timeout(5):
            print(await asyncio.gather(slowly(2), slowly(3)))
        """,
        "from tqdm.auto import tqdm, trange\nfor t in trange(3):\n    time.sleep(0.1)",
        """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as pool:
            print(list(pool.map(causal_mask, range(1, 4))))
        """,
    )


@honest(MASKS)
def a_training_without_an_end(nb):
    """It is stopped by hand, with the button."""
    add_after(
        nb,
        "check_CausalSelfAttention",
        """
        model = Guesser(CausalSelfAttention(32, 1))
        optimiser = torch.optim.Adam(model.parameters())
        best = float("inf")
        try:
            while True:
                inputs, targets = next_token_pairs(torch.randint(8, (32, 13)))
                loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
                optimiser.zero_grad(); loss.backward(); optimiser.step()
                best = min(best, loss.item())
        except KeyboardInterrupt:
            print("stopped at", best)
        """,
        "import gc\ndel model, optimiser\ngc.collect()\ntorch.cuda.empty_cache()",
    )
    add_last(
        nb,
        "who = input('name for this run?')\nprint('hello', who)",
        "import sys\nsys.exit()",
        "raise SystemExit('enough for today')",
    )


@honest(MASKS)
def logging_warnings_and_the_environment(nb):
    add_first(
        nb,
        """
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ["SLURM_JOB_ID"] = os.environ.get("SLURM_JOB_ID", "none")
        """,
        "import warnings\nwarnings.filterwarnings('ignore')\nwarnings.simplefilter('ignore', UserWarning)",
    )
    add_after(
        nb,
        "setup",
        """
        import logging

        logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
        log = logging.getLogger("lesson 5")
        """,
    )
    swap(nb, "padding_mask", "    real = positions", '    log.debug("lengths %s", lengths)\n    real = positions')
    swap(
        nb,
        "masked_softmax",
        "    lowest =",
        "    if scores.isnan().any():\n        log.warning('NaN among the scores')\n    lowest =",
    )
    add_before(
        nb,
        "leak_map",
        """
        def without_warnings(function):
            def quiet(*given):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return function(*given)
            quiet.__name__ = function.__name__
            return quiet
        """,
    )
    prepend_to(nb, "leak_map", "@without_warnings")


@honest(MASKS)
def cell_magics_of_many_kinds(nb):
    prepend_to(nb, "next_token_pairs", "%%time")
    prepend_to(nb, "masked_softmax", "%%capture said\n")
    add_after(
        nb,
        "setup",
        "%matplotlib inline\n%precision 3\n%pwd",
        "%%bash\nhostname\nif [ -d /scratch ]; then ls /scratch; fi",
        "%%html\n<style>.card { font-size: 110% }</style>",
        "%%timeit -n 1 -r 1\nsum(range(1000))",
        "%%writefile /tmp/scratch_of_mine.py\ndef causal_mask(t):\n    return 'not this one'",
        "%env TOKENIZERS_PARALLELISM=false",
        "%%javascript\nconsole.log('def padding_mask')",
        "%%prun -q\nsorted(range(1000))",
        "files = !ls\nprint(len(files), files[:2])\n!echo {len(files)} && echo $HOME",
    )
    append_to(nb, "causal_mask", "triangle_of_four = %time causal_mask(4)\ncausal_mask??")
    append_to(nb, "leak_map", "%xmode Plain\n%pdb off")


@honest(MASKS)
def slopes_by_another_road(nb):
    add_before(
        nb,
        "leak_map",
        "from torch.autograd.functional import jacobian as all_slopes",
        """
        def by_positions(slopes):
            '''(t, f, b, t, e) to (t, t).'''
            return slopes.abs().amax(dim=(1, 2, 4))
        """,
    )
    rewrite(
        nb,
        "leak_map",
        """
        def leak_map(model, x):
            of_all_sequences = lambda z: model(z).sum(dim=0)    # each depends on its own inputs only
            return by_positions(all_slopes(of_all_sequences, x.detach().clone()))
        """,
    )


@honest(MASKS)
def answers_at_other_places(nb):
    """All exercises stand together at the top, with a table of contents; the checks stayed."""
    names = [grade_id(cell) for cell in exercises_of(nb)]
    for name in reversed(names):
        move(nb, name, place_of(nb, "setup") + 1)
    note_before(nb, names[0], "# My answers\n\n" + "\n".join(f"1. `{name}`" for name in names))
    note_before(nb, "check_causal_mask", "$$j \\le i$$ ✔ asked in the forum: does *may look* include itself? **Yes.**")
    insert(nb, len(nb["cells"]), "raw, not code", "raw")


@honest(MASKS)
def the_stub_left_after_the_return(nb):
    for cell in exercises_of(nb):
        if "return" in cell["source"].splitlines()[-1]:
            last = cell["source"].splitlines()[-1]
            cell["source"] += "\n" + last[: len(last) - len(last.lstrip())] + 'raise NotImplementedError("write this")'
    swap(
        nb,
        "HurriedAttention",
        "        heads = self.attend(q, k, v, self.triangle[:t, :t])\n",
        "        # heads = self.attend(q, k, v)\n        heads = self.attend(q, k, v, self.triangle[:t, :t])\n",
    )


@honest(MASKS)
def merged_with_a_scratch_cell_above(nb):
    """The answer's cell is gone: its text stands in a cell of one's own, as after "merge with the cell above"."""
    for name in ("padding_mask", "masked_softmax"):
        source = cell_of(nb, name)["source"]
        add_before(nb, name, "print('a note to myself:', 1 + 1)\n\n" + source)
        remove(nb, name)


@honest(MASKS, loses=["padding_mask"])
def a_row_that_a_loop_has_made(nb):
    add_before(
        nb,
        "padding_mask",
        """
        for power in range(13):
            long_row = torch.arange(2 ** power)
        print(len(long_row), "will do")
        """,
    )
    swap(nb, "padding_mask", "torch.arange(t, device=lengths.device)", "long_row[:t].to(lengths.device)")


# Lesson 9


@honest(WRITER)
def a_writer_with_ones_own_filters(nb):
    add_before(
        nb,
        "generate",
        """
        def keep_top_k(logits, k):
            least = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
            return logits.masked_fill(logits < least, NEVER)
        """,
        "NEVER = -torch.inf",
    )
    swap(nb, "generate", "finished_temperature(", "apply_temperature(")
    swap(nb, "generate", "finished_top_k(", "keep_top_k(")
    swap(nb, "generate", "finished_top_p(", "keep_top_p(")


@honest(WRITER)
def a_mode_for_looking(nb):
    """One context manager for two exercises; it stands in a cell with scratch work."""
    add_before(
        nb,
        "generate",
        """
        from contextlib import contextmanager

        @contextmanager
        def looking(model):
            before = model.training
            model.eval()
            try:
                yield model
            finally:
                model.train(before)

        with looking(model) as same:
            print(same(as_ids("The")).shape)
        """,
    )
    rewrite(
        nb,
        "generate",
        """
        @torch.no_grad()
        def generate(model, prompt, count, temperature=1.0, top_k=None, top_p=None, generator=None):
            tokens = prompt
            with looking(model):
                for _ in range(count):
                    logits = finished_temperature(model(tokens[:, -model.t_max:])[:, -1], temperature)
                    logits = logits if top_k is None else finished_top_k(logits, top_k)
                    logits = logits if top_p is None else finished_top_p(logits, top_p)
                    drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
                    tokens = torch.cat([tokens, drawn], dim=1)
            return tokens[:, prompt.shape[1]:]
        """,
    )
    rewrite(
        nb,
        "sliding_window_bits",
        """
        @torch.no_grad()
        def sliding_window_bits(model, data, t):
            data = data.long()
            head, nats = data[:t + 1], 0.0
            with looking(model):
                nats += F.cross_entropy(model(head[None, :-1])[0], head[1:], reduction="sum")
                if len(data) > t + 1:
                    for part in data.unfold(0, t + 1, 1)[1:].split(128):
                        nats += F.cross_entropy(model(part[:, :-1])[:, -1], part[:, -1], reduction="sum")
            return nats / (len(data) - 1) / math.log(2)
        """,
    )


@honest(WRITER)
def numbers_from_other_cells(nb):
    add_after(
        nb,
        "setup",
        "LOG2 = math.log(2)\nEPS = 1e-9",
        "NATS_TO_BITS, BITS_TO_NATS = 1 / LOG2, LOG2",
        "in_bits = lambda nats: nats * NATS_TO_BITS",
    )
    swap(nb, "bits_of_windows", "nats.item() / math.log(2)", "in_bits(nats.item())")
    swap(
        nb,
        "sliding_window_bits",
        "return nats / (len(data) - 1) / math.log(2)",
        "return in_bits(nats) / (len(data) - 1)",
    )
    swap(nb, "apply_temperature", "if temperature < 0:", "if temperature < -EPS:")


@honest(WRITER)
def a_model_with_more_methods(nb):
    add_before(
        nb,
        "CharTransformer",
        """
        class Counting:
            @property
            def weights(self):
                return sum(p.numel() for p in self.parameters())
        """,
    )
    rewrite(
        nb,
        "CharTransformer",
        """
        class CharTransformer(Counting, nn.Module):
            def __init__(self, n, e, h, depth, t_max):
                super().__init__()
                parts = {"tokens": nn.Embedding(n, e), "positions": PositionEmbedding(t_max, e),
                         "transformer": Transformer(e, h, depth, pre_norm=True), "to_logits": nn.Linear(e, n)}
                for name, part in parts.items():
                    setattr(self, name, part)
                self.__dict__["t_max"] = t_max

            @staticmethod
            def tokenize(text):
                return torch.tensor([list(text.encode())])

            def extra_repr(self):
                return f"{self.weights:,} weights"

            def __len__(self):
                return self.t_max

            def forward(self, ids):
                x = self.positions(self.tokens(ids))
                return self.to_logits(self.transformer(x, causal_mask(ids.shape[1], ids.device)))

        tiny = CharTransformer(256, 8, 2, 1, 16)
        print(tiny, tiny.__dict__.keys(), tiny(tiny.tokenize("hello")).shape)
        """,
    )


@honest(WRITER)
def drawing_by_a_python_generator(nb):
    add_before(
        nb,
        "generate",
        """
        def chain(*filters):
            def together(logits):
                for change in filters:
                    logits = change(logits)
                return logits
            return together
        """,
        """
        def drawn_one_by_one(model, tokens, change, generator):
            while True:
                chances = change(model(tokens[:, -model.t_max:])[:, -1]).softmax(dim=-1)
                new = torch.multinomial(chances, num_samples=1, generator=generator)
                tokens = torch.cat((tokens, new), dim=1)
                yield new
        """,
        "from itertools import islice",
    )
    rewrite(
        nb,
        "generate",
        """
        def generate(model, prompt, count, temperature=1.0, top_k=None, top_p=None, generator=None):
            change = chain(
                lambda logits: finished_temperature(logits, temperature),
                lambda logits: logits if top_k is None else finished_top_k(logits, top_k),
                lambda logits: logits if top_p is None else finished_top_p(logits, top_p),
            )
            mode = model.training
            with torch.no_grad():
                new = list(islice(drawn_one_by_one(model.eval(), prompt, change, generator), count))
            model.train(mode)
            return torch.cat(new, dim=1) if new else prompt[:, :0]
        """,
    )


@honest(WRITER)
def imports_that_may_fail(nb):
    add_after(
        nb,
        "setup",
        """
        try:
            from tqdm.auto import tqdm
        except ImportError:
            def tqdm(steps, **options):
                return steps
        """,
        """
        try:
            import einops
        except ImportError:
            einops = None
        """,
        """
        try:
            import cupy as xp
        except ImportError:
            import numpy as xp
        """,
    )
    swap(nb, "sliding_window_bits", "in windows.split(64):", "in tqdm(windows.split(64), disable=True):")
    swap(nb, "apply_temperature", "    if temperature > 0:\n", "    if xp.sign(temperature) > 0:\n")
    swap(
        nb,
        "sample_batch",
        "    slices = data[places].long()\n",
        "    slices = data[places].long()\n    assert einops is None or slices.dim() == 2\n",
    )


@honest(WRITER)
def a_no_grad_of_ones_own(nb):
    add_after(
        nb,
        "setup",
        "no_grad = torch.no_grad\nquietly = torch.inference_mode",
        "from torch import full_like, inf as INF",
    )
    for name in ("generate", "bits_of_windows"):
        swap(nb, name, "@torch.no_grad()", "@no_grad()")
    swap(nb, "apply_temperature", "torch.full_like(logits, -torch.inf)", "full_like(logits, -INF)")
    add_after(
        nb,
        "check_bits_of_windows",
        "with quietly():\n    print(bits_of_windows(model.cpu(), held_out[:1000], t))\nmodel.to(device());",
    )


@honest(WRITER)
def a_whole_night_of_scratch_work(nb):
    add_after(
        nb,
        "check_CharTransformer",
        """
        big = CharTransformer(256, 512, 8, 12, t_max=512).to(device())
        adam = torch.optim.AdamW(big.parameters(), lr=3e-4)
        for step in range(10 ** 9):
            inputs, targets = sample_batch(train, 64, 512)
            loss = F.cross_entropy(big(inputs.to(device())).flatten(0, 1), targets.to(device()).flatten())
            adam.zero_grad(set_to_none=True); loss.backward(); adam.step()
            if step % 1000 == 0:
                torch.save(big.state_dict(), "/tmp/big.pt"); print(step, loss.item())
            if loss.item() < 0.5:
                break
        """,
        "import gc; del big, adam; gc.collect(); torch.cuda.empty_cache()",
        "import time\ntime.sleep(3600)    # the queue of the cluster",
        """
        import traceback
        try:
            CharTransformer(256, 10, 3, 1, 8)
        except Exception:
            traceback.print_exc()
        """,
        "import inspect\nprint(inspect.getsource(sample_batch), inspect.signature(CharTransformer))",
        "1 / 0    # does the notebook go on?",
    )
    next(cell for cell in nb["cells"] if "1 / 0" in cell["source"])["metadata"]["tags"] = ["raises-exception"]
    add_before(nb, "sample_batch", "print('x' * 3_000_000)")


@honest(WRITER)
def an_older_format_without_ids(nb):
    drop_ids(nb)
    note = {"cell_type": "markdown", "metadata": {"collapsed": True}, "source": "Exported from the cluster, 3 May."}
    nb["cells"].insert(0, note)
    for cell in code_cells(nb):
        cell["metadata"] |= {"collapsed": False, "jupyter": {"outputs_hidden": False}, "scrolled": True}
        cell["metadata"]["ExecuteTime"] = {"end_time": "2025-05-03T12:00:01Z", "start_time": "2025-05-03T12:00:00Z"}
    nb["metadata"]["toc"] = {"base_numbering": 1, "nav_menu": {}}


@honest(WRITER)
def cut_down_by_percent_marks(nb):
    """Written in an editor that knows cells by marks; the marks stayed."""
    for cell in exercises_of(nb):
        cell["source"] = "# %%\n" + cell["source"] + "\n\n# %% scratch\n# In[ ]:\n"
    append_to(nb, "keep_top_p", "print(keep_top_p(torch.zeros(1, 4), 0.5)); keep_top_p(torch.randn(2, 5), 0.9);")
    append_to(nb, "sample_batch", "if __name__ == '__main__':\n    print(sample_batch(train, 2, 5), show(train[:20]))")
    append_to(nb, "apply_temperature", "apply_temperature(logits, 0.5) if 'logits' in dir() else None;")


@honest(WRITER)
def a_nucleus_by_a_helper_class(nb):
    add_before(
        nb,
        "keep_top_p",
        "import enum\n\nclass Order(enum.Enum):\n    FALLING = True\n    RISING = False",
        """
        class Ranked:
            __slots__ = ("values", "places")

            def __init__(self, logits, order=Order.FALLING):
                self.values, self.places = logits.sort(dim=-1, descending=order.value)

            @property
            def before(self):
                chances = self.values.softmax(dim=-1)
                return chances.cumsum(dim=-1) - chances

            def back(self, marks):
                return torch.empty_like(marks).scatter(-1, self.places, marks)
        """,
    )
    rewrite(
        nb,
        "keep_top_p",
        """
        def keep_top_p(logits, p):
            ranked = Ranked(logits)
            return logits.masked_fill(ranked.back(ranked.before >= p), -torch.inf)
        """,
    )


@honest(WRITER)
def a_predecessor_pasted_below(nb):
    """The answer stands in its cell. Below are the outputs of an error, and cells turned into text."""
    insert(
        nb, place_of(nb, "check_generate") + 1, "def generate(model, prompt, count):\n    return prompt    # old", "raw"
    )
    insert(nb, place_of(nb, "check_generate") + 1, "```python\ndef generate(*_): ...\n```", "markdown")
    as_run(nb)
    cell_of(nb, "check_keep_top_p")["outputs"] = [
        {"output_type": "error", "ename": "CheckFailed", "evalue": "keep_top_p", "traceback": ["\x1b[31mold\x1b[0m"]}
    ]
    cell_of(nb, "generate")["execution_count"] = 731
    cell_of(nb, "generate")["metadata"]["tags"] = ["hard", "ask-the-tutor"]
    cell_of(nb, "sample_batch")["metadata"]["editable"] = True


@honest(WRITER, loses=["keep_top_p"])
def a_module_of_ones_own(nb):
    """It lies beside the notebook on the student's disk, and is not handed in."""
    add_before(nb, "keep_top_p", "from my_sampling_tools import nucleus")
    rewrite(
        nb, "keep_top_p", "def keep_top_p(logits, p):\n    return logits.masked_fill(~nucleus(logits, p), -torch.inf)"
    )


# Lesson 12


@honest(GPT)
def attention_by_a_partial_function(nb):
    add_before(
        nb,
        "GPT2Block",
        "import functools",
        "causal = functools.partial(F.scaled_dot_product_attention, is_causal=True)",
    )
    rewrite(
        nb,
        "GPT2Block",
        cell_of(nb, "GPT2Block")["source"].partition("        t, e = x.shape[-2:]")[0]
        + "        q, k, v = (split_heads(part, self.h) for part in self.attention.to_qkv(x).chunk(3, dim=-1))\n"
        + "        return self.attention.unify(merge_heads(causal(q, k, v)))\n\n"
        + "    def forward(self, x):\n"
        + "        x = x + self.attend(self.norm1(x))\n"
        + "        return x + self.feed_forward.narrow(finished_gelu(self.feed_forward.widen(self.norm2(x))))\n",
    )


@honest(GPT)
def layers_from_a_family(nb):
    """A base class of a base class, in two cells, and a mixin in a third."""
    add_before(
        nb,
        "Conv1D",
        "START = dict(weight=0.02, bias=0.0)",
        """
        class Affine(nn.Module):
            def __init__(self, *shape):
                super().__init__()
                self.weight = nn.Parameter(START["weight"] * torch.randn(*shape))
                self.bias = nn.Parameter(torch.full(shape[-1:], START["bias"]))
        """,
        "class Told:\n    def extra_repr(self):\n        return ' x '.join(map(str, self.weight.shape))",
        "class Stored(Told, Affine):\n    pass",
    )
    rewrite(
        nb,
        "Conv1D",
        """
        class Conv1D(Stored):
            def __init__(self, n_in, n_out):
                super().__init__(n_in, n_out)

            def forward(self, x):
                return x @ self.weight + self.bias

        Conv1D(2, 3)
        """,
    )


@honest(GPT)
def names_by_regular_expressions(nb):
    add_before(
        nb,
        "rename_weights",
        "import re",
        r"""
        UNWANTED = re.compile(r"lm_head\.weight|.*\.attn\.(masked_)?bias")
        PREFIX = re.compile(r"^transformer\.")
        """,
    )
    rewrite(
        nb,
        "rename_weights",
        r"""
        OURS = {
            r"^wte\.": "tokens.", r"^wpe\.": "positions.", r"^h\.": "blocks.", r"^ln_f\.": "norm.",
            r"\.ln_1\.": ".norm1.", r"\.ln_2\.": ".norm2.",
            r"\.attn\.c_attn\.": ".attention.to_qkv.", r"\.attn\.c_proj\.": ".attention.unify.",
            r"\.mlp\.c_fc\.": ".feed_forward.widen.", r"\.mlp\.c_proj\.": ".feed_forward.narrow.",
        }

        def rename_weights(published):
            def renamed(name):
                name = PREFIX.sub("", name)
                for theirs, ours in OURS.items():
                    name = re.sub(theirs, ours, name)
                return name
            return {renamed(name): tensor for name, tensor in published.items() if not UNWANTED.fullmatch(name)}
        """,
    )


@honest(GPT)
def the_table_of_names_moved_away(nb):
    """OURS came with the exercise; it stands in a cell of its own now."""
    split_cell(nb, "rename_weights", "def rename_weights")
    table = cell_of(nb, "rename_weights")
    table["metadata"] = {}
    add_before(nb, "for_linear", "MATRICES = {'attn.c_attn', 'attn.c_proj', 'mlp.c_fc', 'mlp.c_proj'}")
    swap(
        nb,
        "for_linear",
        'if ".c_" in name and name.endswith(".weight"):',
        'if any(name.endswith(matrix + ".weight") for matrix in MATRICES):',
    )


@honest(GPT)
def gradients_switched_off_for_good(nb):
    add_after(
        nb,
        "check_perplexity",
        "with torch.no_grad():\n    print(perplexity(pocket, ids_of('import os')[0]))",
        "torch.set_grad_enabled(False)",
    )
    add_last(nb, "torch.set_grad_enabled(True)\ntorch.set_num_threads(4)\ntorch.manual_seed(0)")


@honest(GPT)
def a_star_import_elsewhere(nb):
    add_after(nb, "setup", "from math import *", "from torch.nn.functional import cross_entropy")
    swap(nb, "GPT2Block", "math.sqrt(e // self.h)", "sqrt(e // self.h)")
    swap(nb, "perplexity", "F.cross_entropy(logits, targets).exp()", "exp(cross_entropy(logits, targets).item())")


@honest(GPT)
def hints_with_types_of_ones_own(nb):
    add_after(
        nb,
        "setup",
        "from typing import NamedTuple, Protocol, TypeVar, Optional\nfrom collections.abc import Mapping",
        "from torch import Tensor\n\nNames = Mapping[str, Tensor]\nModel = TypeVar('Model', bound=nn.Module)",
        "class Predicts(Protocol):\n    def __call__(self, ids: Tensor) -> Tensor: ...",
        "class Step(NamedTuple):\n    logits: Tensor\n    chosen: Tensor",
    )
    swap(
        nb,
        "rename_weights",
        "def rename_weights(published):",
        "def rename_weights(published: Names) -> dict[str, Tensor]:",
    )
    swap(
        nb,
        "perplexity",
        "def perplexity(model, ids):",
        "def perplexity(model: Predicts, ids: Tensor) -> Optional[Tensor]:",
    )
    swap(
        nb,
        "generate_cached",
        "def generate_cached(model, ids, count):",
        'def generate_cached(model: "Model", ids: Tensor, count: int):',
    )
    swap(
        nb,
        "generate_cached",
        "        new = logits.argmax(dim=-1, keepdim=True)\n        chosen.append(new)\n"
        "    return torch.cat(chosen, dim=1)",
        "        chosen.append(Step(logits, logits.argmax(dim=-1, keepdim=True)))\n        new = chosen[-1].chosen\n"
        "    return torch.cat([step.chosen for step in chosen], dim=1)",
    )


@honest(GPT)
def perplexity_in_small_steps(nb):
    add_before(
        nb,
        "perplexity",
        "def surprise(chance):\n    return -chance.log()",
        "def chances_of(logits, targets):\n    return logits.softmax(dim=-1)[range(len(targets)), targets]",
        "def mean_surprise(logits, targets):\n    return surprise(chances_of(logits.double(), targets)).mean()",
    )
    rewrite(
        nb,
        "perplexity",
        """
        @torch.no_grad()
        def perplexity(model, ids):
            return math.exp(mean_surprise(model(ids[None, :-1])[0], ids[1:]))

        # what does it say?
        for text in ("import os", "os import"):
            print(text, perplexity(pocket, ids_of(text)[0]))
        """,
    )


@honest(GPT)
def the_course_imported_once_more(nb):
    """Imports from the course in own cells, under own names."""
    add_before(
        nb,
        "GPT2",
        "from helpers.parts.gpt2 import GPT2Block as Block\nfrom helpers.lesson import start",
        "import torch.nn as layers, torch as th",
    )
    swap(nb, "GPT2", "FinishedBlock(config)", "Block(config)")
    swap(nb, "GPT2", "self.norm = nn.LayerNorm(", "self.norm = layers.LayerNorm(")
    swap(nb, "GPT2", "torch.arange(", "th.arange(")
    add_after(nb, "check_GPT2", 'check = start("12_gpt2")\ncheck(GPT2)')


@honest(GPT)
def scores_by_an_index(nb):
    add_before(
        nb,
        "induction_score",
        """
        def rows_and_columns(t, period):
            rows = torch.arange(period, t)
            return rows, rows - period + STEP
        """,
        "STEP = 1    # what followed",
    )
    rewrite(
        nb,
        "induction_score",
        """
        def induction_score(weights, period):
            i, j = rows_and_columns(weights.shape[-1], period)
            return weights[..., i, j].mean(dim=-1)

        even = torch.full((4, 4), 0.25)
        assert induction_score(even, 2) == 0.25
        print(*(f"{name}: {tuple(published[name].shape)}" for name in sorted(published)[:3]), sep="\\n")
        """,
    )


@honest(GPT)
def cells_split_and_copied(nb):
    append_to(nb, "perplexity", "print(perplexity(pocket, ids_of('x = 1')[0]))")
    split_cell(nb, "perplexity", "print(")
    duplicate(nb, "induction_score")["source"] += (
        "\n\n# the copy, to play with\nprint(induction_score(torch.eye(6), 3))"
    )
    draft = cell_of(nb, "for_linear")["source"]
    cell_of(nb, "for_linear")["source"] = (
        "# draft\n" + draft.replace("tensor = tensor.T", "pass") + "\n\n# final\n" + draft
    )


@honest(GPT)
def answers_with_work_at_their_end(nb):
    append_to(
        nb,
        "GPT2",
        """
        small = GPT2(pocket.config)
        print(f"{sum(p.numel() for p in small.parameters()):,}")
        with torch.no_grad():
            plots.heat(small(ids_of("import os"))[0, :, :8])
        plt.show()
        """,
    )
    append_to(nb, "rename_weights", "print(list(rename_weights(published))[:3], len(published));")
    append_to(
        nb,
        "generate_cached",
        "said = tokenizer.decode(generate_cached(pocket, ids_of('def '), 8)[0])\nprint(said)\n!date",
    )
    append_to(nb, "Conv1D", "%timeit -n 1 -r 1 Conv1D(3, 4)(torch.ones(2, 3))")


@honest(GPT)
def a_cluster_with_modules_and_checkpoints(nb):
    add_first(
        nb,
        "!module load cuda/12.1 2>/dev/null; squeue --me 2>/dev/null; nvidia-smi",
        """
        import os, sys
        home = os.path.expanduser("~/course")
        sys.path.insert(0, home)
        if os.path.isdir(home):
            os.chdir(home)
        """,
        "%load_ext tensorboard\n%tensorboard --logdir runs",
    )
    add_before(
        nb,
        "GPT2",
        """
        from pathlib import Path
        CHECKPOINTS = Path(os.environ.get("SCRATCH", "/tmp")) / "checkpoints"
        CHECKPOINTS.mkdir(parents=True, exist_ok=True)
        """,
    )
    add_after(nb, "check_GPT2", 'torch.save(GPT2(pocket.config).state_dict(), CHECKPOINTS / "fresh.pt")')
    nb["metadata"]["kernelspec"] = {"display_name": "torch-2 (cluster)", "language": "python", "name": "torch2"}


@honest(GPT)
def a_counter_that_is_global(nb):
    add_before(
        nb,
        "generate_cached",
        "steps_so_far = 0",
        """
        def tick():
            global steps_so_far
            steps_so_far += 1
        """,
        "LOG = []\nnote = LOG.append",
    )
    swap(
        nb,
        "generate_cached",
        "    for step in range(count):\n",
        "    for step in range(count):\n        tick(); note(step)\n",
    )
    add_after(nb, "check_generate_cached", "print(steps_so_far, len(LOG))\n%reset -f out")


@honest(GPT)
def one_definition_for_each_version_of_torch(nb):
    """A function that is defined in either branch of an if, in another cell."""
    add_before(
        nb,
        "GPT2Block",
        """
        if hasattr(F, "scaled_dot_product_attention"):
            def attend_causally(q, k, v):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            def attend_causally(q, k, v):
                t, d = q.shape[-2:]
                future = torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1)
                scores = (q @ k.transpose(-2, -1) / math.sqrt(d)).masked_fill(future, -torch.inf)
                return scores.softmax(dim=-1) @ v
        """,
    )
    source = cell_of(nb, "GPT2Block")["source"]
    begin, end = source.index("        scores = q @"), source.index("    def forward")
    ours = "        return self.attention.unify(merge_heads(attend_causally(q, k, v)))\n\n"
    cell_of(nb, "GPT2Block")["source"] = source[:begin] + ours + source[end:]


# Lesson 14


@honest(BERT)
def pieces_by_recursion(nb):
    add_before(
        nb,
        "wordpiece",
        'UNKNOWN = "[UNK]"\nMARK = "##"',
        """
        def longest(text, vocabulary, mark):
            '''The longest known beginning of a text, or None.'''
            ends = range(len(text), 0, -1)
            return next((text[:end] for end in ends if mark + text[:end] in vocabulary), None)
        """,
        """
        def cut(text, vocabulary, mark=""):
            if not text:
                return []
            if (piece := longest(text, vocabulary, mark)) is None:
                raise LookupError(text)
            return [mark + piece, *cut(text[len(piece):], vocabulary, MARK)]
        """,
    )
    rewrite(
        nb,
        "wordpiece",
        """
        def wordpiece(word, vocabulary, limit=100):
            try:
                return cut(word, vocabulary) if len(word) <= limit else [UNKNOWN]
            except LookupError:
                return [UNKNOWN]
        """,
    )


@honest(BERT)
def shares_in_a_table(nb):
    add_before(nb, "corrupt", 'SHARES = {"hidden": 0.8, "drawn": 0.1}\nASKED = 0.15\nIGNORED = -100')
    swap(nb, "corrupt", "(chance() < 0.15)", "(chance() < ASKED)")
    swap(nb, "corrupt", "(fate >= 0.8) & (fate < 0.9)", '(fate >= SHARES["hidden"]) & (fate < sum(SHARES.values()))')
    swap(nb, "corrupt", "(fate < 0.8), mask_id", '(fate < SHARES["hidden"]), mask_id')
    swap(nb, "corrupt", "~chosen, -100)", "~chosen, IGNORED)")
    swap(nb, "label_first_pieces", "labels[words], -100)", "labels[words], IGNORED)")


@honest(BERT)
def a_loss_in_parts(nb):
    add_before(
        nb,
        "masked_loss",
        "from functools import partial\nsummed = partial(F.cross_entropy, reduction='sum', ignore_index=NOT_ASKED)",
        "at_least_one = torch.tensor(1)",
    )
    add_after(nb, "setup", "NOT_ASKED = -100")
    rewrite(
        nb,
        "masked_loss",
        """
        def masked_loss(logits, targets):
            count = targets.ne(NOT_ASKED).sum()
            return summed(logits.flatten(0, 1), targets.flatten()) / torch.maximum(count, at_least_one.to(count))
        """,
    )


@honest(BERT)
def an_entrance_in_a_class_of_its_own(nb):
    """The three tables come with a base class, so that their names stay."""
    add_before(
        nb,
        "Bert",
        """
        class Entrance(nn.Module):
            SIZES = {"tokens": "n", "positions": "t_max", "segments": "segments"}

            def __init__(self, config):
                super().__init__()
                self.config = config
                for name, size in self.SIZES.items():
                    setattr(self, name, nn.Embedding(getattr(config, size), config.e))
                self.norm = LayerNorm(config.e, config.epsilon)

            def enter(self, ids, segments):
                places = torch.arange(ids.shape[1], device=ids.device)
                return self.norm(self.tokens(ids) + self.positions(places) + self.segments(segments))
        """,
        """
        def new_block(c):
            options = dict(hidden=c.hidden, activation=F.gelu, bias=True, epsilon=c.epsilon)
            return FinishedBlock(c.e, c.h, **options)
        """,
    )
    rewrite(
        nb,
        "Bert",
        """
        class Bert(Entrance):
            def __init__(self, config):
                super().__init__(config)
                self.blocks = nn.ModuleList(new_block(config) for _ in range(config.depth))
                self.pooler = nn.Linear(config.e, config.e)

            def forward(self, ids, segments=None, mask=None):
                x = self.enter(ids, torch.zeros_like(ids) if segments is None else segments)
                for block in self.blocks:
                    x = block(x, mask if mask is None else mask[:, None])
                return x, self.pooler(x[:, 0]).tanh()
        """,
    )


@honest(BERT)
def steps_of_low_rank_with_helpers(nb):
    add_before(
        nb,
        "LowRank",
        """
        def frozen(layer):
            for weight in layer.parameters():
                weight.requires_grad = False
            return layer
        """,
        "from math import sqrt as root",
        "def normal(*shape):\n    return torch.randn(*shape) / root(shape[-1])",
    )
    rewrite(
        nb,
        "LowRank",
        """
        class LowRank(nn.Module):
            def __init__(self, linear, rank, alpha):
                super().__init__()
                n_out, n_in = linear.weight.shape
                self.linear, self.merged, self.scale = frozen(linear), False, alpha / rank
                self.A = nn.Parameter(normal(rank, n_in))
                self.B = nn.Parameter(torch.zeros(n_out, rank))

            @property
            def step(self):
                return self.scale * self.B @ self.A

            def forward(self, x):
                if self.merged:
                    return self.linear(x)
                return self.linear(x) + self.scale * (x @ self.A.T) @ self.B.T

            @torch.no_grad()
            def _turn(self, merged):
                if merged != self.merged:
                    self.linear.weight.add_(self.step if merged else -self.step)
                    self.merged = merged
                return self.linear

            def merge(self):
                return self._turn(True)

            def unmerge(self):
                self._turn(False)
        """,
    )


@honest(BERT)
def names_by_a_chain_of_functions(nb):
    add_before(nb, "rename_bert", "from functools import reduce\nfrom operator import itemgetter")
    rewrite(
        nb,
        "rename_bert",
        cell_of(nb, "rename_bert")["source"].partition("def rename_bert")[0]
        + text_of(
            """
            def rename_bert(published):
                return {in_our_words(name): published[name] for name in filter(wanted, published)}
            """
        ),
    )
    add_after(
        nb,
        "rename_bert",
        'without_prefix = lambda name: name.removeprefix("bert.")',
        """
        def in_our_words(name):
            return reduce(lambda so_far, pair: so_far.replace(*pair), OURS.items(), without_prefix(name))
        """,
        """
        def wanted(name):
            return not (without_prefix(name).startswith("cls.") or name.endswith("position_ids"))
        """,
    )


@honest(BERT)
def pairs_with_deques_and_matches(nb):
    add_before(nb, "pair_input", "from collections import deque\nimport itertools as it")
    rewrite(
        nb,
        "pair_input",
        """
        def pair_input(a, b, cls, sep, t_max):
            first, second = deque(a), deque(b or ())
            match b:
                case None:
                    special = 2
                case _:
                    special = 3
            while (much := len(first) + len(second) + special) > t_max:
                (first if len(first) >= len(second) else second).pop()
            left = [cls, *first, sep]
            right = [] if b is None else [*second, sep]
            segments = it.chain(it.repeat(0, len(left)), it.repeat(1, len(right)))
            return left + right, list(segments)
        """,
    )
    rewrite(
        nb,
        "label_first_pieces",
        """
        def label_first_pieces(labels, words):
            before = torch.cat([words.new_tensor([-1]), words[:-1]])
            first = (words != before) & (words >= 0)
            return torch.where(first, labels[words.clamp(min=0)], -100);
        """,
    )


@honest(BERT)
def merged_and_the_checks_too(nb):
    merge_cells(nb, "pair_input", "check_pair_input")
    merge_cells(nb, "masked_loss", "check_masked_loss")
    move(nb, "label_first_pieces", place_of(nb, "rename_bert") + 1)
    merge_cells(nb, "rename_bert", "label_first_pieces")
    append_to(nb, "rename_bert", "# both at once\ncheck(rename_bert)")


@honest(BERT)
def metadata_of_the_answers_lost(nb):
    """Those of the answers alone: they were copied into new cells and the old ones were cut out."""
    for name in ("wordpiece", "corrupt", "Bert", "LowRank"):
        source = cell_of(nb, name)["source"]
        add_before(nb, name, source)
        remove(nb, name)


@honest(BERT)
def prints_of_what_the_lesson_has_at_hand(nb):
    append_to(
        nb, "masked_loss", "print(masked_loss(torch.randn(*targets.shape, len(vocabulary)), targets), inputs.shape)"
    )
    append_to(
        nb, "pair_input", "print(pair_input(tokenizer.encode(texts[0])[0], [5], tokenizer.cls, tokenizer.sep, 12))"
    )
    append_to(
        nb,
        "label_first_pieces",
        """
        print(run["pairs"][0], len(example["pieces"]))
        for word in sorted(BLAME)[:3]:
            print(word, wordpiece(word, vocabulary))
        words_of_one = torch.tensor([-1, 0, 0, 1, -1])
        label_first_pieces(torch.tensor([1, 0]), words_of_one)
        """,
    )
    append_to(
        nb,
        "LowRank",
        "tell('nothing trained', tune(copy.deepcopy(pocket), 0, 0, frozen=True))\nvars(LowRank(nn.Linear(2, 2), 1, 1))",
    )


@honest(BERT)
def drafts_of_a_class(nb):
    """A class is written twice in its cell, and a copy of another one is kept for comparison."""
    whole = cell_of(nb, "Bert")["source"]
    cell_of(nb, "Bert")["source"] = (
        "class Bert(nn.Module):\n    pass    # TODO\n\n"
        + whole
        + "\n\nOldBert = Bert    # for comparing\n# class Bert: ...\n"
    )
    prepend_to(nb, "wordpiece", '"""\nNotes: greedy, never goes back.\n\ndef wordpiece(word): ...\n"""\n')
    append_to(nb, "corrupt", "'''\ninputs = torch.where(chance() < 0.1, drawn, ids)   # theirs\n'''\nNone;")
    add_after(
        nb,
        "check_LowRank",
        "class LowRank2(LowRank):\n    '''With a dropout, some day.'''\n\nLowRank2(nn.Linear(3, 3), 1, 2)",
    )


@honest(BERT)
def a_table_made_in_one_line(nb):
    """A dict comprehension is a constant as well: one assignment, and nothing but it."""
    add_before(
        nb,
        "rename_bert",
        'TABLES = dict(tokens="word", positions="position", segments="token_type")',
        'ENTRANCE = {f"embeddings.{theirs}_embeddings.": f"{ours}." for ours, theirs in TABLES.items()}',
    )
    swap(
        nb,
        "rename_bert",
        '    "embeddings.word_embeddings.": "tokens.",\n'
        '    "embeddings.position_embeddings.": "positions.",\n'
        '    "embeddings.token_type_embeddings.": "segments.", "embeddings.LayerNorm."',
        '    **ENTRANCE,\n    "embeddings.LayerNorm."',
    )


@honest(BERT)
def an_evening_on_colab(nb):
    add_first(
        nb,
        "!git clone -q https://github.com/someone/course.git 2>/dev/null\n%cd -q course",
        "%pip install -q sentencepiece\n!pip list 2>/dev/null | grep -i torch",
        "from google.colab import output\noutput.enable_custom_widget_manager()",
        '#@title Settings { run: "auto" }\nrank = 4 #@param {type:"slider", min:1, max:16, step:1}',
    )
    prepend_to(nb, "wordpiece", '#@title Exercise 1 { display-mode: "form" }')
    prepend_to(nb, "label_first_pieces", "%%time\n")
    append_to(
        nb, "corrupt", "!nvidia-smi --query-gpu=memory.used --format=csv\ncounts = %timeit -o -q -n 1 -r 1 corrupt"
    )
    for cell in nb["cells"]:
        cell["metadata"].pop("deletable", None)
        cell["metadata"] |= {"cellView": "form"} if cell["cell_type"] == "code" else {}
    add_last(
        nb,
        "from google.colab import runtime\nruntime.unassign()",
        "from google.colab import files\nfiles.download('14_bert.ipynb')",
    )


@honest(BERT, loses=["pair_input"])
def a_number_from_a_training(nb):
    """The name is bound in the body of a loop and nowhere else."""
    add_before(
        nb,
        "pair_input",
        """
        candidates = [(2, 3), (3, 4), (1, 2)]
        while candidates:
            one, two = candidates.pop()
            if 1 + one == two and len("[CLS] a [SEP]".split()) - 1 == one:
                specials = {True: one, False: two}
        print(specials)
        """,
    )
    swap(nb, "pair_input", "t_max - (2 if b is None else 3)", "t_max - specials[b is None]")


NOTEBOOKS: tuple[Honest, ...] = tuple(_found)
