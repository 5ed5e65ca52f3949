"""Spool files with anything in them: nothing that can be read is lost, and no file keeps others from being delivered."""
from __future__ import annotations

import json
import logging
import os
import random
import shutil
import tempfile
import time
import unittest
from typing import Any, Dict, List, Set, Tuple

from gpuwarden.agent_link import Answer
from gpuwarden.delivery import Delivery
from gpuwarden.leftover_delivery import LeftoverDelivery
from gpuwarden.settings import Settings, read_settings
from gpuwarden.spool import Spool, leftovers, read_lines

URL = "http://127.0.0.1:9"
SECONDS = float(os.environ.get("GPUWARDEN_FUZZ_SECONDS", "3"))
#: For a replay of what failed.
FIRST_SEED = int(os.environ.get("GPUWARDEN_FUZZ_SEED", "1"))


class PretendAgent:
    """Takes requests as the agent does: each line by itself, blank ones not counted."""

    def __init__(self) -> None:
        self.timeout = 5.0
        self.seqs: List[Tuple[str, int]] = []
        self.ends: List[Tuple[str, Any]] = []

    def post_json(self, path: str, body: Any) -> Answer:
        if path == "/api/v1/runs":
            return Answer(200, {"id": body["id"]}, None)
        run, what = path.split("/")[-2:]
        if not isinstance(body, dict):
            return Answer(400, {"error": {"code": "invalid_body", "message": "expected an object"}}, None)
        if what == "end":
            self.ends.append((run, body["outcome"]))
        return Answer(200, {"id": run}, None)

    def post_lines(self, path: str, body: bytes) -> Answer:
        run = path.split("/")[-2]
        if len(body) > 4 * 1024 * 1024:
            return Answer(413, {"error": {"code": "body_too_large", "message": "too large"}}, None)
        accepted = rejected = 0
        for line in body.decode("utf-8", "replace").split("\n"):
            if not line.strip("\ufeff\u00a0 \t\r\x0b\x0c"):
                continue
            try:
                step = json.loads(line)
                self.seqs.append((run, step["seq"] + 0))
                accepted += 1
            except (ValueError, TypeError, KeyError, RecursionError):
                rejected += 1
        return Answer(200, {"run": run, "accepted": accepted, "duplicates": 0, "rejected_count": rejected}, None)


def step_line(seq: int, dice: random.Random) -> bytes:
    return json.dumps({"seq": seq, "step": seq, "t": 1.7e12 + seq, "loss": dice.choice([1.5, float("nan"), -0.0]), "note": "é\u2028"}).encode() + b"\n"


def garbage_line(dice: random.Random) -> bytes:
    kind = dice.randrange(12)
    if kind == 0:
        return bytes(dice.choice(b"\x00\xff{}[]\",:\r\x0b0e\xc2\xa0") for _ in range(dice.randrange(80))).replace(b"\n", b"") + b"\n"
    if kind == 1:
        whole = step_line(dice.randrange(10**6, 10**7), dice)
        return whole[: dice.randrange(1, len(whole) - 2)] + b"\n"
    if kind == 2:
        return b'{"seq": "' + b"x" * dice.choice([100, 1024 * 1024, 1024 * 1024 + 7, 3 * 1024 * 1024]) + b'"}\n'
    if kind == 3:
        return dice.choice([b"[", b'{"a":', b'{"end": ', b'{"report": [']) * dice.choice([10, 50_000]) + b"\n"
    return dice.choice([
        b"\n", b" \r\n", b"\xc2\xa0\n", b"\xef\xbb\xbf\n", b"null\n", b"5\n", b'"text"\n', b"[]\n", b"{}\n", b'{"seq": []}\n',
        b'{"seq": 1e999, "step": "a"}\n', b'{"end": 5}\n', b'{"end": null}\n', b'{"end"\n', b'{"end": {"outcome": \xff}}\n', b'{"report": [}\n',
        b'{"report": "text"}\n', b'{"end" }\n', b'{"seq": ' + b"9" * 5000 + b"}\n", b"\x1f\x8b\x08\x00\n", b'{"run": {"id": "other"}}\n',
    ])


