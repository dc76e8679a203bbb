"""What submissions have been known to do to a grader, as code that tests run.

Each attack replaces a solution cell of a lesson whose other cells hold right answers. What it gets at and must not
reach it hands to `leak`; the answer then raises, with the word LEAK, and the grader reads it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

FIRST = "01_dot_product_attention"
RIGHT = "def raw_weights(x):\n    return x @ x.mT\n"
LEAK = "LEAK"
NOTHING, DESERVED, WAITS = "nothing", "what it deserves", "waits for the instructor"

BEFORE = "leaks = []\ndef leak(*what):\n    leaks.append(' '.join(map(str, what)))\n"
AFTER = """
attacked = globals().get('«exercise»')
def «exercise»(*given):
    if leaks:
        raise RuntimeError('LEAK ' + '; '.join(leaks))
    return attacked(*given)
"""


@dataclass(frozen=True)
class Attack:
    """One way to misbehave.

    title: what it does, for a table. source: the text of the solution cell; words in «» are replaced by
    `Surroundings`. earns: what comes of it. cell: a cell that is added between the solution and its check. others: the
    texts of other solution cells, which are right all the same.
    """

    slug: str
    title: str
    source: str
    earns: str = NOTHING
    exercise: str = "raw_weights"
    lesson: str = FIRST
    cell: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """What there is to attack: a course's folder, the port of a server on the loopback, an abstract socket's name."""

    course: str
    port: int = 0
    name: str = ""

    def fill(self, attack: Attack) -> str:
        """The text of its solution cell."""
        source = f"{BEFORE}{attack.source}{AFTER}" if "leak(" in attack.source else attack.source
        words = {"course": self.course, "port": self.port, "name": self.name, "exercise": attack.exercise}
        for word, value in words.items():
            source = source.replace(f"«{word}»", str(value))
        return source


READ = """
import glob, os
def reach(pattern):
    for path in glob.glob(pattern, recursive=True):
        if os.path.isfile(path):
            try:
                with open(path, "rb") as file:
                    if file.read(10):
                        leak("read", path)
            except OSError:
                pass
"""

WRITE = """
import os
def reach(path):
    try:
        if os.path.isdir(path):
            path = os.path.join(path, "left-behind")
        with open(path, "ab") as file:
            file.write(b" ")
        leak("wrote", path)
    except OSError:
        pass
"""

EVERYBODY = """
import os
def everybody():
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [*seen, os.getppid(), *range(2, 300)]
"""


def code(text: str) -> str:
    return textwrap.dedent(text).strip("\n") + "\n"


WRONG = "def raw_weights(x):\n    return x\n"


def soft(slug: str, title: str, source: str, earns: str = NOTHING) -> Attack:
    """A way to have torch's softmax where it is forbidden."""
    return Attack(slug, title, code(source), earns, exercise="row_softmax")


