"""What a cell of a notebook reaches for, read from its text: names that it binds and uses, what no exercise needs.

Reading text cannot find everything that a program may do. What is found is for somebody to look at; what is not found
has still to return the right tensors for inputs that nobody has seen.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from helpers.checking.syntax import dotted, names_in, text_of, words

# Modules that an answer, a plot or a try of one's own may import, with what stands below them. Others are looked at.
LIBRARIES = {
    *words("abc bisect calendar cmath collections colorsys copy csv dataclasses datetime decimal enum fractions"),
    *words("functools heapq itertools json locale math numbers operator pprint random re secrets statistics string"),
    *words("sys os textwrap time timeit typing typing_extensions unicodedata uuid warnings __future__ gzip lzma zlib"),
    *words("array keyword contextlib difflib hashlib base64 binascii struct platform getpass cycler pathlib"),
    *words("torch numpy matplotlib mpl_toolkits einops scipy sklearn pandas seaborn tqdm PIL IPython safetensors"),
    *words("jaxtyping opt_einsum plotly ipywidgets regex tiktoken transformers datasets tokenizers torchvision"),
}
# Rooms of helpers that a notebook may import from. Of parts, those that answer no exercise of the lesson.
ROOMS = (
    "helpers.data", "helpers.plots", "helpers.device.device", "helpers.lesson.start", "helpers.lesson.in_exam",
    "helpers.progress.progress", "helpers.pretrained",
)  # fmt: skip
PARTS = "helpers.parts"

# Of these, all but the named attributes lead out of an exercise.
PLAIN_USES = {
    "sys": words(
        "version version_info maxsize float_info int_info getsizeof stdout stderr platform argv exit byteorder"
        " getrecursionlimit setrecursionlimit executable implementation maxunicode getrefcount"
    ),
    "os": words("path getcwd listdir cpu_count makedirs mkdir sep linesep environ getenv name urandom times getpid"),
    "IPython": words("display core utils"),
    "operator": None,
    "timeit": words("default_timer"),
}
# Below libraries: names that lead to running text, to files that hold code, or into the machinery.
DEEP = {
    "torch": words(
        "jit hub package ops classes library overrides fx compile _C _dynamo _inductor _ops serialization"
        " multiprocessing export compiler futures monitor"
    ),
    "numpy": words("f2py ctypeslib distutils fromfile lookfor source deprecate"),
    "pandas": words("eval read_pickle io"),
    "operator": words("attrgetter methodcaller"),
    "typing": words("get_type_hints ForwardRef"),
    "IPython": words("embed get_ipython start_ipython"),
    "matplotlib": words("sys os importlib"),
}
# Whatever they are an attribute of
ATTRIBUTES = frozenset(
    words(
        "f_globals f_locals f_back f_code f_builtins gi_frame gi_code cr_frame tb_frame tb_next ag_frame mro meta_path"
        " path_hooks path_importer_cache modules_by_name _getframe _current_frames setprofile settrace user_ns"
        " user_global_ns run_cell run_line_magic run_cell_magic run_code ast_transformers input_transformers_cleanup"
        " input_transformers_post set_custom_exc register_magic_function builtin_trap resolve_name attrgetter"
        " methodcaller getsource getsourcelines getmodule import_module exec_module load_module find_spec reload"
        " CompilationUnit safe_eval runstring rundocs write_text write_bytes read_text read_bytes"
        " aspects probe _shipped_key shipped_path load_key load_exam_key load_lesson builtins importlib ctypes"
        " subprocess pickle marshal runpy pkgutil linecache tokenize inspect get_objects get_referrers run_noting"
        " run_in_exam"
        " register_module_forward_hook register_module_forward_pre_hook register_module_full_backward_hook"
        " start_checks _exercise"
    )
)
DUNDERS = frozenset(
    words(
        "__init__ __call__ __name__ __qualname__ __doc__ __len__ __getitem__ __setitem__ __delitem__ __contains__"
        " __iter__"
        " __next__ __enter__ __exit__ __version__ __repr__ __str__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__"
        " __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __matmul__ __rmatmul__"
        " __truediv__"
        " __rtruediv__ __floordiv__ __mod__ __pow__ __rpow__ __neg__ __pos__ __abs__ __invert__ __and__ __or__ __xor__"
        " __lshift__ __rshift__ __bool__ __int__ __float__ __index__ __class__ __post_init__ __module__ __new__"
        " __config__ __annotations__ __slots__ __match_args__ __missing__ __reversed__ __length_hint__ __round__"
    )
)
OWN_DUNDERS = DUNDERS | {
    "__setattr__",
    "__getattr__",
    "__getattribute__",
    "__delattr__",
    "__dict__",
    "__init_subclass__",
}
NAMES = {
    "eval": "runs text as code",
    "exec": "runs text as code",
    "compile": "makes code of text",
    "__import__": "imports by a computed name",
    "globals": "reaches for all names of the notebook",
    "vars": "reaches for the names inside an object",
    "breakpoint": "starts a debugger",
    "get_ipython": "reaches for the notebook's own shell",
    "In": "reaches for the texts of earlier cells",
    "_ih": "reaches for the texts of earlier cells",
    "_oh": "reaches for the results of earlier cells",
    "Out": "reaches for the results of earlier cells",
    "memoryview": "reaches for memory",
}
TREACHEROUS = ("getattr", "setattr", "delattr", "hasattr")
MAGICS = frozenset(
    words(
        "time timeit prun matplotlib who whos who_ls precision pprint pdb config load_ext reload_ext autoreload capture"
        " pwd pylab pinfo pinfo2 psearch lsmagic quickref xmode colors memit mprun lprun history"
    )
)
RUNS_CODE = frozenset({"time", "timeit", "prun", "capture", "memit"})
SPELLED = ("helpers.parts", "helpers.exercises", "helpers.checking", "helpers.grading", "helpers/", "COURSE_EXAM")
CHECKS = frozenset({"check"})
START = "start"


@dataclass(frozen=True)
class Reach:
    """Something that a cell reaches for.

    line: from 1. why: a sentence. part: the finished part, where it is one. wide: it could change what other exercises'
    checks see; False for what can only help the answer that uses it.
    """

    line: int
    why: str
    part: str = ""
    wide: bool = True


@dataclass
class Statement:
    """One statement at the top of a cell: the names it binds and uses, and the lines at which it spells them."""

    line: int
    end: int = 0
    binds: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)
    spells: dict[str, int] = field(default_factory=dict)


@dataclass
class Reading:
    """What was read of one cell.

    changes: the lines at which names of the notebook are bound, or get something hung on them. shared: the same for
    names that a function declares as `global`. aliases: what the cell's imports bind.
    """

    statements: list[Statement] = field(default_factory=list)
    reaches: list[Reach] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def binds(self) -> set[str]:
        return {name for statement in self.statements for name in statement.binds}


def aliases_of(tree: ast.AST) -> dict[str, str]:
    """What the imports of a cell bind: {"F": "torch.nn.functional"}."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def tree_of(source: str) -> ast.Module | None:
    """The syntax tree of a cell as IPython would run it, magics as calls; None for what is not Python.

    Raises RecursionError or MemoryError for a text that is nested too deeply to be read.
    """
    with contextlib.suppress(SyntaxError, ValueError):
        return ast.parse(source)
    from IPython.core.inputtransformer2 import TransformerManager

    with contextlib.suppress(SyntaxError, ValueError):
        return ast.parse(TransformerManager().transform_cell(source))
    return None


