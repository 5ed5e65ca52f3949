"""The file that steps wait in while no agent answers.

One file per process and run, JSON lines: first `{"run": {…}, "url": …, "format": 1}`, then steps as they are posted, `{"report": {…}}`
where there is one, and `{"end": {…}}` last. `gpuwarden import FILE` reads it; so does the next process that reaches the agent.
A process holds the lock of its file for as long as it lives, so nobody takes a file that is still written.
"""
from __future__ import annotations

import json
import os
import stat
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .formats import format_bytes

try:
    import fcntl
except ImportError:  # Windows: files differ by process id only.
    fcntl = None  # type: ignore[assignment]

FILE_LIMIT_BYTES = 64 * 1024 * 1024
FOLDER_LIMIT_BYTES = 1024 * 1024 * 1024
_SUFFIX = ".jsonl"


class Spool:
    """Append only, until it is delivered and emptied. Failures are values: a full disk is no reason to stop training."""

    def __init__(self, folder: Optional[str], name: str, head: Dict[str, Any], limit_bytes: int = FILE_LIMIT_BYTES) -> None:
        self.path = None if folder is None else os.path.join(folder, name + _SUFFIX)
        self._folder = folder
        self._head = (json.dumps(head) + "\n").encode("utf-8")
        self._limit = limit_bytes
        self._file = -1
        self._size = 0
        self._read_from = 0
        #: By the last write.
        self._written = 0

    @property
    def is_empty(self) -> bool:
        return self._file < 0 or self._read_from >= self._size

    def append(self, lines: List[bytes]) -> Tuple[int, Optional[str]]:
        """How many were kept, and why not all."""
        if self._folder is None or self.path is None:
            return 0, "no spool folder (GPUWARDEN_SPOOL=off)"
        try:
            if self._file >= 0 and os.fstat(self._file).st_nlink == 0:
                self._begin_anew(self.path)
            if self._file < 0:
                self._open(self.path)
            room = self._limit - self._size
            kept, size = 0, 0
            for line in lines:
                if size + len(line) > room:
                    break
                size += len(line)
                kept += 1
            if kept:
                reason = self._write(b"".join(lines[:kept]))
                if reason is not None:
                    return self._lines_within(lines), reason
            return kept, None if kept == len(lines) else "the spool file has reached %s" % format_bytes(self._limit)
        except OSError as error:
            return 0, str(error)

    def read(self, most_lines: int, most_bytes: int) -> Tuple[List[bytes], int]:
        """The next lines to deliver, and what to pass to `advance` once they are delivered."""
        return read_lines(self._file, self._read_from, most_lines, most_bytes)

    def advance(self, offset: int) -> None:
        self._read_from = offset
        if self.is_empty and self._file >= 0:
            self.remove()

    def remove(self) -> None:
        if self._file >= 0 and self.path is not None:
            _unlink(self.path)
        self.close()

    def close(self) -> None:
        file, self._file = self._file, -1
        self._size = self._read_from = 0
        if file >= 0:
            os.close(file)

    def _begin_anew(self, path: str) -> None:
        """Somebody removed the file, perhaps after importing it: what is not delivered yet goes into a new one."""
        lines, _ = read_lines(self._file, self._read_from, FILE_LIMIT_BYTES, FILE_LIMIT_BYTES)
        self.close()
        self._open(path)
        reason = self._write(b"".join(lines))
        if reason is not None:
            raise OSError(reason)

    def _open(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if _folder_bytes(os.path.dirname(path)) > FOLDER_LIMIT_BYTES:
            raise OSError("the spool folder holds more than %s; run `gpuwarden import` on it" % format_bytes(FOLDER_LIMIT_BYTES))
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            _lock(file)
            self._file, self._size, self._read_from = file, _whole_bytes(file), 0
            if self._size == 0:
                reason = self._write(self._head)
                if reason is not None:
                    raise OSError(reason)
            # The head is for other readers: this process announces its run itself.
            self._read_from = read_lines(file, 0, 1, FILE_LIMIT_BYTES)[1]
        except OSError:
            self._file = -1
            os.close(file)
            raise

    def _write(self, data: bytes) -> Optional[str]:
        """Why not all of it could be written. Whole lines stay; half a line must not: whatever came next would be glued to it."""
        written = 0
        reason: Optional[str] = None
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            reason = str(error)
            written = data.rfind(b"\n", 0, written) + 1
            os.ftruncate(self._file, self._size + written)
        self._size += written
        self._written = written
        return reason

    def _lines_within(self, lines: List[bytes]) -> int:
        left, count = self._written, 0
        for line in lines:
            left -= len(line)
            if left < 0:
                break
            count += 1
        return count


class Leftover(NamedTuple):
    """A spool file whose process is gone, locked by us."""

    path: str
    file: int
    head: Dict[str, Any]
    start: int

    def release(self, delivered: bool) -> None:
        if delivered:
            _unlink(self.path)
        os.close(self.file)

    def set_aside(self) -> None:
        """For a file that the agent will never accept: kept for a person, but not tried again."""
        try:
            os.replace(self.path, self.path + ".refused")
        except OSError:
            pass  # Another process may have removed it: then there is nothing to keep.
        os.close(self.file)


def leftovers(folder: Optional[str], url: str) -> Iterator[Leftover]:
    """Oldest first; only what was meant for this agent."""
    if folder is None or fcntl is None:
        return
    for path in _files(folder):
        try:
            file = os.open(path, os.O_RDWR)
        except OSError:
            continue
        head: Any = None
        lines: List[bytes] = []
        try:
            _lock(file)
            status = os.fstat(file)
            # Between listing and locking its owner may have delivered and removed it. A larger file is nobody's spool.
            if status.st_nlink > 0 and stat.S_ISREG(status.st_mode) and status.st_size <= FILE_LIMIT_BYTES:
                lines, _ = read_lines(file, 0, 1, FILE_LIMIT_BYTES)
                head = json.loads(lines[0].decode("utf-8")) if lines else None
        except (OSError, ValueError, RecursionError):
            head = None
        if _is_head(head) and head["url"] == url and not _is_written(head):
            yield Leftover(path, file, head, len(lines[0]))
        else:
            os.close(file)


def _is_head(head: Any) -> bool:
    return isinstance(head, dict) and isinstance(head.get("run"), dict) and isinstance(head["run"].get("id"), str) and "url" in head


def _is_written(head: Dict[str, Any]) -> bool:
    """Node.js cannot lock a file: its spools name their process instead, by number and start."""
    process = head.get("process")
    if not isinstance(process, dict):
        return False
    try:
        with open("/proc/%d/stat" % process["pid"], encoding="utf-8", errors="replace") as file:
            return bool(int(file.read().rpartition(")")[2].split()[19]) == process["start"])
    except (OSError, KeyError, TypeError, ValueError, OverflowError, IndexError):
        return False


def read_lines(file: int, offset: int, most_lines: int, most_bytes: int) -> Tuple[List[bytes], int]:
    """Whole lines from `offset`, and the offset behind them. A torn line at the end of the file is left out."""
    os.lseek(file, offset, os.SEEK_SET)
    data = os.read(file, most_bytes)
    if b"\n" not in data and len(data) == most_bytes < FILE_LIMIT_BYTES:
        # One line is longer than that: it comes alone, and whatever is behind it must not wait for ever.
        return read_lines(file, offset, 1, FILE_LIMIT_BYTES)
    lines = [line + b"\n" for line in data.split(b"\n")[:-1][:most_lines]]
    return lines, offset + sum(map(len, lines))


def _whole_bytes(file: int) -> int:
    """The size of a file without a torn line at its end, which is cut off: whatever came next would be glued to it."""
    os.lseek(file, 0, os.SEEK_SET)
    size = os.read(file, FILE_LIMIT_BYTES).rfind(b"\n") + 1
    os.ftruncate(file, size)
    return size


def _files(folder: str) -> List[str]:
    try:
        found = [(status.st_mtime, entry.path) for entry, status in _entries(folder) if entry.name.endswith(_SUFFIX)]
    except OSError:
        return []
    return [path for _, path in sorted(found)]


def _folder_bytes(folder: str) -> int:
    return sum(status.st_size for _, status in _entries(folder) if stat.S_ISREG(status.st_mode))


def _entries(folder: str) -> "Iterator[Tuple[os.DirEntry[str], os.stat_result]]":
    for entry in os.scandir(folder):
        try:
            yield entry, entry.stat()
        except OSError:
            pass  # Delivered and removed by another process in the meantime, or a link that leads nowhere.


def _lock(file: int) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # Gone already, or not ours to remove: delivering twice does no harm.