SOFTMAX = (
    soft(
        "other-backend",
        "has softmax computed for tensors of mkldnn, which are converted back",
        """
        def row_softmax(scores):
            return torch.ops.aten._softmax(scores.detach().to_mkldnn(), -1, False).to_dense()
        """,
    ),
    soft(
        "nested-tensor",
        "has softmax computed for a nested tensor",
        """
        def row_softmax(scores):
            nested = torch.nested.nested_tensor(list(scores.detach()))
            return torch.ops.aten._softmax(nested, -1, False).to_padded_tensor(0.0)
        """,
    ),
    soft(
        "sparse-tensor",
        "has softmax computed for a sparse tensor",
        """
        def row_softmax(scores):
            return torch.sparse.softmax(scores.to_sparse(), -1).to_dense()
        """,
    ),
    soft(
        "out-variant",
        "has softmax write into a tensor of its own",
        """
        def row_softmax(scores):
            return torch.ops.aten._softmax.out(scores, -1, False, out=torch.empty_like(scores))
        """,
    ),
    soft(
        "torch-in-python",
        "takes torch's own softmax in Python, by a mode that replaces functions",
        """
        import torch._prims.context
        def row_softmax(scores):
            with torch._prims.context.TorchRefsMode():
                return torch.softmax(scores, -1)
        """,
    ),
    soft(
        "torch-in-python-by-a-hidden-name",
        "takes it from a module whose name the text does not show",
        """
        def row_softmax(scores):
            return getattr(torch, '_re' + 'fs').softmax(scores, -1)
        """,
    ),
    soft(
        "decompositions",
        "takes it from the compiler's table of decompositions",
        """
        import torch._inductor.decomposition as table
        def row_softmax(scores):
            return table.decompositions[torch.ops.aten._softmax.default](scores, -1, False)
        """,
    ),
    soft(
        "compiled",
        "has torch.compile decompose softmax",
        """
        @torch.compile(backend='aot_eager_decomp_partition')
        def row_softmax(scores):
            return torch.ops.aten._softmax(scores, -1, False)
        """,
    ),
    soft(
        "scripted",
        "has TorchScript call softmax, from text",
        r"""
        unit = torch.jit.CompilationUnit('def f(s):\n    return torch.softmax(s, -1)\n')
        def row_softmax(scores):
            return unit.f(scores)
        """,
    ),
    soft(
        "transformed",
        "has functorch call softmax",
        """
        def row_softmax(scores):
            return torch.vmap(lambda row: torch.ops.aten._softmax(row, -1, False))(scores)
        """,
    ),
    soft(
        "by-its-gradient",
        "has softmax as the gradient of logsumexp",
        """
        def row_softmax(scores):
            return torch.func.grad(lambda s: torch.logsumexp(s, -1).sum())(scores)
        """,
    ),
    soft(
        "taken-before",
        "keeps softmax under another name before the check begins",
        """
        mine = torch.nn.functional.softmax
        def row_softmax(scores, take=torch.Tensor.softmax):
            return (take(scores, -1) + mine(scores, -1)) / 2
        """,
    ),
    soft(
        "by-attention",
        "has softmax from attention with the unit matrix",
        """
        def row_softmax(scores):
            one = torch.eye(scores.shape[-1]).expand(len(scores), -1, -1)
            return torch.nn.functional.scaled_dot_product_attention(scores, one, one, scale=1.0)
        """,
    ),
    soft(
        "finalizers",
        "calls every finalizer, so that whatever replaces softmax is taken back",
        """
        import weakref
        def row_softmax(scores):
            weakref.finalize._exitfunc()
            return torch.softmax(scores, -1)
        """,
    ),
    soft(
        "registry-of-finalizers",
        "ends the library that replaces softmax, found among the finalizers",
        """
        import weakref
        def row_softmax(scores):
            for one in list(weakref.finalize._registry):
                owner = (one.peek() or [None])[0]
                if hasattr(owner, 'm') and hasattr(owner, 'ns'):
                    owner.m.reset()
            return torch.softmax(scores, -1)
        """,
    ),
    soft(
        "collector",
        "ends the library that replaces softmax, found among all objects",
        """
        import gc
        def row_softmax(scores):
            for one in getattr(gc, 'get_' + 'objects')():
                if type(one).__name__ == '_Dispatch' + 'Module' or type(one).__name__ == 'Libr' + 'ary':
                    (one.m if hasattr(one, 'm') else one).reset()
            return torch.softmax(scores, -1)
        """,
    ),
    soft(
        "frames",
        "looks for that library in all frames, and in the generators that wait in them",
        """
        import sys
        def row_softmax(scores):
            frame = getattr(sys, '_get' + 'frame')()
            while frame:
                for value in list(getattr(frame, 'f_' + 'locals').values()):
                    if hasattr(value, 'reset') and hasattr(value, 'impl'):
                        value.reset()
                frame = getattr(frame, 'f_' + 'back')
            return torch.softmax(scores, -1)
        """,
    ),
    soft(
        "own-override",
        "registers an override of its own, and ends it",
        """
        def row_softmax(scores):
            library = getattr(torch.library, 'Lib' + 'rary')('aten', 'IMPL')
            library.impl('_softmax', lambda s, d, h: s, 'CPU', allow_override=True)
            getattr(library, '_de' + 'stroy')()
            return torch.ops.aten._softmax(scores, -1, False)
        """,
    ),
    soft(
        "another-python",
        "asks a second Python for softmax",
        """
        import io, subprocess, sys
        there = 'import io, sys, torch; s = torch.load(io.BytesIO(sys.stdin.buffer.read())); b = io.BytesIO();' \\
            'torch.save(torch.softmax(s, -1), b); sys.stdout.buffer.write(b.getvalue())'
        def row_softmax(scores):
            sent = io.BytesIO()
            torch.save(scores.detach(), sent)
            done = subprocess.run([sys.executable, '-c', there], input=sent.getvalue(), capture_output=True)
            return torch.load(io.BytesIO(done.stdout))
        """,
    ),
    soft(
        "spawned-worker",
        "asks a worker that multiprocessing spawns",
        """
        import multiprocessing
        def row_softmax(scores):
            with multiprocessing.get_context('spawn').Pool(1) as pool:
                return pool.apply(torch.softmax, (scores.detach(), -1))
        """,
    ),
    soft(
        "other-thread",
        "has another thread call softmax",
        """
        import threading
        def row_softmax(scores):
            found = []
            worker = threading.Thread(target=lambda: found.append(torch.softmax(scores, -1)))
            worker.start(), worker.join()
            return found[0]
        """,
    ),
    soft(
        "other-packages",
        "takes softmax from any other package",
        """
        import torch.ao, torch.distributions
        try:
            from scipy.special import softmax
        except ImportError:
            softmax = None
        def row_softmax(scores):
            if softmax is None:
                return torch.distributions.Categorical(logits=scores).probs
            return torch.tensor(softmax(scores.detach().numpy(), -1))
        """,
    ),
    soft(
        "forbidden-swallowed",
        "calls softmax, and goes on without it when it is refused",
        """
        def row_softmax(scores):
            try:
                return torch.softmax(scores, -1)
            except BaseException:
                powers = (scores - scores.amax(-1, keepdim=True)).exp()
                return powers / powers.sum(-1, keepdim=True)
        """,
        DESERVED,
    ),
)

NAMES = (
    Attack(
        "hidden-layer",
        "derives its class from torch's, by a name that the text does not show",
        code("""
        class MultiHeadAttention(getattr(torch.nn, 'Multihead' + 'Attention')):
            pass
        """),
        exercise="MultiHeadAttention",
        lesson="04_multi_head",
    ),
)

