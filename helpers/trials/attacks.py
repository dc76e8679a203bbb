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
    `Surroundings`. keeps: the answer is right all the same, and earns its points. spoils: the attacker's own answers to
    other exercises may be lost. tags: put on the check cell.
    """

    slug: str
    title: str
    source: str
    keeps: bool = False
    spoils: bool = False
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
        for pattern in (os.path.expanduser('~*/.ssh/*'), '/root' + '/.bash*', '/home/*/.bash*', '/etc/shadow'):
            reach(pattern)
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
    Attack(
        "flood-of-answers",
        "sends the grader answers of 10 MB, one after the other",
        code(r"""
        import json, os
        from helpers.checking.answers import MIME
        forged = {'type': 'display_data', 'data': {MIME: {'format': 1, 'tensors': 'A' * 10_000_000}}, 'metadata': {}}
        line = json.dumps(forged).encode() + b'\n'
        def raw_weights(x):
            for _ in range(50):
                sent = 0
                while sent < len(line):
                    sent += os.write(3, line[sent:])
            return x @ x.mT
        """),
    ),
    Attack(
        "flood-of-brackets",
        "sends messages of ten megabytes that hold nothing but brackets",
        code(r"""
        import os
        line = b'{"type": "display_data", "data": {"text/plain": [' + b'[],' * 3_400_000 + b'[]]}}\n'
        for _ in range(50):
            sent = 0
            while sent < len(line):
                sent += os.write(3, line[sent:])
        """),
    ),
    Attack(
        "flood-of-small-messages",
        "sends a million messages of a few letters",
        code(r"""
        import os
        lines = b'{"type": "stream", "name": "stdout", "text": ""}\n' * 1000
        for _ in range(1000):
            os.write(3, lines)
        """),
    ),
    Attack(
        "tiny-outputs",
        "displays a hundred thousand small things, and clears and updates them",
        RIGHT
        + code(r"""
        from IPython.display import clear_output, display
        handle = display(0, display_id='mine')
        for i in range(33_000):
            display(i)
            handle.update(i)
            if i % 1000 == 0:
                clear_output(wait=True)
        """),
        keeps=True,
    ),
    Attack(
        "big-metadata",
        "displays a small thing with 50 MB of metadata, and in a thousand types",
        RIGHT
        + code(r"""
        from IPython.display import display
        display({'text/plain': 'x'}, metadata={'x': 'y' * 50_000_000}, raw=True)
        display({f'text/{i}': 'x' for i in range(1000)}, raw=True)
        """),
        keeps=True,
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
        keeps=True,
    ),
    Attack(
        "terminal-commands",
        "names an exception so that it rewrites the terminal's summary",
        RIGHT
        + code(r"""
        print('\x1b[2J\x1b[H\x1b]0;graded\x07all graded')
        raise type('Fine\x1b[1A\x1b[2K18 of 18', (Exception,), {})('\r\x1b[A\u202e18 of 18\x9b2J')
        """),
        keeps=True,
    ),
    Attack(
        "odd-json",
        "sends JSON nested 900 deep, NaN, Infinity and numbers of four thousand digits",
        RIGHT
        + code(r"""
        import os
        from helpers.checking.answers import MIME
        head = '{"type": "display_data", "metadata": {}, "data": {"text/plain": '
        for odd in ('[' * 900 + ']' * 900, 'NaN', '-Infinity', '9' * 4200, '1e999', '"\\ud800"', 'true', 'null'):
            os.write(3, f'{head}{odd}}}}}\n'.encode())
            os.write(3, f'{{"type": "done", "cell": {odd}, "count": {odd}}}\n'.encode())
            os.write(3, f'{{"type": {odd}}}\n{{"type": "stream", "name": {odd}, "text": {odd}}}\n'.encode())
        """),
        keeps=True,
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
        keeps=True,
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
        keeps=True,
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
                print('LEAK memfd')
            except OSError:
                pass
        for name in ('shmget', 'msgget', 'semget'):
            if getattr(libc, name)(0, 1, 0o1600) >= 0:
                print('LEAK', name)
        """),
        keeps=True,
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
        print(written > (300 << 20) and f'LEAK wrote {written >> 20} MB')
        """),
        keeps=True,
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
        keeps=True,
    ),
    Attack(
        "done-before-it-is",
        "says of all cells at once that they are done",
        code(r"""
        import os
        for place in range(300):
            os.write(3, b'{"type": "done", "cell": %d, "count": 1}\n' % place)
        """),
        spoils=True,
    ),
    Attack(
        "answers-from-behind",
        "sends forged answers to every exercise from a thread, for as long as it is run",
        code(r"""
        import json, os, threading, time
        from helpers.checking.answers import MIME
        names = ('masked_squared_error', 'raw_weights', 'row_softmax', 'self_attention', 'equivariance_gap')
        def send():
            while True:
                for name in names:
                    data = {MIME: {'format': 1, 'exercise': name, 'points': 4}, 'text/plain': '4.0'}
                    line = json.dumps({'type': 'display_data', 'data': data, 'metadata': {}})
                    os.write(3, f'{line}\n{{"type": "clear_output"}}\n'.encode())
                time.sleep(0.01)
        threading.Thread(target=send, daemon=True).start()
        def raw_weights(x):
            return x
        """),
        spoils=True,
    ),
)
