"""What submissions have been known to do to a grader, as code that a test and a comparison can run.

Each attack takes the place of one solution of lesson 1, beside right answers to all other exercises. Where an
attack gets at something that it must not reach, it prints LEAK and what it was.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

LESSON, EXERCISE = "01_dot_product_attention", "raw_weights"
RIGHT = "def raw_weights(x):\n    return x @ x.mT\n"
LEAK = "LEAK"


@dataclass(frozen=True)
class Attack:
    """One way to misbehave.

    title: what it does, for a table. source: the text of the solution cell; words in «» are replaced by
    `Surroundings`. keeps: the answer is right all the same, and earns its points. tags: put on the check cell.
    """

    slug: str
    title: str
    source: str
    keeps: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Surroundings:
    """What there is to attack: a course's folder, the port of a server on the loopback, an abstract socket's name."""

    course: str
    port: int = 0
    name: str = ""

    def fill(self, source: str) -> str:
        source = source.replace("«course»", self.course).replace("«port»", str(self.port))
        return source.replace("«name»", self.name)


READ = """
import glob, os
def reach(pattern):
    for path in glob.glob(pattern, recursive=True):
        if os.path.isfile(path):
            try:
                with open(path, "rb") as file:
                    if file.read(10):
                        print("LEAK read", path)
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
        print("LEAK wrote", path)
    except OSError:
        pass
"""

LEAVE = """
import os
def leave():
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/course/helpers", "/sandbox", os.getcwd(),
                   os.path.expanduser("~"), os.path.dirname(os.__file__), *__import__("sys").path):
        path = os.path.join(folder or ".", "left-by-a-submission")
        if os.path.exists(path):
            print("LEAK found", path)
        try:
            with open(path, "w") as file:
                file.write("found")
        except OSError:
            pass
leave()
"""

EVERYBODY = """
import os
def everybody():
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    return [*seen, os.getppid(), *range(2, 300)]
"""


def code(text: str) -> str:
    return textwrap.dedent(text).strip("\n") + "\n"


ATTACKS = (
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
        "stops-itself",
        "stops its own process",
        code(r"""
        import os, signal
        os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            signal.pause()
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
        print(len(hoard) * 64 > 4096 and 'LEAK memory')
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
        keeps=True,
    ),
    Attack(
        "one-long-line",
        "prints 50 MB on one line",
        RIGHT
        + code(r"""
        print('x' * 50_000_000)
        """),
        keeps=True,
    ),
    Attack(
        "million-lines",
        "prints a million lines",
        RIGHT
        + code(r"""
        for i in range(1_000_000):
            print('line', i)
        """),
        keeps=True,
    ),
    Attack(
        "big-display",
        "displays 50 MB as an output",
        RIGHT
        + code(r"""
        from IPython.display import HTML, display
        display(HTML('x' * 50_000_000))
        """),
        keeps=True,
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
        keeps=True,
    ),
    Attack(
        "skips-its-check",
        "tags its check cell skip-execution",
        code(r"""
        def raw_weights(x):
            return x
        """),
        tags=("skip-execution", "show"),
    ),
    Attack(
        "input-transformer",
        "rewrites the text of the cells that follow",
        code(r"""
        get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\n'])
        """),
    ),
    Attack(
        "syntax-transformer",
        "rewrites the syntax tree of the cells that follow",
        code(r"""
        import ast
        class Blank(ast.NodeTransformer):
            def visit_Module(self, node):
                node.body = []
                return node
        get_ipython().ast_transformers.append(Blank())
        """),
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
        "silent-check",
        "replaces check by a function that does nothing",
        code(r"""
        def raw_weights(x):
            return x
        honest = check
        check = lambda answer: None if answer is raw_weights else honest(answer)
        """),
    ),
    Attack(
        "forged-display",
        "displays an answer of its own making",
        code(r"""
        from IPython.display import display
        from helpers.checking.answers import MIME
        def raw_weights(x):
            display({MIME: {'format': 1, 'exercise': 'raw_weights', 'points': 3}, 'text/plain': '3.0'}, raw=True)
            return x
        """),
    ),
    Attack(
        "forged-messages",
        "writes messages to the grader by hand",
        code(r"""
        import json, os
        from helpers.checking.answers import MIME
        lines = ['not json', '[' * 100_000, '{}', '[]', 'null',
            json.dumps({'type': 'done', 'cell': 10**9}), json.dumps({'type': 'stream', 'name': 3, 'text': []}),
            json.dumps({'type': 'display_data', 'data': {'text/plain': '3.0', MIME: 1}, 'metadata': {}}),
            json.dumps({'type': 'execute_result', 'data': {'text/plain': '3.0'}, 'metadata': {}})]
        def raw_weights(x):
            for descriptor in range(3, 40):
                try:
                    os.write(descriptor, ('\n'.join(lines) + '\n').encode())
                except OSError:
                    pass
            return x
        """),
    ),
    Attack(
        "forged-session",
        "patches the kernel's session",
        code(r"""
        kernel = get_ipython().kernel
        send = kernel.session.send
        def forge(stream, kind, *rest, **more):
            if kind == 'error':
                return None
            return send(stream, kind, *rest, **more)
        kernel.session.send = forge
        def raw_weights(x):
            return x
        """),
    ),
    Attack(
        "flood-of-messages",
        "floods the grader with messages of no sense",
        code(r"""
        import os, time
        end = time.time() + 20
        while time.time() < end:
            for descriptor in range(3, 10):
                try:
                    os.write(descriptor, b'{"type": "stream", "name": "stdout", "text": "' + b'x' * 60_000 + b'"}\n')
                except OSError:
                    pass
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
        reach(os.path.expanduser('~*/.ssh/*')), reach('/root' + '/.bash*'), reach('/home/*/.bash*'), reach('/etc/shadow')
        for name in os.environ:
            if 'GRADER' in name:
                print('LEAK environment', name)
        for path in glob.glob('/proc/[0-9]*/environ'):
            try:
                with open(path, 'rb') as file:
                    if b'GRADERS_OWN' in file.read():
                        print('LEAK environment of', path)
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
                    file.write('print("LEAK own torch")')
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
                print('LEAK connected to', address)
            except OSError:
                pass
        try:
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', «port»))
            print('LEAK sent to the loopback')
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
                print('LEAK connected to', repr(name))
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
                print(process > 1 and f'LEAK killed {process}')
            except OSError:
                pass
        try:
            os.kill(-1, signal.SIGKILL)
            print('LEAK killed all')
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
                print('LEAK traced', process)
            try:
                with open(f'/proc/{process}/mem', 'r+b'):
                    print('LEAK memory of', process)
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
                print('LEAK unshare', hex(flags))
        if libc.umount2(b'/tmp', 2) == 0 or libc.umount2(b'/proc', 2) == 0:
            print('LEAK umount')
        for process in glob.glob('/proc/[0-9]*'):
            for way in ('root', 'cwd'):
                reach(f'{process}/{way}«course»/gradebook.db')
        """),
    ),
    Attack("leaves-files", "leaves files in every folder, for the next to find", LEAVE),
    Attack("finds-files", "looks for what the one before left", LEAVE),
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
                    print('LEAK wrote a gigabyte')
                    break
        except OSError:
            pass
        """),
    ),
)