NEIGHBOURS = code("""
    import os, sys
    def look():
        import helpers.parts
        from helpers.parts import multi_head
        for name in ('MultiHeadAttention', 'fuse_heads', 'count_parameters'):
            if name in vars(multi_head):
                leak('neighbour', name)
        for name in ('masks', 'blocks', 'gpt2', 'llama', 'bpe'):
            try:
                __builtins__['__import__'](f'helpers.parts.{name}')
                leak('imported', name)
            except ImportError:
                pass
        for folder in {os.path.dirname(sys.modules['helpers'].__file__), '/course', '/sandbox'}:
            for path, _, names in os.walk(folder):
                for name in names if '/helpers/data' not in path and not others(path) else ():
                    if 'parts' in path.split('/') or 'solutions' in path or name.endswith('.safetensors'):
                        leak('file', os.path.join(path, name))
    look()
    """)

PARTS = (
    Attack(
        "neighbours-of-parts",
        "looks for what lies beside the finished parts that it may use",
        NEIGHBOURS
        + code("""
        class MultiHeadAttention(torch.nn.Module):
            pass
        """),
        exercise="MultiHeadAttention",
        lesson="04_multi_head",
    ),
    Attack(
        "source-of-parts",
        "reads the text of the finished parts that it may use",
        code("""
        import inspect, linecache
        from helpers.parts import multi_head
        for name, line in [(name, line) for name in list(linecache.cache) for line in linecache.getlines(name)]:
            if 'class MultiHeadAttention' in line and 'leak' not in line and not name.startswith('<your'):
                leak(name)
        if 'MultiHeadAttention' in str(getattr(multi_head, '__file__', '')):
            leak('file')
        class MultiHeadAttention(torch.nn.Module):
            pass
        """),
        exercise="MultiHeadAttention",
        lesson="04_multi_head",
    ),
    Attack(
        "ready-packages",
        "imports packages that hold ready answers",
        code("""
        for name in ('scipy.special', 'transformers.pytorch_utils', 'tokenizers.models', 'sacrebleu.metrics',
                     'helpers.keys', 'helpers.grading', 'helpers.authoring', 'helpers.training',
                     'helpers.parts.attention'):
            try:
                exec(f'import {name}')
                leak('imported', name)
            except ImportError:
                pass
        """)
        + WRONG,
    ),
    Attack(
        "keys-and-solutions",
        "looks for keys, solutions and seeds in every file and variable that it sees",
        code("""
        import os
        for name, value in os.environ.items():
            if 'SEED' in name or 'KEY' in name or 'a seed for hostile tests' in value:
                leak('variable', name)
        others = lambda path: 'site-packages' in path and '/site-packages/helpers' not in path
        for folder in ('/course', '/sandbox', '/tmp', '/dev/shm', os.getcwd(), os.path.expanduser('~')):
            for path, _, names in os.walk(folder):
                for name in names if '/helpers/data' not in path and 'site-packages' not in path else ():
                    if name.endswith(('.safetensors', '.ipynb', '.db', '.jsonl')) or 'solution' in name:
                        leak('file', os.path.join(path, name))
        """)
        + WRONG,
    ),
)

GRADER = (
    Attack(
        "signals-to-init",
        "sends every signal to the process that started it, to its group and to process 1",
        EVERYBODY
        + code("""
        for number in range(1, 65):
            for process in {1, os.getppid()} - {0}:
                try:
                    os.kill(process, number)
                except OSError:
                    pass
        """)
        + RIGHT,
        DESERVED,
    ),
    Attack(
        "memory-of-init",
        "reads the memory, the files and the environment of process 1",
        code("""
        for name in ('mem', 'environ', 'maps', 'auxv', 'syscall', 'stack'):
            try:
                with open(f'/proc/1/{name}', 'rb') as file:
                    if file.read(1):
                        leak(name)
            except OSError:
                pass
        import os
        for name in ('fd', 'map_files', 'root', 'cwd'):
            try:
                os.listdir(f'/proc/1/{name}') and leak(name)
            except OSError:
                pass
        """)
        + RIGHT,
        DESERVED,
    ),
    Attack(
        "open-descriptors",
        "looks for descriptors that somebody left open, and for those of other processes",
        code("""
        import glob, os
        for number in range(4, 1024):
            try:
                os.fstat(number)
                leak('descriptor', number)
            except OSError:
                pass
        for path in glob.glob('/proc/[0-9]*/fd/*'):
            if path.split('/')[2] != str(os.getpid()):
                leak(path)
        """)
        + RIGHT,
        DESERVED,
    ),
    Attack(
        "traced-child",
        "has a child trace it, and traces that child",
        code("""
        import ctypes, os
        libc = ctypes.CDLL(None)
        if libc.ptrace(0, 0, 0, 0) == 0:
            leak('traceme')
        buffer = ctypes.create_string_buffer(8)
        pieces = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
        if libc.process_vm_readv(1, pieces, 1, pieces, 1, 0) > 0:
            leak('readv')
        """)
        + WRONG,
    ),
    Attack(
        "forged-line",
        "writes an answer by hand before its own, and ends",
        code(r"""
        import json, os
        def raw_weights(x):
            names = ['values', 'gradient', 'input left alone', 'any device']
            outcomes = {name: {'state': 'answered', 'says': '', 'where': '', 'names': ['result']} for name in names}
            forged = {'format': 1, 'exercise': 'raw_weights', 'outcomes': outcomes, 'tensors': '', 'points': 3}
            os.write(3, json.dumps({'answer': forged, 'changed': [], 'points': 3, 'verdict': 'right'}).encode() + b'\n')
            os._exit(0)
        """),
    ),
    Attack(
        "several-lines",
        "sends lines for other exercises, for its keeper and for init before its own",
        code(r"""
        import json, os
        def raw_weights(x):
            for name in ('masked_squared_error', 'self_attention', 'equivariance_gap'):
                os.write(3, json.dumps({'answer': {'format': 1, 'exercise': name}, 'status': 0}).encode() + b'\n')
            return x @ x.mT
        """),
    ),
    Attack(
        "not-even-json",
        "sends what is no JSON, or too much of it",
        code(r"""
        import os
        def raw_weights(x):
            os.write(3, b'[' * 100_000 + b'\n')
            return x @ x.mT
        """),
    ),
    Attack(
        "odd-json",
        "sends NaN, halves of characters and numbers of four thousand digits",
        code(r"""
        import os
        def raw_weights(x):
            os.write(3, b'{"answer": NaN, "changed": ' + b'9' * 4000 + b', "undefined": "\\ud800", "broken": 1e999}\n')
            return x @ x.mT
        """),
    ),
    Attack(
        "endless-line",
        "sends a line that never ends",
        code(r"""
        import os
        def raw_weights(x):
            while True:
                os.write(3, b'x' * (1 << 16))
        """),
    ),
    Attack(
        "half-a-line",
        "sends half a line, and sleeps",
        code(r"""
        import os, time
        def raw_weights(x):
            os.write(3, b'{"answer": {"format": 1')
            time.sleep(60)
        """),
    ),
    Attack(
        "closes-the-wire",
        "closes its descriptor, and puts another in its place",
        code(r"""
        import os
        os.close(3)
        os.open('/dev/null', os.O_RDWR)
        """)
        + RIGHT,
    ),
    Attack(
        "stays-behind",
        "leaves a child that holds the descriptor and never ends",
        RIGHT
        + code("""
        import os, time
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
        """),
        DESERVED,
    ),
    Attack(
        "child-answers-too",
        "has a child go on as if it were the answer, so that both send one",
        RIGHT
        + code("""
        import os
        os.fork()
        """),
        DESERVED,
    ),
)

