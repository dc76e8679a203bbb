"""What submissions have been known to do to a grader, as code that a test and a comparison can run.

Each attack takes the place of one solution of lesson 1, beside right answers to all other exercises. Where an
attack gets at something that it must not reach, it prints LEAK and what it was.
"""

from __future__ import annotations

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
    """What there is to attack. course: a course's folder. port: a TCP server on the loopback. name: an abstract socket."""

    course: str
    port: int = 0
    name: str = ""

    def fill(self, source: str) -> str:
        return source.replace("«course»", self.course).replace("«port»", str(self.port)).replace("«name»", self.name)


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
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/course/helpers", "/sandbox", os.getcwd(), os.path.expanduser("~"),
                   os.path.dirname(os.__file__), *__import__("sys").path):
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
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()] + [os.getppid(), *range(2, 300)]
"""

ATTACKS = (
    Attack("endless-loop", "loops for ever", "while True:\n    pass"),
    Attack(
        "stubborn-loop",
        "loops for ever and swallows every exception and signal",
        "import signal\nfor number in range(1, 65):\n    try:\n        signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\n"
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
    ),
    Attack("stops-itself", "stops its own process", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nwhile True:\n    signal.pause()"),
    Attack("exits", "ends its process from within the answer", "import os\ndef raw_weights(x):\n    os._exit(0)"),
    Attack("crashes", "reads from address zero", "import ctypes\nctypes.string_at(0)"),
    Attack("closes-everything", "closes all file descriptors", "import os\nos.closerange(0, 65536)\n"),
    Attack("12-gb", "allocates 12 GB", "import torch\nhoard = torch.ones(3 << 30)"),
    Attack(
        "12-gb-in-pieces",
        "allocates 12 GB piece by piece, and ignores the errors",
        "hoard = []\nwhile len(hoard) < 192:\n    try:\n        hoard.append(bytearray(b'x' * (64 << 20)))\n    except MemoryError:\n        break\n"
        "print(len(hoard) * 64 > 4096 and 'LEAK memory')",
    ),
    Attack(
        "12-gb-shared",
        "allocates 12 GB that no single process owns",
        "import mmap\nhoard = mmap.mmap(-1, 12 << 30)\nwhile hoard.tell() < len(hoard):\n    hoard.write(bytes(16 << 20))",
    ),
    Attack(
        "fork-bomb",
        "forks without end",
        "import os, time\nend = time.time() + 60\nwhile time.time() < end:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    ),
    Attack(
        "threads",
        "starts ten thousand threads",
        "import threading, time\nfor _ in range(10_000):\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    ),
    Attack(
        "daemon",
        "leaves a detached process behind",
        RIGHT + "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.execv('/bin/sleep', ['sleep', '«port»1234'])\n    os._exit(0)",
        keeps=True,
    ),
    Attack("one-long-line", "prints 50 MB on one line", RIGHT + "print('x' * 50_000_000)", keeps=True),
    Attack("million-lines", "prints a million lines", RIGHT + "for i in range(1_000_000):\n    print('line', i)", keeps=True),
    Attack(
        "big-display",
        "displays 50 MB as an output",
        RIGHT + "from IPython.display import HTML, display\ndisplay(HTML('x' * 50_000_000))",
        keeps=True,
    ),
    Attack("asks", "calls input()", "answer = input('What is it? ')\n" + RIGHT.replace("x @ x.mT", "answer")),
    Attack(
        "warns",
        "is right, and warns on stderr",
        "import sys, warnings\nwarnings.warn('careful')\nprint('careful', file=sys.stderr)\n" + RIGHT.replace("    return", "    print('careful', file=sys.stderr)\n    return"),
        keeps=True,
    ),
    Attack("skips-its-check", "tags its check cell skip-execution", "def raw_weights(x):\n    return x", tags=("skip-execution", "show")),
    Attack(
        "input-transformer",
        "rewrites the text of the cells that follow",
        "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])",
    ),
    Attack(
        "syntax-transformer",
        "rewrites the syntax tree of the cells that follow",
        "import ast\nclass Blank(ast.NodeTransformer):\n    def visit_Module(self, node):\n        node.body = []\n        return node\n"
        "get_ipython().ast_transformers.append(Blank())",
    ),
    Attack(
        "equals-everything",
        "returns an object that equals everything",
        "class E:\n    def __eq__(self, o): return True\n    def __getattr__(self, n): return lambda *a, **k: self\ndef raw_weights(x):\n    return E()",
    ),
    Attack(
        "patched-comparison",
        "replaces torch.allclose and its like",
        "import torch\ntorch.allclose = torch.equal = lambda *a, **k: True\ntorch.Tensor.__eq__ = lambda *a: True\n"
        "torch.testing.assert_close = lambda *a, **k: None\ndef raw_weights(x):\n    return x",
    ),
    Attack("nan", "returns NaN", "def raw_weights(x):\n    return x @ x.mT * float('nan')"),
    Attack(
        "silent-check",
        "replaces check by a function that does nothing",
        "def raw_weights(x):\n    return x\nhonest = check\ncheck = lambda answer: None if answer is raw_weights else honest(answer)",
    ),
    Attack(
        "forged-display",
        "displays an answer of its own making",
        "from IPython.display import display\nfrom helpers.checking.answers import MIME\ndef raw_weights(x):\n"
        "    display({MIME: {'format': 1, 'exercise': 'raw_weights', 'points': 3}, 'text/plain': '3.0'}, raw=True)\n    return x",
    ),
    Attack(
        "forged-messages",
        "writes messages to the grader by hand",
        "import json, os\nfrom helpers.checking.answers import MIME\nlines = ['not json', '[' * 100_000, '{}', '[]', 'null',\n"
        "    json.dumps({'type': 'done', 'cell': 10**9}), json.dumps({'type': 'stream', 'name': 3, 'text': []}),\n"
        "    json.dumps({'type': 'display_data', 'data': {'text/plain': '3.0', MIME: 1}, 'metadata': {}}),\n"
        "    json.dumps({'type': 'execute_result', 'data': {'text/plain': '3.0'}, 'metadata': {}})]\n"
        "def raw_weights(x):\n    for descriptor in range(3, 40):\n        try:\n            os.write(descriptor, ('\\n'.join(lines) + '\\n').encode())\n"
        "        except OSError:\n            pass\n    return x",
    ),
    Attack(
        "forged-session",
        "patches the kernel's session",
        "kernel = get_ipython().kernel\nsend = kernel.session.send\n"
        "def forge(stream, kind, *rest, **more):\n    if kind == 'error':\n        return None\n    return send(stream, kind, *rest, **more)\n"
        "kernel.session.send = forge\ndef raw_weights(x):\n    return x",
    ),
    Attack(
        "flood-of-messages",
        "floods the grader with messages of no sense",
        "import os, time\nend = time.time() + 20\nwhile time.time() < end:\n    for descriptor in range(3, 10):\n        try:\n"
        "            os.write(descriptor, b'{\"type\": \"stream\", \"name\": \"stdout\", \"text\": \"' + b'x' * 60_000 + b'\"}\\n')\n"
        "        except OSError:\n            pass",
    ),
    Attack(
        "reads-the-course",
        "reads solutions, exam keys, the gradebook and other submissions",
        READ + "for name in ('solutions', 'exam', 'submitted', 'autograded', 'gradebook.db'):\n"
        "    for root in ('«course»', '..', '../..', '../../..', '/'):\n        reach(f'{root}/{name}'), reach(f'{root}/{name}/**')\n",
    ),
    Attack(
        "writes-the-course",
        "writes to solutions, exam keys, the gradebook and other submissions",
        WRITE + "for root in ('«course»', '../../..'):\n"
        "    for name in ('solutions', 'exam', 'submitted', 'submitted/zoe', 'autograded', 'gradebook.db'):\n"
        "        if os.path.exists(f'{root}/{name}'):\n            reach(f'{root}/{name}')\n",
    ),
    Attack(
        "reads-the-grader",
        "reads the grader's processes, environment and home",
        READ + "import os\nreach(os.path.expanduser('~*/.ssh/*')), reach('/root' + '/.bash*'), reach('/home/*/.bash*'), reach('/etc/shadow')\n"
        "for name in os.environ:\n    if 'GRADER' in name:\n        print('LEAK environment', name)\n"
        "for path in glob.glob('/proc/[0-9]*/environ'):\n    try:\n        with open(path, 'rb') as file:\n"
        "            if b'GRADERS_OWN' in file.read():\n                print('LEAK environment of', path)\n    except OSError:\n        pass",
    ),
    Attack(
        "own-torch",
        "puts a torch.py of its own where Python looks first, and ends the process",
        "import os, sys\nfor folder in {os.getcwd(), *sys.path}:\n    try:\n        with open(os.path.join(folder or '.', 'torch.py'), 'w') as file:\n"
        "            file.write('print(\"LEAK own torch\")')\n    except OSError:\n        pass\nos._exit(0)",
    ),
    Attack(
        "network",
        "opens connections: to a server of this machine, to the outside, by name",
        "import os, socket\nfor address in (('127.0.0.1', «port»), ('localhost', «port»), ('1.1.1.1', 80), ('example.com', 80)):\n    try:\n"
        "        socket.create_connection(address, timeout=2)\n        print('LEAK connected to', address)\n    except OSError:\n        pass\n"
        "try:\n    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', «port»))\n    print('LEAK sent to the loopback')\nexcept OSError:\n    pass\n",
    ),
    Attack(
        "local-sockets",
        "connects to services of this machine by their sockets",
        "import glob, socket\nfor name in ('\\0«name»', *glob.glob('/run/**/*.sock', recursive=True), *glob.glob('/tmp/**/*.sock', recursive=True)):\n    try:\n"
        "        socket.socket(socket.AF_UNIX).connect(name)\n        print('LEAK connected to', repr(name))\n    except OSError:\n        pass\n",
    ),
    Attack(
        "kills",
        "kills every process that it can see",
        EVERYBODY + "import signal\nfor process in everybody():\n    try:\n        os.kill(process, signal.SIGKILL)\n        print(process > 1 and f'LEAK killed {process}')\n"
        "    except OSError:\n        pass\ntry:\n    os.kill(-1, signal.SIGKILL)\n    print('LEAK killed all')\nexcept OSError:\n    pass",
    ),
    Attack(
        "traces",
        "traces every process that it can see, and writes into its memory",
        EVERYBODY + "import ctypes\nlibc = ctypes.CDLL(None)\nfor process in everybody():\n    if process > 1 and libc.ptrace(16, process, 0, 0) == 0:\n"
        "        print('LEAK traced', process)\n    try:\n        with open(f'/proc/{process}/mem', 'r+b'):\n            print('LEAK memory of', process)\n"
        "    except OSError:\n        pass",
    ),
    Attack(
        "escapes",
        "makes namespaces, mounts, and looks for a way out through /proc",
        READ + "import ctypes\nlibc = ctypes.CDLL(None)\nfor flags in (0x10000000, 0x00020000, 0x30000000):\n    if libc.unshare(flags) == 0:\n"
        "        print('LEAK unshare', hex(flags))\nif libc.umount2(b'/tmp', 2) == 0 or libc.umount2(b'/proc', 2) == 0:\n    print('LEAK umount')\n"
        "for process in glob.glob('/proc/[0-9]*'):\n    for way in ('root', 'cwd'):\n        reach(f'{process}/{way}«course»/gradebook.db')\n",
    ),
    Attack("leaves-files", "leaves files in every folder, for the next to find", LEAVE),
    Attack("finds-files", "looks for what the one before left", LEAVE),
    Attack(
        "fills-the-disk",
        "writes until the disk is full",
        "import itertools\ntry:\n    for number in itertools.count():\n        with open(f'{number}.bin', 'wb') as file:\n            for _ in range(64):\n                file.write(bytes(1 << 20))\n"
        "        if number > 15:\n            print('LEAK wrote a gigabyte')\n            break\nexcept OSError:\n    pass",
    ),
)
