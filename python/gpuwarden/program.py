"""The program `gpuwarden`, for those who start it through Python."""
from __future__ import annotations

import os
import shutil
import sys
from typing import List


def replace_with_program(arguments: List[str]) -> None:
    """Never returns: this process becomes the program, with its own arguments behind `arguments`."""
    path = shutil.which("gpuwarden")
    if path is None:
        sys.stderr.write("gpuwarden: the program is not on the PATH. Install it with `npm install --global gpuwarden`.\n")
        raise SystemExit(127)
    os.execv(path, [path] + arguments + sys.argv[1:])