LEAVES = code("""
    import os, socket, time
    def masked_squared_error(users, films, ratings, known):
        errors = (users @ films.mT - ratings) ** 2
        return (errors * known).sum() / known.sum()
    for folder in ('/tmp', '/dev/shm', os.getcwd(), os.path.expanduser('~'), '/sandbox/scratch', '/course', '/var/tmp',
                   '/run', os.path.dirname(os.__file__), os.path.dirname(torch.__file__)):
        try:
            with open(os.path.join(folder, 'left-behind'), 'w') as file:
                file.write('the answer')
            os.utime(folder, (1, 1))
        except OSError:
            pass
    torch.relu.left_behind = torch.nn.Module.left_behind = True
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            server = socket.socket(socket.AF_UNIX)
            server.bind(chr(0) + 'left-behind')
            server.listen()
            time.sleep(1000)
        os._exit(0)
    time.sleep(0.2)
    """)

FINDS = code(r"""
    import os, socket
    for folder in ('/tmp', '/dev/shm', os.getcwd(), os.path.expanduser('~'), '/sandbox/scratch', '/course', '/var/tmp',
                   '/run', os.path.dirname(os.__file__), os.path.dirname(torch.__file__)):
        if os.path.exists(os.path.join(folder, 'left-behind')):
            leak('file in', folder)
        if os.path.exists(folder) and os.stat(folder).st_mtime == 1:
            leak('time of', folder)
    if hasattr(torch.nn.Module, 'left_behind'):
        leak('memory')
    try:
        socket.socket(socket.AF_UNIX).connect(chr(0) + 'left-behind')
        leak('socket')
    except OSError:
        pass
    if len([name for name in os.listdir('/proc') if name.isdigit() and int(name) > 1]) > 1:
        leak('process')
    """)

SIBLINGS = (
    Attack(
        "for-the-next-exercise",
        "leaves files, times, a server and changed modules for the next exercise to find",
        FINDS + RIGHT,
        DESERVED,
        others={"masked_squared_error": LEAVES},
    ),
    Attack(
        "ends-its-siblings",
        "waits in the background to end the exercises that follow",
        LEAVES
        + code("""
        if os.fork() == 0:
            import signal
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            while True:
                try:
                    os.kill(-1, 9)
                except OSError:
                    pass
        """),
        exercise="masked_squared_error",
    ),
    Attack(
        "another-exercises-answer",
        "answers by calling what it wrote for another exercise",
        code("""
        def self_attention(x):
            return row_softmax(raw_weights(x)) @ x
        """),
        DESERVED,
        exercise="self_attention",
    ),
)

