"""Who runs what: the facts that a run is announced with."""
from __future__ import annotations

import getpass
import os
import re
import sys
from typing import Optional

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def script_name() -> str:
    path = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else ""
    return os.path.splitext(os.path.basename(path))[0] or "python"


def command() -> str:
    return " ".join([os.path.basename(sys.executable or "python")] + sys.argv)[:2000]


def user() -> Optional[str]:
    try:
        return getpass.getuser()
    except Exception:  # No name for this uid, usual in containers: each version of Python raises something else.
        return str(os.getuid()) if hasattr(os, "getuid") else None


def git_commit(folder: Optional[str] = None) -> Optional[str]:
    """The commit that is checked out where the script is, read from the repository's own files: no process is started."""
    at = os.path.abspath(folder or os.path.dirname(sys.argv[0] if sys.argv else "") or os.curdir)
    try:
        while True:
            found = os.path.join(at, ".git")
            if os.path.exists(found):
                return _head(found)
            parent = os.path.dirname(at)
            if parent == at:
                return None
            at = parent
    except (OSError, ValueError):
        return None


def _head(git: str) -> Optional[str]:
    if os.path.isfile(git):
        # A worktree or a submodule: the file says where the folder is.
        git = os.path.join(os.path.dirname(git), _first_line(git).replace("gitdir:", "", 1).strip())
    head = _first_line(os.path.join(git, "HEAD"))
    if not head.startswith("ref:"):
        return _commit(head)
    ref = head[4:].strip()
    common = os.path.join(git, "commondir")
    folders = [git, os.path.join(git, _first_line(common))] if os.path.exists(common) else [git]
    for folder in folders:
        loose = os.path.join(folder, ref)
        if os.path.isfile(loose):
            return _commit(_first_line(loose))
    for folder in folders:
        packed = os.path.join(folder, "packed-refs")
        if os.path.isfile(packed):
            with open(packed, encoding="utf-8", errors="replace") as file:
                for line in file:
                    if line.rstrip().endswith(" " + ref):
                        return _commit(line.split(" ", 1)[0])
    return None


def _first_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline().strip()


def _commit(text: str) -> Optional[str]:
    return text if _COMMIT.fullmatch(text) else None