def bad_head(dice: random.Random) -> bytes:
    heads: List[Any] = [
        None, 5, [], {}, {"run": 5, "url": URL}, {"run": {}, "url": URL}, {"run": {"id": 7}, "url": URL}, {"run": {"id": "x"}},
        {"run": {"id": "x"}, "url": "http://another"},
    ]
    written = [json.dumps(head).encode() + b"\n" for head in heads]
    return dice.choice(written + [b"", b"\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"run": {"id": "x"}, "url": "%s"' % URL.encode(), b"\x00" * 5000])


def good_head(run: str, dice: random.Random) -> bytes:
    head: Dict[str, Any] = {"run": {"id": run, "name": run}, "url": URL, "format": 1}
    if dice.random() < 0.3:
        head["process"] = dice.choice([5, {}, {"pid": "x", "start": 1}, {"pid": float("inf"), "start": 1}, {"pid": 10**30, "start": 1}, {"pid": 1, "start": None}])
    return json.dumps(head).encode() + b"\n"


class SpoolFuzzTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="gpuwarden-fuzz-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def write(self, name: str, content: bytes) -> None:
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content)

    def empty(self) -> None:
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)

    def deliver(self) -> PretendAgent:
        settings: Settings = read_settings({"GPUWARDEN_URL": URL, "GPUWARDEN_SPOOL": self.folder})
        delivery = Delivery(settings, None)
        agent = PretendAgent()
        delivery.link = agent  # type: ignore[assignment]
        LeftoverDelivery(settings, delivery, between_batches=lambda: None).deliver()
        return agent

    def test_every_line_that_can_be_read_is_delivered(self) -> None:
        deadline = time.monotonic() + SECONDS
        seed = FIRST_SEED
        while seed == FIRST_SEED or time.monotonic() < deadline:
            with self.subTest(seed=seed):
                self._deliver_some(random.Random(seed))
            seed += 1

    def _deliver_some(self, dice: random.Random) -> None:
        self.empty()
        steps: Set[Tuple[str, int]] = set()
        ends: Set[Tuple[str, Any]] = set()
        left: Set[str] = set()
        for number in range(dice.randrange(1, 5)):
            name = "f%d.jsonl" % number
            if dice.random() < 0.3:
                self.write(name, bad_head(dice) + b"".join(step_line(seq, dice) for seq in range(3)))
                left.add(name)
                continue
            run = "run%d" % number
            content = [good_head(run, dice)]
            for seq in range(dice.randrange(1, 40)):
                if dice.random() < 0.3:
                    content.append(garbage_line(dice))
                content.append(step_line(seq, dice))
                steps.add((run, seq))
            if dice.random() < 0.5:
                content.append(b'{"end": {"outcome": "success"}}\n')
                ends.add((run, "success"))
            if dice.random() < 0.5:
                content.append(garbage_line(dice))
            if dice.random() < 0.5:
                content.append(step_line(99, dice)[: dice.randrange(1, 20)])
            self.write(name, b"".join(content))
        if dice.random() < 0.2:
            os.mkfifo(os.path.join(self.folder, "fifo.jsonl"))
            os.symlink("/nonexistent", os.path.join(self.folder, "link.jsonl"))
            os.symlink("/dev/zero", os.path.join(self.folder, "zero.jsonl"))
            os.mkdir(os.path.join(self.folder, "folder.jsonl"))
            left |= {"fifo.jsonl", "link.jsonl", "zero.jsonl", "folder.jsonl"}
        agent = self.deliver()
        self.assertEqual(steps - set(agent.seqs), set(), "steps that never arrived")
        self.assertEqual(sum(one in steps for one in agent.seqs), len(steps), "steps that arrived twice")
        self.assertEqual(ends - set(agent.ends), set(), "ends that never arrived")
        self.assertEqual(set(os.listdir(self.folder)), left)

    def test_a_line_that_is_longer_than_a_batch_keeps_nothing_behind_it_from_arriving(self) -> None:
        self.write("a.jsonl", good_head("a", random.Random(1)) + b'{"seq": 1, "x": "%s"}\n' % (b"y" * 2_000_000) + b'{"seq": 2}\n')
        self.assertEqual(self.deliver().seqs, [("a", 1), ("a", 2)])
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_that_an_earlier_process_left_under_our_name_is_continued(self) -> None:
        dice = random.Random(FIRST_SEED)
        for _ in range(50):
            self.empty()
            before = [step_line(seq, dice) for seq in range(dice.randrange(5))]
            torn = step_line(50, dice)[: dice.randrange(20)]
            self.write("a.jsonl", good_head("an earlier, longer name" * dice.randrange(1, 3), dice) + b"".join(before) + torn)
            spool = Spool(self.folder, "a", {"run": {"id": "a"}, "url": URL, "format": 1})
            after = [step_line(seq, dice) for seq in range(100, 103)]
            self.assertEqual(spool.append(after), (3, None))
            self.assertEqual(spool.read(100, 10**6)[0], before + after)
            spool.close()

    def test_lines_come_whole_and_in_order_whatever_the_bounds(self) -> None:
        dice = random.Random(FIRST_SEED)
        for _ in range(200):
            lines = [bytes(dice.choice(b"ab\r\x85\x0b ") for _ in range(dice.choice([0, 3, 40]))) + b"\n" for _ in range(20)]
            self.write("x", b"".join(lines) + b"torn"[: dice.randrange(5)])
            file = os.open(os.path.join(self.folder, "x"), os.O_RDONLY)
            found: List[bytes] = []
            offset = 0
            while True:
                some, offset = read_lines(file, offset, dice.randrange(1, 8), dice.choice([1, 7, 64, 1000]))
                if not some:
                    break
                found += some
            os.close(file)
            self.assertEqual(found, lines)

    def test_leftovers_of_a_folder_that_is_not_there(self) -> None:
        self.assertEqual(list(leftovers(os.path.join(self.folder, "nowhere"), URL)), [])


if __name__ == "__main__":
    unittest.main()