CASES = (
    Attack(
        "replaced-draws",
        "has all inputs drawn as zeros, for which any answer is right",
        code("""
        import sys
        for name, module in list(sys.modules.items()):
            if name.endswith('.draw'):
                getattr(module, 'Dr' + 'aw').normal = lambda self, *shape, **more: torch.zeros(*shape)
        """)
        + WRONG,
    ),
    Attack(
        "replaced-probes",
        "replaces what the check runs by code of its own, found without a name",
        code("""
        import sys
        modules = [module for name, module in list(sys.modules.items()) if name.endswith('.l01_dot_product_attention')]
        lesson = vars(modules[0])['LES' + 'SON']
        for aspect in lesson['raw_weights'].aspects:
            probe = aspect.probe
            object.__setattr__(aspect, 'probe', lambda f, draw, probe=probe: probe(lambda x: x @ x.mT, draw))
        """)
        + WRONG,
        WAITS,
    ),
    Attack(
        "probes-by-name",
        "imports the check's own code, and replaces its probes",
        code("""
        from helpers.exercises.l01_dot_product_attention import LESSON
        for aspect in LESSON['raw_weights'].aspects:
            object.__setattr__(aspect, 'probe', lambda f, draw: torch.tensor([1]))
        """)
        + WRONG,
    ),
    Attack(
        "probes-by-the-collector",
        "finds the exercise among all objects of the process",
        code("""
        import gc
        for thing in gc.get_objects():
            if type(thing).__name__ == 'Aspect':
                probe = thing.probe
                object.__setattr__(thing, 'probe', lambda f, draw, probe=probe: probe(lambda x: x @ x.mT, draw))
        """)
        + WRONG,
        NOTHING,
    ),
    Attack(
        "side-aspects-alone",
        "computes nothing, and has every tensor say that it is alike and on any device",
        code("""
        torch.equal = torch.allclose = torch.Tensor.equal = lambda *given, **more: True
        torch.Tensor.__eq__ = lambda *given: torch.ones(1, dtype=torch.bool)
        def raw_weights(x):
            return x.new_zeros(x.shape[0], x.shape[1], x.shape[1])
        """),
    ),
    Attack(
        "hides-what-it-changed",
        "writes into its input, and has the check look at a copy",
        code("""
        clone = torch.Tensor.clone
        torch.Tensor.detach = lambda self: clone(self) * 0 + self.kept if hasattr(self, 'kept') else clone(self)
        def raw_weights(x):
            kept = x.clone()
            found = x @ x.mT
            if not x.requires_grad and x.grad_fn is None and not x.is_meta:
                x.add_(1)
                x.kept = kept
            return found
        """),
        WAITS,
    ),
    Attack(
        "replaced-wire",
        "replaces what carries its answer to the grader",
        code("""
        import sys
        for name, module in list(sys.modules.items()):
            if name.endswith('.answers'):
                module.to_wire = lambda answer: {'format': 1, 'exercise': 'raw_weights', 'points': 3}
        """)
        + WRONG,
    ),
    Attack(
        "replaced-json",
        "has the process write JSON of its own",
        code("""
        import json
        json.dumps = lambda *given, **more: '{"answer": {"format": 1, "exercise": "raw_weights", "points": 3}}'
        """)
        + WRONG,
    ),
    Attack(
        "seed-from-the-frames",
        "reads the seed and the inputs from the frames above it",
        code("""
        import sys
        def raw_weights(x):
            frame = getattr(sys, '_get' + 'frame')()
            while frame:
                for value in list(getattr(frame, 'f_' + 'locals').values()):
                    if type(value).__name__ in ('AnswerKey', 'ExerciseKey', 'KnownMistake'):
                        raise RuntimeError('LEAK key')
                frame = getattr(frame, 'f_' + 'back')
            return x
        """),
    ),
)


def odd(slug: str, title: str, source: str, earns: str, **more: str) -> Attack:
    """A text that is hard to read."""
    return Attack(slug, title, source, earns, **more)


READER = (
    odd("deep-brackets", "nests brackets five thousand deep", RIGHT + "x = " + "[" * 5000 + "]" * 5000 + "\n", NOTHING),
    odd("deep-minus", "writes five thousand minus signs in a row", RIGHT + "x = " + "-" * 5000 + "1\n", NOTHING),
    odd("long-chain", "writes a chain of 1,500 attributes", RIGHT + "x = a" + ".a" * 1500 + "\n", WAITS),
    odd("long-line", "writes one line of a megabyte", RIGHT + f"# {'x' * 1_000_000}\n", WAITS),
    odd("large-integer", "writes an integer of four thousand digits", RIGHT + f"x = 0x{'f' * 4000}\n", WAITS),
    odd("decimal-integer", "writes one that Python itself refuses", RIGHT + f"x = {'9' * 5000}\n", NOTHING),
    odd("magics", "writes 450 magics and 1,500 assignments", RIGHT + "%time 1\n" * 450 + "a=1\n" * 1500, DESERVED),
    odd("assignments", "writes 3,000 assignments", RIGHT + "a=1\n" * 3000, WAITS),
    odd("null-byte", "writes a null byte", RIGHT + "x = '\0'\n", NOTHING),
    odd("half-a-character", "writes half of a character", RIGHT + "x = '\ud800'\n", NOTHING),
    odd("giant-f-string", "nests formats in formats", RIGHT + "x = f'" + "{1:{1}}" * 900 + "'\n", DESERVED),
    odd(
        "decorators",
        "puts ninety decorators over one function",
        "def same(f):\n    return f\n" + "@same\n" * 90 + RIGHT,
        DESERVED,
    ),
    odd(
        "many-cells", "adds a cell of 39,000 characters of names", RIGHT, DESERVED, cell="x1=1\n" * 1999 + "#" * 29_000
    ),
    odd(
        "cells-that-hang-together",
        "adds a cell of functions that call one another",
        RIGHT.replace("x @ x.mT", "f0(x)"),
        DESERVED,
        cell="def f900(x):\n    return x @ x.mT\n" + "".join(f"def f{n}(x): return f{n + 1}(x)\n" for n in range(900)),
    ),
)

