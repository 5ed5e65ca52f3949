"""Plays one rank of one training through the SDK, as a user's program would, and says on its standard output what it did.

Argument: {"name", "steps", "per_second", "nan": {"from", "steps"} | null, "ending"} as JSON. `{"collect": SECONDS}` logs nothing: it lives
so long that the SDK delivers what others left in the spool.
"""
from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any, Dict

import gpuwarden

#: As many finite steps end an alert about NaN.
CLEAR_STEPS = 20


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, "at": int(time.time() * 1000), **fields}), flush=True)


def play(script: Dict[str, Any], run: "gpuwarden.Run") -> None:
    nan = script["nan"] or {"from": -1, "steps": 0}
    for step in range(script["steps"]):
        is_nan = 0 <= step - nan["from"] < nan["steps"] and nan["from"] >= 0
        if step == nan["from"]:
            say("nan")
        run.log(step=step, loss=float("nan") if is_nan else 2.0 + 1.0 / (step + 1), lr=1e-4)
        if step == nan["from"] + nan["steps"] + CLEAR_STEPS - 1:
            say("finite")
        if step % 20 == 19:
            say("logged", count=step + 1)
        time.sleep(1.0 / script["per_second"])
    say("logged", count=script["steps"])


def main() -> None:
    script = json.loads(sys.argv[1])
    run = gpuwarden.run(script["name"])
    say("begin", run=run.id, rank=run.rank)
    if "collect" in script:
        time.sleep(script["collect"])
        run.finish("success")
        return
    try:
        play(script, run)
        ending = script["ending"]
        if ending == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if ending == "raised":
            raise RuntimeError("the script says so")
        if ending == "failed":
            run.finish("failed", "the script says so")
        elif ending == "success":
            run.finish("success")
        # What is left unsaid ends with the program.
    except RuntimeError as error:
        run.fail(error)
    say("end", **run.statistics())


main()
