"""Answers the agent when it asks where the program stands. All of it happens on the sender's thread, which lives while the main thread hangs."""
from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, Mapping, Optional

from . import automatic, collectives, thread_stacks

#: The main thread is looked at this often, a tick of the sender apart, before the answer says whether it moves.
_LOOKS = 4


class Standstill:
    def __init__(self, send: Callable[[str, Dict[str, Any]], None], rank: int, may_tell: bool) -> None:
        #: Read by the sender at each tick.
        self.is_wanted = False
        self._send = send
        self._rank = rank
        self._may_tell = may_tell
        self._asked: Optional[str] = None
        self._answered: Optional[str] = None
        self._looks = 0
        self._mark: Any = None
        self._moves = False

    def ask(self, order: Any) -> None:
        """`order` is repeated until the agent has the answer."""
        name = order.get("id") if isinstance(order, Mapping) else None
        if not isinstance(name, str) or name in (self._asked, self._answered):
            return
        self._asked = name
        self._looks = 0
        self._moves = False
        self._mark = thread_stacks.mark_of_main()
        self.is_wanted = True

    def tick(self) -> None:
        self._looks += 1
        mark = thread_stacks.mark_of_main()
        self._moves = self._moves or mark != self._mark
        self._mark = mark
        if self._looks < _LOOKS and not self._moves:
            return
        name, self._asked = self._asked, None
        self.is_wanted = False
        self._answered = name
        answer: Dict[str, Any] = {"rank": self._rank, "pid": os.getpid(), "at": int(time.time() * 1000)}
        if self._may_tell:
            answer.update(moves=self._moves, phase=automatic.phase(), threads=thread_stacks.threads(), collectives=collectives.groups())
        else:
            answer["reason"] = "stacks are off in this program (GPUWARDEN_NO_STACKS)"
        self._send("stacks/%s" % name, answer)