def read(source: str, known: Mapping[str, str]) -> Reading:
    """Reads a cell. known: what names stand for that other cells imported, {"nn": "torch.nn"}."""
    try:
        tree = tree_of(source)
        if tree is None:
            return Reading()
        reader = _Reader({**known, **aliases_of(tree)})
        return reader.read(tree)
    except (RecursionError, MemoryError):
        return Reading(reaches=[Reach(1, "The cell is nested too deeply to be read.")])


class _OfClass(set):
    """The names that the body of a class binds."""


class _Reader(ast.NodeVisitor):
    """Walks one cell. Names that a function binds are its own and hide those of the notebook."""

    def __init__(self, aliases: dict[str, str]):
        self._aliases, self._found = aliases, Reading()
        self._hidden: list[set[str]] = []
        self._now = Statement(1)
        self._texts: dict[str, list[str]] = {}

    def read(self, tree: ast.Module) -> Reading:
        self._texts = _texts_of_names(tree)
        for node in ast.walk(tree):  # t = torch
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._stands_for(node.targets[0].id, [node.value])
            elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
                self._stands_for(node.target.id, getattr(node.iter, "elts", []))
        self._found.aliases = self._aliases
        for statement in tree.body:
            self._now = Statement(statement.lineno, statement.end_lineno or statement.lineno)
            self.visit(statement)
            self._found.statements.append(self._now)
        return self._found

    def _stands_for(self, name: str, values: list[ast.expr]) -> None:
        for origin in filter(None, map(self._origin, values)):
            self._aliases.setdefault(name, origin)

    # ------------------------------------------------------------------------------ what is written down

    def _reach(self, node: ast.AST, why: str, part: str = "", wide: bool = True) -> None:
        self._found.reaches.append(Reach(getattr(node, "lineno", self._now.line), why, part, wide))

    def _bind(self, name: str, line: int) -> None:
        if not self._is_hidden(name):
            self._now.binds.add(name)
            self._found.changes.setdefault(name, line)
            if name in CHECKS:
                self._found.reaches.append(Reach(line, "It gives `check` another meaning."))

    def _is_hidden(self, name: str) -> bool:
        return any(name in names for names in self._hidden)

    def _origin(self, node: ast.AST) -> str:
        """The dotted path of what a chain of attributes stands for where it begins with something imported, or ""."""
        path = dotted(node)
        root, _, rest = path.partition(".")
        if not root or self._is_hidden(root) or root not in self._aliases:
            return ""
        return f"{self._aliases[root]}.{rest}".rstrip(".")

    def generic_visit(self, node: ast.AST) -> None:
        for name in names_in(node):
            if name:
                self._now.spells.setdefault(name, getattr(node, "lineno", self._now.line))
        super().generic_visit(node)

    # ----------------------------------------------------------------------------------------- scopes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._bind(node.name, node.lineno)
        if node.name in ("__torch_function__", "__torch_dispatch__"):
            self._reach(node, f"It defines `{node.name}`, which changes what torch does.")
        about = node.args
        every = (*about.posonlyargs, *about.args, *about.kwonlyargs, about.vararg, about.kwarg)
        annotations = [a.annotation for a in every if a and a.annotation] + ([node.returns] if node.returns else [])
        for outside in (*node.decorator_list, *about.defaults, *filter(None, about.kw_defaults), *annotations):
            self.visit(outside)
        self._inside(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for outside in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(outside)
        self._inside(node, [node.body])

    def _inside(self, node, body: list) -> None:
        before = self._hidden
        # what a class binds is no name inside its methods
        self._hidden = [names for names in before if not isinstance(names, _OfClass)] + [_own_names(node)]
        for inner in body:
            self.visit(inner)
        self._hidden = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name, node.lineno)
        for outside in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
            self.visit(outside)
        self._hidden.append(_OfClass(name for inner in node.body for name in _bound_here(inner)))
        for inner in node.body:
            self.visit(inner)
        self._hidden.pop()

    def _comprehension(self, node) -> None:
        names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self._hidden.append(names)
        self.generic_visit(node)
        self._hidden.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Global(self, node: ast.Global) -> None:
        for name in node.names:
            self._now.binds.add(name)
            self._found.shared.setdefault(name, node.lineno)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name, node.lineno)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._bind(node.name, node.lineno)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        """``case object(softmax=f)`` reads the attribute of whatever is matched."""
        for name in node.kwd_attrs:
            self._now.spells.setdefault(name, node.lineno)
            if name in ATTRIBUTES or name in ("sys", "os") or name.startswith("__"):
                self._reach(node, f"It reaches for `{name}`.")
        self.generic_visit(node)

    # ----------------------------------------------------------------------------------------- imports

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._bind(alias.asname or alias.name.split(".")[0], node.lineno)
            self._imported(node, alias.name)
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._bind(alias.asname or alias.name, node.lineno)
            if node.level or not node.module:
                self._reach(node, "It imports from a file beside the notebook.")
            else:
                self._imported(node, f"{node.module}.{alias.name}", star=alias.name == "*")
        self.generic_visit(node)

    def _imported(self, node: ast.AST, path: str, star: bool = False) -> None:
        root = path.split(".")[0]
        if path == PARTS or path.startswith(f"{PARTS}."):
            self._reach(node, f"It imports `{path}`, a finished part.", part=path.removesuffix(".*"))
        elif root == "helpers":
            if not any(f"{path}.".startswith(f"{room}.") for room in ROOMS):
                self._reach(node, f"It imports `{path}`, which no exercise needs.", part=PARTS if path == root else "")
        elif root not in LIBRARIES:
            self._reach(node, f"It imports `{path}`, which no exercise needs.")
        else:
            self._deep(node, path)
            if star and root in ("sys", "os", "operator", "IPython"):
                self._reach(node, f"It imports everything from `{path.removesuffix('.*')}`.")

    def _deep(self, node: ast.AST, path: str) -> None:
        """Looks at what is reached below a library: `torch.jit`, `sys.modules`."""
        root, *below = path.split(".")
        if not below:
            return
        allowed = PLAIN_USES.get(root)
        private = any(name.startswith("_") and name not in DUNDERS for name in below)
        inner = any(name in ("sys", "os", "importlib", "builtins") for name in below) and root not in ("sys", "os")
        outside = allowed is not None and below[0] not in (*allowed, "*")
        if private or inner or outside or set(below) & set(DEEP.get(root, ())):
            narrow = root == "torch" and not inner and not set(below) & {"overrides", "library", "package", "hub"}
            self._reach(node, f"It reaches for `{path}`.", wide=not narrow)

    # ------------------------------------------------------------------------------------------- names

    def visit_Name(self, node: ast.Name) -> None:
        hidden = self._is_hidden(node.id)
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self._bind(node.id, node.lineno)
        elif not hidden:
            self._now.uses.add(node.id)
            self._used(node)
        self.generic_visit(node)

    def _used(self, node: ast.Name) -> None:
        name = node.id
        if name in NAMES:
            self._reach(node, f"It uses `{name}`, which {NAMES[name]}.")
        elif name in TREACHEROUS:
            self._reach(node, f"It hands `{name}` on, and does not call it.")
        elif name.startswith("__") and name.endswith("__") and name not in (*DUNDERS, "__class__"):
            self._reach(node, f"It uses `{name}`.")
        elif name in CHECKS:
            self._reach(node, "It uses `check` for something other than a check.")
        elif name == START and name not in self._found.changes and self._aliases.get(name, "").startswith("helpers"):
            self._reach(node, "It starts the lesson's checks anew.")
        elif name == "open":
            self._reach(node, "It hands `open` on, and does not call it.")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name, owner = node.attr, node.value
        own = isinstance(owner, ast.Name) and owner.id in ("self", "cls") or _is_super(owner)
        if (
            name.startswith("__")
            and name.endswith("__")
            and name not in (OWN_DUNDERS if own else DUNDERS)
            or name in ATTRIBUTES
            and (name == "mro" or not own)
        ):
            self._reach(node, f"It reaches for `{name}`.")
        origin = self._origin(node)
        if origin:
            self._deep(node, origin)
            if _outside_rooms(origin):
                self._reach(node, f"It reaches for `{origin}`.", part=PARTS if origin == "helpers" else "")
        if not isinstance(node.ctx, ast.Load):
            self._set(node, owner, name)
        self.generic_visit(node)

    def _set(self, node: ast.AST, owner: ast.AST, name: str) -> None:
        """`owner.name = ...`: on something imported it changes what others see."""
        origin = self._origin(owner)
        if name == "__class__":
            self._reach(node, "It gives an object another class.")
        if origin and not origin.startswith(("torch.backends", "matplotlib", "numpy.random", "warnings")):
            self._reach(node, f"It gives `{origin}` another `{name}`.")
        root = dotted(owner).partition(".")[0]
        if root and not self._is_hidden(root):
            self._found.changes.setdefault(root, getattr(node, "lineno", 0))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            origin = self._origin(node.value)
            if origin.startswith(("helpers", "torch", "sys", "builtins")):
                self._reach(node, f"It changes what `{origin}` holds.")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """``"model" in globals()`` only asks."""
        asks = [
            n
            for n in node.comparators
            if isinstance(n, ast.Call) and dotted(n.func) in ("globals", "locals", "vars", "dir")
        ]
        if asks and all(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops) and len(node.ops) == 1:
            self.visit(node.left)
            return
        self.generic_visit(node)

    # ------------------------------------------------------------------------------------------- calls

    def visit_Call(self, node: ast.Call) -> None:
        name = dotted(node.func)
        if not self._is_hidden(name.partition(".")[0]):
            if name in CHECKS:
                self._now.uses.add(name)
                for inner in (*node.args, *(word.value for word in node.keywords)):
                    self.visit(inner)
                return
            if name in TREACHEROUS:
                self._computed(node, name)
                self._arguments(node)
                return
            if name == "open":
                self._opens(node)
                self._arguments(node)
                return
            if name == "locals" and not self._hidden:
                self._reach(node, "It uses `locals`, which reaches for all names of the notebook.")
            if name == START and self._aliases.get(name, "").startswith("helpers"):
                self._reach(node, "It starts the lesson's checks anew.")
        if self._magic(node):
            return
        for word in node.keywords:
            if word.arg in ("allow_pickle", "weights_only", "eval_str") and not _is_harmless(word):
                self._reach(node, f"It calls `{name}` with `{word.arg}`, which can run what a file holds.")
        self.generic_visit(node)

    def _arguments(self, node: ast.Call) -> None:
        for inner in (*node.args, *(word.value for word in node.keywords)):
            self.visit(inner)

    def _computed(self, node: ast.Call, name: str) -> None:
        """`getattr` and its like: a literal name is as the attribute itself, a computed one for somebody to look at."""
        if len(node.args) < 2 or any(isinstance(a, ast.Starred) for a in node.args[:2]):
            self._reach(node, f"It calls `{name}` with computed arguments.")
            return
        owner, asked = node.args[:2]
        texts = self._possible(asked)
        context = ast.Store() if name in ("setattr", "delattr") else ast.Load()
        for text in texts or ():
            self.visit_Attribute(ast.copy_location(ast.Attribute(owner, text, context), node))
            self._now.spells.setdefault(text, node.lineno)
        if texts is None and not self._own_prefix(owner, asked):
            self._reach(node, f"It calls `{name}` with a computed name.")

    def _possible(self, node: ast.AST) -> list[str] | None:
        """The texts that an expression can come to, where they can be read; None where not."""
        text = text_of(node)
        if text is not None:
            return [text]
        if isinstance(node, ast.Name):
            return self._texts.get(node.id)
        if isinstance(node, ast.IfExp):
            both = self._possible(node.body), self._possible(node.orelse)
            return None if None in both else [*both[0], *both[1]]
        return None

    @staticmethod
    def _own_prefix(owner: ast.AST, asked: ast.AST) -> bool:
        """getattr(self, f"head_{i}"): a name of one's own, however it ends."""
        if not (isinstance(owner, ast.Name) and owner.id == "self"):
            return False
        first = asked.values[0] if isinstance(asked, ast.JoinedStr) and asked.values else asked
        first = first.left if isinstance(first, ast.BinOp) else first
        text = text_of(first) or ""
        return len(text) > 2 and not text.startswith("_") and "softmax"[: len(text)] != text

    def _opens(self, node: ast.Call) -> None:
        path = text_of(node.args[0]) if node.args else None
        if (
            path is None
            or path.startswith(("/", "~"))
            or ".." in path
            or path.endswith((".py", ".ipynb", ".pyc", ".so"))
        ):
            self._reach(node, "It opens a file.", wide=False)

    def _magic(self, node: ast.Call) -> bool:
        """get_ipython().run_line_magic("timeit", "f(x)"): what IPython makes of a magic."""
        function = node.func
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call)):
            return False
        if dotted(function.value.func) != "get_ipython" or not node.args:
            return False
        texts = [text_of(argument) for argument in node.args]
        if function.attr not in ("run_line_magic", "run_cell_magic") or None in texts or texts[0] not in MAGICS:
            what = texts[0] or "a command" if function.attr.startswith("run_") else function.attr
            self._reach(node, f"It uses the notebook's own shell: {what}.")
            return True
        if texts[0] in RUNS_CODE:
            for text in texts[1:]:
                self._more(_without_options(text or ""))
        return True

    def _more(self, source: str) -> None:
        tree = tree_of(source)
        if tree is not None:
            self._aliases |= aliases_of(tree)
            for statement in tree.body:
                self.visit(statement)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._spells(node, node.value)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = text_of(node)
        if text is not None:
            self._spells(node, text)
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        text = text_of(node)
        if text is not None:
            self._spells(node, text)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a docstring, or a comment in quotes
        self.generic_visit(node)

    def _spells(self, node: ast.AST, text: str) -> None:
        if len(text) < 200 and (any(word in text for word in SPELLED) or text.endswith(".py")):
            self._reach(node, "It spells the name of a part of the course, or of a file of code.")
        elif text.startswith("__") and text.endswith("__") and len(text) > 4 and text not in (*DUNDERS, "__main__"):
            self._reach(node, f"It spells `{text[:40]}`.")


