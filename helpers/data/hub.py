"""Files from the Hugging Face Hub: asked for quickly, fetched in pieces that survive an interruption, checked whole.

The library `huggingface_hub` keeps nothing of a download that was cut off. Over a school's network half a gigabyte
seldom comes in one piece, so the bytes are fetched here: what has come stays in a `.part` file, and the next call asks
for the rest only. A file takes its name when its checksum was found right, and not before.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import socket
import threading
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tqdm.auto import tqdm

PATIENCE = 1.0  # seconds that a lesson waits to learn whether there is a network
TIMEOUT = 10.0  # seconds without a byte before a connection counts as lost
ATTEMPTS = 4  # times a file is asked for again without any progress, before giving up
MEGABYTE = 1_000_000


class Unavailable(Exception):
    """Something cannot be had now. The message says why in half a sentence, fit to stand after "because"."""


class HubFile(NamedTuple):
    """A file of a repository on the Hub, as the Hub's own listing describes it."""

    path: str  # inside the repository, with forward slashes
    size: int  # bytes
    sha256: str  # hexadecimal; empty for small files, which the Hub knows by their git id only
    git_id: str  # sha1 of "blob <size>\0" and the content, hexadecimal


class Repository(NamedTuple):
    """A repository on the Hub at one revision."""

    name: str  # "owner/name"
    kind: str  # "dataset" or "model"
    revision: str = "main"


##### Is there a Hub?


def endpoint() -> str:
    """The Hub's address: $HF_ENDPOINT (a school's mirror, say), or the one that `huggingface_hub` was made with."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def require_network() -> None:
    """Raise Unavailable, within about PATIENCE seconds, unless somebody answers at the Hub's address.

    HF_HUB_OFFLINE=1 is taken at its word. Behind a proxy it is the proxy that must answer.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE"):
        raise Unavailable("HF_HUB_OFFLINE is set")
    parts = urlsplit(endpoint())
    proxy = None if urllib.request.proxy_bypass(parts.hostname) else urllib.request.getproxies().get(parts.scheme)
    if proxy:
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    port = parts.port or (80 if parts.scheme == "http" else 443)
    if not _answers(parts.hostname, port):
        raise Unavailable(f"there is no network (no answer from {parts.hostname} within {PATIENCE:.0f} s)")


def _answers(host: str, port: int) -> bool:
    """Can a connection be opened within PATIENCE? In a thread, for a name server that is silent cannot be hurried."""
    opened = []

    def connect():
        try:
            socket.create_connection((host, port), timeout=PATIENCE).close()
            opened.append(True)
        except OSError:
            pass

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return bool(opened)


##### What a repository holds


def listing(repository: Repository) -> list[HubFile]:
    """The files of a repository, from the Hub's interface. Raises Unavailable."""
    from huggingface_hub import HfApi

    def ask():
        api = HfApi(endpoint=endpoint())
        return api.repo_info(
            repository.name,
            repo_type=repository.kind,
            revision=repository.revision,
            files_metadata=True,
            timeout=TIMEOUT,
        )

    files = []
    for entry in _patiently(ask, repository.name).siblings or []:
        sha256 = entry.lfs.sha256 if entry.lfs else ""
        files.append(HubFile(entry.rfilename, entry.size or 0, sha256 or "", entry.blob_id or ""))
    return files


def choose(files: list[HubFile], patterns: dict[str, str]) -> dict[str, list[HubFile]] | None:
    """The files of each split: those whose path a regular expression finds. None where a split has no file."""
    chosen = {split: sorted(f for f in files if re.search(pattern, f.path)) for split, pattern in patterns.items()}
    return chosen if all(chosen.values()) else None


##### Getting a file


def download(repository: Repository, file: HubFile, target: Path) -> Path:
    """Fetch one file of the Hub to `target`, with a progress bar. Returns `target`; raises Unavailable.

    What an earlier call left in `target`.part is taken up again. The checksum is compared before the file takes its
    name: what stands at `target` is whole. Two processes that want the same file take turns.
    """
    from huggingface_hub.utils import WeakFileLock

    part = target.with_name(f"{target.name}.{(file.sha256 or file.git_id or 'unknown')[:12]}.part")
    lock = part.with_suffix(".lock")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(lock):
            if not target.exists():
                _room(part, file.size - _size(part), file.path)
                _fetch(repository, file, part)
                _require_whole(part, file)
                os.replace(part, target)
                for older in target.parent.glob(f"{target.name}.*.part"):
                    older.unlink()  # the beginning of a version that the Hub holds no more
    except OSError as problem:
        raise Unavailable(reason(problem, file.path)) from problem
    finally:
        lock.unlink(missing_ok=True)  # should two ever write at once for it, the checksum notices
    return target