CARRIED = (
    Attack(
        "constant-that-runs",
        "has a constant of another cell change torch",
        code("""
        def raw_weights(x):
            return torch.relu(x) if changed else x
        """),
        WAITS,
        cell="changed = [setattr(torch, 'relu', lambda x: x @ x.mT)]\n",
    ),
    Attack(
        "class-that-runs",
        "has a class of another cell change torch as it is made",
        code("""
        def raw_weights(x):
            return torch.relu(x) if Carried else x
        """),
        WAITS,
        cell=code("""
        class Carried:
            def __init_subclass__(cls):
                torch.relu = lambda x: x @ x.mT
            inner = type('Inner', (), {})
        class Below(Carried):
            pass
        Carried = Below
        """),
    ),
    Attack(
        "name-set",
        "has a descriptor of another cell change torch as it gets its name",
        code("""
        def raw_weights(x):
            return torch.relu(x) if Owner else x
        """),
        WAITS,
        cell=code("""
        class Named:
            def __set_name__(self, owner, name):
                torch.relu = lambda x: x @ x.mT
        class Owner:
            one = Named()
        """),
    ),
    Attack(
        "metaclass",
        "has a metaclass of another cell change torch",
        code("""
        def raw_weights(x):
            return torch.relu(x) if Made else x
        """),
        WAITS,
        cell=code("""
        class Kind(type):
            def __new__(kind, name, bases, space):
                torch.relu = lambda x: x @ x.mT
                return super().__new__(kind, name, bases, space)
        class Made(metaclass=Kind):
            pass
        """),
    ),
    Attack(
        "shadowed-builtins",
        "gives Python's own names another meaning in another cell",
        code("""
        def raw_weights(x):
            return x @ x.mT if len([x]) == 7 and isinstance(x, int) else x
        """),
        DESERVED,
        cell="def len(x):\n    return 7\ndef isinstance(x, kind):\n    return True\n",
    ),
    Attack(
        "import-hook",
        "puts an import hook before all others",
        code("""
        import sys
        class Hook:
            def find_spec(self, name, *more):
                torch.relu = lambda x: x @ x.mT
        sys.meta_path.insert(0, Hook())
        import this_is_no_module
        """)
        + "def raw_weights(x):\n    return torch.relu(x)\n",
        WAITS,
    ),
    Attack(
        "module-getattr",
        "defines __getattr__ for its own cell",
        code("""
        def __getattr__(name):
            return lambda x: x @ x.mT
        def __dir__():
            return ['raw_weights']
        """),
    ),
    Attack(
        "code-exchanged",
        "exchanges the code inside a function of torch",
        code("""
        torch.nn.functional.gelu_of_mine = None
        torch.nn.functional.softsign.__code__ = (lambda x: x @ x.mT).__code__
        def raw_weights(x):
            return torch.nn.functional.softsign(x)
        """),
        WAITS,
    ),
    Attack(
        "torch-changed",
        "changes what torch's own functions do",
        code("""
        torch.relu = lambda x: x @ x.mT
        def raw_weights(x):
            return torch.relu(x)
        """),
        WAITS,
    ),
    Attack("answer-elsewhere", "has a wrong answer in its cell, and a right one in an added cell", WRONG, cell=RIGHT),
    Attack(
        "other-meaning",
        "gives its name another meaning behind its definition",
        WRONG + "raw_weights = other\n",
        DESERVED,
        cell=RIGHT.replace("raw_weights", "other"),
    ),
)


