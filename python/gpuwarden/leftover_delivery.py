"""Delivers the spool files of processes that are gone."""
from __future__ import annotations

from typing import Callable, Optional

from .delivery import Delivery, is_acknowledged, reason_of, unacknowledged
from .held_steps import BATCH_BYTES, BATCH_LINES
from .settings import Settings
from .spool import Leftover, leftovers, read_lines


class LeftoverDelivery:
    def __init__(self, settings: Settings, delivery: Delivery, between_batches: Callable[[], None]) -> None:
        self._settings = settings
        self._delivery = delivery
        self._between_batches = between_batches

    def deliver(self) -> None:
        for leftover in leftovers(self._settings.spool_folder, self._settings.url):
            delivered: Optional[bool] = False
            try:
                delivered = self._deliver_one(leftover)
            finally:
                if delivered is not None:
                    leftover.release(delivered)

    def _deliver_one(self, leftover: Leftover) -> Optional[bool]:
        """True: all of it. False: not now. None: never, it has been set aside."""
        run = leftover.head["run"]
        answer = self._delivery.announce(run)
        if answer.status in (400, 409, 413, 422) and answer.code:
            self._delivery.say("leftover", "%s is refused: %s" % (leftover.path, reason_of(answer)))
            leftover.set_aside()
            return None
        if not is_acknowledged(answer, run):
            raise unacknowledged(answer)
        offset = leftover.start
        while self._delivery.deadline is None:
            lines, offset = read_lines(leftover.file, offset, BATCH_LINES, BATCH_BYTES)
            if not lines:
                return True
            self._delivery.lines(run, lines)
            self._between_batches()
        return False