def _outside_rooms(origin: str) -> bool:
    """Does this path lead to a room of helpers that is not a notebook's business?"""
    names = origin.split(".")
    rooms = {"exercises", "checking", "grading", "authoring", "trials", "keys", "course", "notebooks"}
    return names[0] == "helpers" and (len(names) > 1 and names[1] in rooms)


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _is_harmless(word: ast.keyword) -> bool:
    wanted = word.arg == "weights_only"
    return isinstance(word.value, ast.Constant) and word.value.value is wanted


def _without_options(text: str) -> str:
    words = text.split(" ")
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if len(option) == 2 and option[1] in "nrp" and words:
            words.pop(0)
    return " ".join(words).strip()


def _texts_of_names(tree: ast.AST) -> dict[str, list[str]]:
    """The texts that names are bound to, of names that are bound to literal texts only."""
    texts: dict[str, list[str] | None] = {}

    def bind(name: str, found: list[str] | None) -> None:
        before = texts.get(name, [])
        texts[name] = None if found is None or before is None else [*before, *found]

    seen: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
            seen.add(id(node.target))
            listed = node.iter.elts if isinstance(node.iter, (ast.List, ast.Tuple, ast.Set)) else None
            found = [text_of(e) for e in listed] if listed is not None else [None]
            bind(node.target.id, None if None in found else found)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            seen.add(id(node.targets[0]))
            text = text_of(node.value)
            bind(node.targets[0].id, None if text is None else [text])
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in seen:
            bind(node.id, None)
        elif isinstance(node, ast.arg):
            bind(node.arg, None)
    return {name: found for name, found in texts.items() if found is not None}


def _own_names(function) -> set[str]:
    """The names that a function binds: its parameters, and what is assigned in it unless it says `global`."""
    about = function.args
    names = {a.arg for a in (*about.posonlyargs, *about.args, *about.kwonlyargs, about.vararg, about.kwarg) if a}
    if isinstance(function, ast.Lambda):
        return names
    shared: set[str] = set()
    for statement in function.body:
        names |= _bound_here(statement)
        shared |= {name for n in _here(statement) if isinstance(n, ast.Global) for name in n.names}
    return names - shared


def _bound_here(statement: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in _here(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=listed) | ast.ImportFrom(names=listed):
                names |= {alias.asname or alias.name.split(".")[0] for alias in listed}
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
    return names


def _here(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that belong to its own scope."""
    yield node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return
    for child in ast.iter_child_nodes(node):
        yield from _here(child)