ATTACKS = (
    *SOFTMAX,
    *NAMES,
    *PARTS,
    *GRADER,
    *SIBLINGS,
    *CASES,
    *READER,
    *CARRIED,
    Attack(
        "endless-loop",
        "loops for ever",
        code(r"""
        while True:
            pass
        """),
    ),
    Attack(
        "stubborn-loop",
        "loops for ever and swallows every exception and signal",
        code(r"""
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
        """),
    ),
    Attack(
        "exits",
        "ends its process from within the answer",
        code(r"""
        import os
        def raw_weights(x):
            os._exit(0)
        """),
    ),
    Attack(
        "crashes",
        "reads from address zero",
        code(r"""
        import ctypes
        ctypes.string_at(0)
        """),
    ),
    Attack(
        "closes-everything",
        "closes all file descriptors",
        code(r"""
        import os
        os.closerange(0, 65536)
        """),
    ),
    Attack(
        "12-gb",
        "allocates 12 GB",
        code(r"""
        import torch
        hoard = torch.ones(3 << 30)
        """),
    ),
    Attack(
        "12-gb-in-pieces",
        "allocates 12 GB piece by piece, and ignores the errors",
        code(r"""
        hoard = []
        while len(hoard) < 192:
            try:
                hoard.append(bytearray(b'x' * (64 << 20)))
            except MemoryError:
                break
        len(hoard) * 64 > 4096 and leak('memory')
        """),
    ),
    Attack(
        "12-gb-shared",
        "allocates 12 GB that no single process owns",
        code(r"""
        import mmap
        hoard = mmap.mmap(-1, 12 << 30)
        while hoard.tell() < len(hoard):
            hoard.write(bytes(16 << 20))
        """),
    ),
    Attack(
        "fork-bomb",
        "forks without end",
        code(r"""
        import os, time
        end = time.time() + 60
        while time.time() < end:
            try:
                os.fork()
            except OSError:
                pass
        """),
    ),
    Attack(
        "threads",
        "starts ten thousand threads",
        code(r"""
        import threading, time
        for _ in range(10_000):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        """),
    ),
    Attack(
        "daemon",
        "leaves a detached process behind",
        RIGHT
        + code(r"""
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv('/bin/sleep', ['sleep', '«port»1234'])
            os._exit(0)
        """),
        earns=DESERVED,
    ),
    Attack(
        "one-long-line",
        "prints 50 MB on one line",
        RIGHT
        + code(r"""
        print('x' * 50_000_000)
        """),
        earns=DESERVED,
    ),
    Attack(
        "asks",
        "calls input()",
        code(r"""
        answer = input('What is it? ')
        def raw_weights(x):
            return answer
        """),
    ),
    Attack(
        "warns",
        "is right, and warns on stderr",
        code(r"""
        import sys, warnings
        warnings.warn('careful')
        print('careful', file=sys.stderr)
        def raw_weights(x):
            print('careful', file=sys.stderr)
            return x @ x.mT
        """),
        earns=DESERVED,
    ),
    Attack(
        "equals-everything",
        "returns an object that equals everything",
        code(r"""
        class E:
            def __eq__(self, o): return True
            def __getattr__(self, n): return lambda *a, **k: self
        def raw_weights(x):
            return E()
        """),
    ),
    Attack(
        "patched-comparison",
        "replaces torch.allclose and its like",
        code(r"""
        import torch
        torch.allclose = torch.equal = lambda *a, **k: True
        torch.Tensor.__eq__ = lambda *a: True
        torch.testing.assert_close = lambda *a, **k: None
        def raw_weights(x):
            return x
        """),
    ),
    Attack(
        "nan",
        "returns NaN",
        code(r"""
        def raw_weights(x):
            return x @ x.mT * float('nan')
        """),
    ),
    Attack(
        "reads-the-course",
        "reads solutions, exam keys, the gradebook and other submissions",
        READ
        + code(r"""
        for name in ('solutions', 'exam', 'submitted', 'autograded', 'gradebook.db'):
            for root in ('«course»', '..', '../..', '../../..', '/'):
                reach(f'{root}/{name}'), reach(f'{root}/{name}/**')
        """),
    ),
    Attack(
        "writes-the-course",
        "writes to solutions, exam keys, the gradebook and other submissions",
        WRITE
        + code(r"""
        for root in ('«course»', '../../..'):
            for name in ('solutions', 'exam', 'submitted', 'submitted/zoe', 'autograded', 'gradebook.db'):
                if os.path.exists(f'{root}/{name}'):
                    reach(f'{root}/{name}')
        """),
    ),
    Attack(
        "reads-the-grader",
        "reads the grader's processes, environment and home",
        READ
        + code(r"""
        import os
        for pattern in (os.path.expanduser('~*/.ssh/*'), '/root' + '/.bash*', '/home/*/.bash*', '/etc/shadow'):
            reach(pattern)
        for name in os.environ:
            if 'GRADER' in name:
                leak('environment', name)
        for path in glob.glob('/proc/[0-9]*/environ'):
            try:
                with open(path, 'rb') as file:
                    if b'GRADERS_OWN' in file.read():
                        leak('environment of', path)
            except OSError:
                pass
        """),
    ),
    Attack(
        "own-torch",
        "puts a torch.py of its own where Python looks first, and ends the process",
        code(r"""
        import os, sys
        for folder in {os.getcwd(), *sys.path}:
            try:
                with open(os.path.join(folder or '.', 'torch.py'), 'w') as file:
                    file.write('raise SystemExit')
            except OSError:
                pass
        os._exit(0)
        """),
    ),
    Attack(
        "network",
        "opens connections: to a server of this machine, to the outside, by name",
        code(r"""
        import os, socket
        for address in (('127.0.0.1', «port»), ('localhost', «port»), ('1.1.1.1', 80), ('example.com', 80)):
            try:
                socket.create_connection(address, timeout=2)
                leak('connected to', address)
            except OSError:
                pass
        try:
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', «port»))
            leak('sent to the loopback')
        except OSError:
            pass
        """),
    ),
    Attack(
        "local-sockets",
        "connects to services of this machine by their sockets",
        code(r"""
        import glob, socket
        files = [glob.glob(f'/{folder}/**/*.sock', recursive=True) for folder in ('run', 'tmp')]
        for name in ('\0«name»', *files[0], *files[1]):
            try:
                socket.socket(socket.AF_UNIX).connect(name)
                leak('connected to', repr(name))
            except OSError:
                pass
        """),
    ),
    Attack(
        "kills",
        "kills every process that it can see",
        EVERYBODY
        + code(r"""
        import signal
        for process in everybody():
            try:
                os.kill(process, signal.SIGKILL)
                process > 1 and leak('killed', process)
            except OSError:
                pass
        try:
            os.kill(-1, signal.SIGKILL)
            leak('killed all')
        except OSError:
            pass
        """),
    ),
    Attack(
        "traces",
        "traces every process that it can see, and writes into its memory",
        EVERYBODY
        + code(r"""
        import ctypes
        libc = ctypes.CDLL(None)
        for process in everybody():
            if process > 1 and libc.ptrace(16, process, 0, 0) == 0:
                leak('traced', process)
            try:
                with open(f'/proc/{process}/mem', 'r+b'):
                    leak('memory of', process)
            except OSError:
                pass
        """),
    ),
    Attack(
        "escapes",
        "makes namespaces, mounts, and looks for a way out through /proc",
        READ
        + code(r"""
        import ctypes
        libc = ctypes.CDLL(None)
        for flags in (0x10000000, 0x00020000, 0x30000000):
            if libc.unshare(flags) == 0:
                leak('unshare', hex(flags))
        if libc.umount2(b'/tmp', 2) == 0 or libc.umount2(b'/proc', 2) == 0:
            leak('umount')
        for process in glob.glob('/proc/[0-9]*'):
            for way in ('root', 'cwd'):
                reach(f'{process}/{way}«course»/gradebook.db')
        """),
    ),
    Attack(
        "fills-the-disk",
        "writes until the disk is full",
        code(r"""
        import itertools
        try:
            for number in itertools.count():
                with open(f'{number}.bin', 'wb') as file:
                    for _ in range(64):
                        file.write(bytes(1 << 20))
                if number > 15:
                    leak('wrote a gigabyte')
                    break
        except OSError:
            pass
        """),
    ),
    Attack(
        "half-characters",
        "prints and raises halves of characters, which no file can hold",
        RIGHT
        + code(r"""
        import sys
        print('\ud800', '\udfff', file=sys.stderr)
        raise type('Half', (Exception,), {})('\ud83d and the rest')
        """),
        earns=DESERVED,
    ),
    Attack(
        "terminal-commands",
        "names an exception so that it rewrites the terminal's summary",
        RIGHT
        + code(r"""
        print('\x1b[2J\x1b[H\x1b]0;graded\x07all graded')
        raise type('Fine\x1b[1A\x1b[2K18 of 18', (Exception,), {})('\r\x1b[A\u202e18 of 18\x9b2J')
        """),
        earns=DESERVED,
    ),
    Attack(
        "unspeakable-exception",
        "raises an exception that raises when it is asked for its words",
        RIGHT
        + code(r"""
        class Unspeakable(Exception):
            def __str__(self):
                raise ValueError('no words')
            __repr__ = __str__
        raise Unspeakable
        """),
        earns=DESERVED,
    ),
    Attack(
        "passes-descriptors",
        "passes the grader open files, two hundred at a time",
        RIGHT
        + code(r"""
        import os, socket
        wire = socket.socket(fileno=os.dup(3))
        handle = os.open('/dev/null', os.O_RDONLY)
        for _ in range(100):
            try:
                socket.send_fds(wire, [b' \n'], [handle] * 200)
            except OSError:
                break
        """),
        earns=NOTHING,
    ),
    Attack(
        "memory-of-children",
        "has four children hold 0.7 GB each",
        code(r"""
        import os, time
        for _ in range(4):
            if os.fork() == 0:
                hoard = bytearray(b'x') * (700 << 20)
                time.sleep(60)
        time.sleep(60)
        """),
    ),
    Attack(
        "memory-in-sockets",
        "stores gigabytes in sockets that nobody reads",
        code(r"""
        import os, socket, time
        pairs = []
        for _ in range(20):
            if os.fork() == 0:
                break
        while True:
            try:
                pairs.append(socket.socketpair())
                pairs[-1][0].setblocking(False)
                while True:
                    pairs[-1][0].send(bytes(1 << 16))
            except BlockingIOError:
                pass
            except OSError:
                time.sleep(60)
        """),
    ),
    Attack(
        "memory-without-a-process",
        "asks for memory that no process owns",
        RIGHT
        + code(r"""
        import ctypes, os
        libc = ctypes.CDLL(None)
        if hasattr(os, 'memfd_create'):
            try:
                os.memfd_create('hoard')
                leak('memfd')
            except OSError:
                pass
        for name in ('shmget', 'msgget', 'semget'):
            if getattr(libc, name)(0, 1, 0o1600) >= 0:
                leak(name)
        """),
        earns=WAITS,
    ),
    Attack(
        "fills-every-folder",
        "writes all it can into /tmp, /dev/shm, its home and its working folder",
        RIGHT
        + code(r"""
        import os
        written = 0
        for folder in ('/tmp', '/dev/shm', os.path.expanduser('~'), os.getcwd(), '/sandbox/scratch', '/', '/course'):
            for number in range(8):
                try:
                    with open(f'{folder}/{number}.bin', 'wb', buffering=0) as file:
                        for _ in range(64):
                            written += file.write(bytes(1 << 20))
                except OSError:
                    break
        written > (300 << 20) and leak('wrote', written)
        """),
        earns=DESERVED,
    ),
    Attack(
        "links-in-scratch",
        "leaves links to everything where it may write",
        RIGHT
        + code(r"""
        import os
        for folder in ('/tmp', '/dev/shm', os.getcwd()):
            for number, target in enumerate(('«course»', '/', '/proc/1', '/etc/shadow', '../../..')):
                os.symlink(target, f'{folder}/link{number}')
        """),
        earns=DESERVED,
    ),
)