def _fetch(repository: Repository, file: HubFile, part: Path) -> None:
    """Append to `part` until it holds file.size bytes. An attempt that brings something does not count."""
    name = file.path.rsplit("/", 1)[-1]
    failures = 0
    with tqdm(total=file.size, initial=_size(part), desc=name, unit="B", unit_scale=True, leave=False) as bar:
        while _size(part) < file.size or not part.exists():
            before = _size(part)
            try:
                _fetch_once(repository, file, part, bar)
                if _size(part) < file.size:
                    raise ConnectionError("the connection was cut off")
            except Exception as problem:  # the HTTP library's own errors have no stable public name
                if isinstance(problem, OSError) and problem.errno in _DISK:
                    raise
                failures = 0 if _size(part) > before else failures + 1
                if failures >= ATTEMPTS or not _passes(problem):
                    have = f"{_size(part) / MEGABYTE:.1f} of {file.size / MEGABYTE:.1f} MB"
                    kept = f"; {have} are kept, and the next try goes on from there" if _size(part) else ""
                    raise Unavailable(reason(problem, file.path) + kept) from problem
                time.sleep(_wait(problem, failures))


def _fetch_once(repository: Repository, file: HubFile, part: Path, bar: tqdm) -> None:
    """Ask once for the bytes that `part` still lacks, and append what comes."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    url = hf_hub_url(
        repository.name, file.path, repo_type=repository.kind, revision=repository.revision, endpoint=endpoint()
    )
    have = _size(part)
    # Compressed on the way, a byte range would count compressed bytes.
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT, follow_redirects=True) as response:
        if response.status_code == 416:  # what is here is longer than the file: not its beginning
            part.unlink()
            raise ConnectionError("the Hub holds another file than before")
        hf_raise_for_status(response)
        resumed = response.status_code == 206
        if not resumed:  # a server that knows no ranges starts from the beginning
            bar.reset(total=file.size)
        with part.open("ab" if resumed else "wb") as out:
            for piece in response.iter_bytes():  # as they come: nothing that came is lost in a buffer
                out.write(piece)
                bar.update(len(piece))
                if out.tell() > file.size:
                    break


def _require_whole(part: Path, file: HubFile) -> None:
    """Raise Unavailable, and throw the bytes away, unless they are those that the Hub's listing promised."""
    if _size(part) == file.size:
        if file.sha256 and sha256(part) == file.sha256:
            return
        if not file.sha256 and (not file.git_id or git_id(part) == file.git_id):
            return
    part.unlink()
    raise Unavailable(f"{file.path} came damaged from the Hub (its checksum is wrong), and was thrown away")


##### Checksums


def sha256(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_id(path: Path) -> str:
    """The name that git gives to a file's content, hexadecimal. The Hub lists it for small files."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(MEGABYTE), b""):
            digest.update(piece)
    return digest.hexdigest()


##### Saying what went wrong


_DISK = (errno.ENOSPC, errno.EDQUOT)


def reason(problem: BaseException, what: str) -> str:
    """What went wrong with `what`, in half a sentence."""
    if isinstance(problem, Unavailable):
        return str(problem)
    status = _status(problem)
    if status:
        meaning = " (a fault of the Hub)" if status >= 500 else _MEANING.get(status, "")
        return f"the Hub answered {status} for {what}{meaning}"
    if isinstance(problem, OSError) and problem.errno in _DISK:
        return f"the disk is full ({what} could not be written)"
    if isinstance(problem, PermissionError):
        return f"{problem.filename or what} may not be written"
    kind = type(problem).__name__
    if kind.endswith(("Timeout", "TimeoutError", "TimeoutException")):
        return f"the Hub did not go on within {TIMEOUT:.0f} s while sending {what}"
    if isinstance(problem, ConnectionError) or "Protocol" in kind or "Connect" in kind:
        return f"the connection broke off while fetching {what}"
    first_line = (str(problem).strip() or kind).splitlines()[0]
    return f"{what} could not be had ({first_line[:120]})"


_MEANING = {
    401: " (it asks who you are: log in with `hf auth login`)",
    403: " (no entrance: `hf auth login`, or your network blocks it)",
    404: " (not found)",
    429: " (too many requests: try again in some minutes)",
}


def _status(problem: BaseException) -> int | None:
    return getattr(getattr(problem, "response", None), "status_code", None)


def _passes(problem: BaseException) -> bool:
    """May the same question be answered later? A lost connection, a busy or broken server: yes. 404: no."""
    status = _status(problem)
    return status is None or status in (408, 429) or status >= 500


def _wait(problem: BaseException, failures: int) -> float:
    """Seconds until the next attempt: what the server asks for, but never long enough to look like a standstill."""
    asked = getattr(getattr(problem, "response", None), "headers", {}).get("Retry-After", "")
    return min(float(asked) if asked.isdigit() else 0.25 * 2**failures, 5.0)


def _patiently(ask, what: str):
    """The answer to a question that may fail for a while. Raises Unavailable."""
    failures = 0
    while True:
        try:
            return ask()
        except Exception as problem:  # as in _fetch
            failures += 1
            if failures == ATTEMPTS or not _passes(problem):
                raise Unavailable(reason(problem, what)) from problem
            time.sleep(_wait(problem, failures))


def _room(place: Path, need: int, what: str) -> None:
    """Raise Unavailable before a download that the disk has no room for."""
    free = shutil.disk_usage(place.parent).free
    if free < need:
        raise Unavailable(
            f"the disk is full ({what} needs {need / MEGABYTE:.0f} MB more, {free / MEGABYTE:.0f} MB are free)"
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
