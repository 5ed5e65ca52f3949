"""Agents that are away, hang, refuse or forget; disks that are full; programs that end while something is under way."""
from __future__ import annotations

import json
import os
import shutil
import signal
import time

from .stand import Stand
from .test_real_agent import COURIER, WithRuns
from .world import World, until

NOBODY = "http://127.0.0.1:9"


class WithoutAgent(World):
    def test_everything_is_kept_in_the_spool(self) -> None:
        done = self.run_script(
            """
            import gpuwarden
            with gpuwarden.run("lonely") as run:
                for step in range(500):
                    run.log(step=step, loss=1.0 / (step + 1))
            """,
            NOBODY,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = self.spooled()
        self.assertEqual(lines[0]["run"]["name"], "lonely")
        self.assertEqual(lines[-1]["end"]["outcome"], "success")
        self.assertEqual(self.spooled_steps(), list(range(500)))
        self.assertEqual([line["seq"] for line in lines[1:-1]], list(range(1, 501)))

    def test_the_next_process_delivers_what_an_earlier_one_left(self) -> None:
        stand = Stand()
        url, port = stand.url, stand.port
        stand.close()
        code = """
            import gpuwarden
            from tests.world import spool_is_empty, until
            with gpuwarden.run("one of two") as run:
                for step in range(%d, %d):
                    run.log(step=step, loss=1.0)
                %s
        """
        self.run_script(code % (0, 300, ""), url)
        self.assertEqual(self.spooled_steps(), list(range(300)))
        stand = Stand(port)
        self.addCleanup(stand.close)
        self.run_script(code % (300, 310, "until('all is delivered', spool_is_empty)"), url)
        self.assertEqual(stand.logged(), list(range(310)))
        self.assertEqual(len(stand.runs), 2)
        self.assertEqual([end["outcome"] for end in stand.ends], ["success", "success"])
        self.assertEqual(self.spooled(), [])

    def test_spools_of_another_agent_are_left_alone(self) -> None:
        self.run_script("import gpuwarden\nwith gpuwarden.run('a') as run: run.log(step=1)", NOBODY)
        stand = Stand()
        self.addCleanup(stand.close)
        # Time enough to take what is not its own, if it did that.
        self.run_script("import gpuwarden, time\nwith gpuwarden.run('b') as run: run.log(step=2); time.sleep(1)", stand.url)
        self.assertEqual(stand.logged(), [2])
        self.assertEqual(self.spooled_steps(), [1])

    def test_disabled_does_nothing_at_all(self) -> None:
        done = self.run_script(
            """
            import gpuwarden, threading
            with gpuwarden.run("off") as run:
                run.log(step=1, loss=2.0)
                print(threading.active_count(), run.is_active)
            """,
            NOBODY,
            GPUWARDEN_DISABLED="1",
        )
        self.assertEqual(done.stdout.split(), ["1", "False"])
        self.assertEqual(self.spooled(), [])

    def test_importing_starts_no_thread_and_imports_no_framework(self) -> None:
        done = self.run_script(
            """
            import gpuwarden, sys, threading
            print(threading.active_count(), [name for name in ("torch", "numpy", "transformers", "lightning") if name in sys.modules])
            """,
            NOBODY,
        )
        self.assertEqual(done.stdout.strip(), "1 []")


class Strangers(World):
    """Something else answers at the agent's address: a proxy, a wrong port."""

    SCRIPT = """
        import gpuwarden, logging, sys
        logging.basicConfig(stream=sys.stderr, format="%(message)s")
        with gpuwarden.run("lost") as run:
            for step in range(500):
                run.log(step=step, loss=1.0)
        """

    def setUp(self) -> None:
        super().setUp()
        self.stand = Stand()
        self.addCleanup(self.stand.close)

    def test_what_is_no_acknowledgement_is_kept_in_the_spool(self) -> None:
        page = b"<html>please log in</html>"
        for stranger in [(200, page), (200, b"{}"), (200, b""), (204, b""), (302, page), (400, page), (404, page), (413, page), (422, b"{}")]:
            self.stand.stranger = stranger
            done = self.run_script(self.SCRIPT, self.stand.url)
            with self.subTest(stranger=stranger):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.spooled_steps(), list(range(500)))
                self.assertEqual(self.spooled()[-1]["end"]["outcome"], "success")
                said = [line for line in done.stderr.splitlines() if "what answers is not a gpuwarden agent" in line]
                self.assertEqual(len(said), 1, done.stderr)
                self.assertIn("HTTP %d from BaseHTTP" % stranger[0], said[0])
                if stranger[1] == page:
                    self.assertIn("please log in", said[0])
            shutil.rmtree(self.spool)

    def test_an_answer_for_fewer_steps_is_no_acknowledgement(self) -> None:
        self.stand.forgets = 1
        done = self.run_script(self.SCRIPT, self.stand.url)
        self.assertEqual(self.spooled_steps(), list(range(500)))
        self.assertIn("what answers is not a gpuwarden agent", done.stderr)

    def test_an_acknowledgement_for_another_run_is_none(self) -> None:
        self.stand.stranger = (200, b'{"id": "other", "run": "other", "accepted": 500, "duplicates": 0, "rejected_count": 0}')
        self.run_script(self.SCRIPT, self.stand.url)
        self.assertEqual(self.spooled_steps(), list(range(500)))

    def test_everything_arrives_once_the_agent_is_back(self) -> None:
        self.stand.stranger = (200, b"<html>please log in</html>")
        self.run_script(self.SCRIPT, self.stand.url)
        self.stand.stranger = None
        self.run_script(
            """
            import gpuwarden
            from tests.world import spool_is_empty, until
            with gpuwarden.run("next") as run:
                run.log(step=500, loss=1.0)
                until('all is delivered', spool_is_empty)
            """,
            self.stand.url,
        )
        self.assertEqual(self.stand.logged(), list(range(501)))
        self.assertEqual(self.stand.duplicates, 0)


class FullDisk(World):
    CODE = """
        import os, resource, signal, time
        import gpuwarden
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        with gpuwarden.run("full") as run:
            for part in range(10):
                for step in range(100):
                    run.log(step=part * 100 + step, loss=1.0)
                time.sleep(0.1)
            time.sleep(0.5)
            %s
            print("trained to the end", flush=True)
        print(run.statistics()["dropped"])
    """

    def test_training_goes_on_and_what_is_kept_is_whole(self) -> None:
        done = self.run_script(self.CODE % "", NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = done.stdout.split("\n")
        self.assertEqual(said[0], "trained to the end")
        kept = self.spooled_steps()
        self.assertGreater(len(kept), 10)
        self.assertLess(len(kept), 200)
        self.assertEqual(int(said[1]), 1000 - len(kept))
        self.assertIn("cannot be kept on disk", done.stderr)

    def test_nothing_is_lost_when_room_is_made_in_time(self) -> None:
        done = self.run_script(self.CODE % "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))", NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.spooled_steps(), list(range(1000)))

    def test_a_folder_that_cannot_be_written_is_no_error(self) -> None:
        with open(self.spool, "w", encoding="utf-8"):
            pass
        done = self.run_script("import gpuwarden\nwith gpuwarden.run('a') as run: run.log(step=1)\nprint('fine')", NOBODY)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "fine"), done.stderr)


class DifficultAgent(World):
    def setUp(self) -> None:
        super().setUp()
        self.stand = Stand()
        self.addCleanup(self.stand.close)

    def test_one_that_hangs_costs_the_end_of_the_program_a_second(self) -> None:
        import threading

        self.stand.gate = threading.Event()
        done = self.run_script(
            """
            import gpuwarden, time
            run = gpuwarden.run("hangs")
            for step in range(200):
                run.log(step=step, loss=1.0)
            time.sleep(0.6)
            run.log(step=200)
            began = time.monotonic()
            run.finish()
            print(time.monotonic() - began)
            """,
            self.stand.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        # One second, and room for a machine that is busy with other things.
        self.assertLess(float(done.stdout), 1.8)
        self.assertEqual(self.spooled_steps(), list(range(201)))

    def test_one_that_forgot_the_run_gets_it_again(self) -> None:
        child = self.start_script(
            """
            import gpuwarden, time
            with gpuwarden.run("forgotten") as run:
                for step in range(60):
                    run.log(step=step)
                    time.sleep(0.03)
            """,
            self.stand.url,
        )
        until("the first steps are there", lambda: len(self.stand.steps) > 5)
        self.stand.runs.clear()
        self.assertEqual(child.wait(60), 0)
        self.assertEqual(self.stand.logged(), list(range(60)))
        self.assertEqual(len(self.stand.runs), 1)

    def test_faults_of_the_agent_are_waited_out(self) -> None:
        self.stand.status = 503
        child = self.start_script(
            """
            import gpuwarden, time
            from tests.world import until
            with gpuwarden.run("busy") as run:
                for step in range(300):
                    run.log(step=step)
                    time.sleep(0.01)
                until("all is delivered", lambda: run.statistics()["delivered"] >= 300)
            """,
            self.stand.url,
        )
        until("steps wait on disk", lambda: len(self.spooled_steps()) > 50)
        self.stand.status = None
        self.assertEqual(child.wait(60), 0)
        self.assertEqual(self.stand.logged(), list(range(300)))
        self.assertEqual(self.spooled(), [])

    def test_a_step_that_is_refused_does_not_hold_up_the_others(self) -> None:
        self.stand.most_lines, self.stand.bad_step = 64, 77
        done = self.run_script(
            """
            import gpuwarden
            from tests.world import until
            with gpuwarden.run("refused") as run:
                for step in range(200):
                    run.log(step=step)
                until("the others are delivered", lambda: run.statistics()["delivered"] >= 199)
            print(run.statistics())
            """,
            self.stand.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.stand.logged(), [step for step in range(200) if step != 77])
        self.assertIn("'rejected': 1", done.stdout)

    def test_a_wrong_token_is_mentioned_and_nothing_is_lost(self) -> None:
        self.stand.status = 401
        done = self.run_script("import gpuwarden, time\nwith gpuwarden.run('t') as run: run.log(step=4); time.sleep(0.5)", self.stand.url)
        self.assertIn("GPUWARDEN_TOKEN", done.stderr)
        self.assertEqual(self.spooled_steps(), [4])

    def test_token_and_trace_are_sent(self) -> None:
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="utf-8") as file:
            file.write("s3cret\n")
        trace = "0af7651916cd43dd8448eb211c80319c"
        self.run_script(
            "import gpuwarden\nwith gpuwarden.run('t') as run: run.log(step=4)",
            self.stand.url,
            GPUWARDEN_TOKEN_FILE=token,
            TRACEPARENT="00-%s-b7ad6b7169203331-01" % trace,
        )
        self.assertEqual(self.stand.headers[0]["Authorization"], "Bearer s3cret")
        self.assertEqual(self.stand.headers[0]["traceparent"].split("-")[1], trace)
        self.assertEqual([run["correlation_id"] for run in self.stand.runs.values()], [trace])

    def test_batches_for_another_host_are_compressed(self) -> None:
        # 0.0.0.0 leads here too, and is not known as loopback.
        done = self.run_script(
            """
            import gpuwarden, time
            with gpuwarden.run("far") as run:
                for step in range(300):
                    run.log(step=step, loss=1.0)
            """,
            "http://0.0.0.0:%d" % self.stand.port,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.stand.logged(), list(range(300)))
        self.assertTrue([headers for headers in self.stand.headers if headers.get("Content-Encoding") == "gzip"])

    def test_more_steps_than_can_be_held_lose_the_oldest_and_are_counted(self) -> None:
        done = self.run_script(
            """
            import gpuwarden, json
            from gpuwarden import sender, training_run
            sender.TICK_SECONDS = 3600
            training_run.QUEUE_STEPS = 1000
            run = gpuwarden.run("flood")
            run._sender.wake = lambda: None
            for step in range(1500):
                run.log(step=step)
            run.finish()
            print(json.dumps(run.statistics()))
            """,
            self.stand.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.stand.logged(), list(range(500, 1500)))
        self.assertEqual(json.loads(done.stdout)["dropped"], 500)


class EndsOfPrograms(World):
    def setUp(self) -> None:
        super().setUp()
        self.stand = Stand()
        self.addCleanup(self.stand.close)

    def outcomes(self) -> "list[str]":
        return [end["outcome"] for end in self.stand.ends]

    def test_exit_while_sending_loses_nothing(self) -> None:
        done = self.run_script(
            """
            import gpuwarden
            run = gpuwarden.run("quick")
            for step in range(5000):
                run.log(step=step, loss=1.0)
            """,
            self.stand.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(set(self.stand.logged()) | set(self.spooled_steps())), list(range(5000)))

    def test_sys_exit_and_uncaught_exceptions(self) -> None:
        for end, outcome, message in (
            ("sys.exit(0)", "success", None),
            ("sys.exit(3)", "failed", "exit code 3"),
            ("raise KeyboardInterrupt()", "killed", "KeyboardInterrupt"),
            ("raise ValueError('no')", "failed", "ValueError: no"),
        ):
            done = self.run_script("import gpuwarden, sys\nwith gpuwarden.run('a') as run:\n    run.log(step=1)\n    %s" % end, self.stand.url)
            self.assertEqual(self.outcomes()[-1], outcome, done.stderr)
            self.assertEqual(self.stand.ends[-1].get("message"), message)
        self.assertIn("ValueError: no", done.stderr)
        self.run_script("import gpuwarden\nrun = gpuwarden.run('a')\nrun.log(step=1)\nraise KeyError('not in a with')", self.stand.url)
        self.assertEqual(self.outcomes()[-1], "failed")
        self.assertIn("not in a with", self.stand.ends[-1]["message"])

    def test_a_callback_that_never_came_to_its_end_is_no_success(self) -> None:
        code = """
            import sys
            from gpuwarden import TrainingMonitorCallback
            callback = TrainingMonitorCallback(run_name="cut short")
            callback.on_train_begin(total_steps=%d)
            for step in range(5):
                callback.on_step_begin()
                callback.on_step_end(step=step, loss=1.0)
            try:
                raise RuntimeError("caught, as a command line tool does")
            except RuntimeError:
                sys.exit(2)
        """
        self.run_script(code % 100, self.stand.url)
        self.assertEqual(self.outcomes(), ["failed"])
        self.assertIn("before on_train_end", self.stand.ends[-1]["message"])
        self.run_script(code % 5, self.stand.url)
        self.assertEqual(self.outcomes(), ["failed", "success"])
        # The exit code is known to whoever launched it.
        self.run_script(code % 100, self.stand.url, GPUWARDEN_RUN_ID="launched")
        self.assertEqual(self.outcomes(), ["failed", "success", "success"])

    def test_without_a_thread_the_training_goes_on(self) -> None:
        done = self.run_script(
            """
            import threading
            def refuse(self): raise RuntimeError("can't start new thread")
            threading.Thread.start = refuse
            import gpuwarden
            callback = gpuwarden.TrainingMonitorCallback(gpuwarden.GPUMonitor())
            callback.on_train_begin()
            callback.on_step_end(step=1, loss=1.0)
            callback.on_train_end()
            print("trained", callback.run.statistics()["faults"])
            """,
            self.stand.url,
        )
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["trained", "1"]), done.stderr)

    def test_sigterm_ends_it_as_it_would_without_us_and_keeps_the_last_steps(self) -> None:
        child = self.start_script(
            """
            import gpuwarden, time
            with gpuwarden.run("terminated") as run:
                for step in range(50):
                    run.log(step=step)
                print("ready", flush=True)
                while True:
                    time.sleep(0.05)
            """,
            self.stand.url,
        )
        self.assertEqual(self.terminated(child), -signal.SIGTERM)
        self.assertEqual(self.stand.logged(), list(range(50)))
        self.assertEqual(self.outcomes(), ["killed"])

    def test_somebody_elses_sigterm_handler_is_not_touched(self) -> None:
        child = self.start_script(
            """
            import gpuwarden, signal, sys, time
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
            with gpuwarden.run("own handler") as run:
                run.log(step=1)
                print("ready", flush=True)
                while True:
                    time.sleep(0.05)
            """,
            self.stand.url,
        )
        self.assertEqual(self.terminated(child), 7)
        self.assertEqual(self.outcomes(), ["failed"])

    def test_sigterm_in_a_native_call_still_ends_the_program(self) -> None:
        child = self.start_script(
            """
            import ctypes, gpuwarden
            from gpuwarden import lifecycle
            lifecycle._STUCK_SECONDS = 0.5
            run = gpuwarden.run("stuck")
            run.log(step=1)
            libc = ctypes.CDLL(None)
            mutex = ctypes.create_string_buffer(256)
            print("ready", flush=True)
            # Locked twice: this call ends for no signal, so the interpreter never comes to run a handler.
            libc.pthread_mutex_lock(mutex)
            libc.pthread_mutex_lock(mutex)
            """,
            self.stand.url,
        )
        self.assertEqual(self.terminated(child, pause=0.3), -signal.SIGKILL)
        self.assertEqual(self.outcomes(), ["killed"])


class Forks(World):
    def setUp(self) -> None:
        super().setUp()
        self.stand = Stand()
        self.addCleanup(self.stand.close)

    def test_workers_of_a_data_loader_neither_hang_nor_send(self) -> None:
        done = self.run_script(
            """
            import gpuwarden, multiprocessing, os, sys, warnings
            warnings.simplefilter("ignore")
            context = multiprocessing.get_context("fork")

            def work(run, tasks, results):
                for task in iter(tasks.get, None):
                    run.log(step=10_000 + task)
                    results.put(task)

            with gpuwarden.run("loader") as run:
                for epoch in range(3):
                    tasks, results = context.Queue(), context.Queue()
                    workers = [context.Process(target=work, args=(run, tasks, results)) for _ in range(4)]
                    for worker in workers: worker.start()
                    for task in range(20): tasks.put(task)
                    for task in range(20):
                        results.get(timeout=20)
                        run.log(step=epoch * 20 + task)
                    for _ in workers: tasks.put(None)
                    for worker in workers:
                        worker.join(20)
                        assert worker.exitcode == 0, worker.exitcode
            """,
            self.stand.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.stand.logged(), list(range(60)))
        self.assertEqual([end["outcome"] for end in self.stand.ends], ["success"])

    def test_a_forked_child_that_exits_like_a_program_does_not_end_the_run(self) -> None:
        done = self.run_script(
            """
            import gpuwarden, os, sys, warnings
            warnings.simplefilter("ignore")
            run = gpuwarden.run("forks")
            run.log(step=1)
            for _ in range(5):
                pid = os.fork()
                if pid == 0:
                    assert not run.is_active
                    run.log(step=99)
                    run.finish("failed")
                    sys.exit(0)
                assert os.waitpid(pid, 0)[1] == 0
            run.log(step=2)
            """,
            self.stand.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.stand.logged(), [1, 2])
        self.assertEqual([end["outcome"] for end in self.stand.ends], ["success"])

    def test_a_forked_child_can_be_terminated_and_can_have_a_run_of_its_own(self) -> None:
        done = self.run_script(
            """
            import gpuwarden, multiprocessing, signal, time, warnings
            warnings.simplefilter("ignore")
            context = multiprocessing.get_context("fork")
            def own():
                with gpuwarden.run("child", run_id="child") as mine:
                    mine.log(step=7)
            with gpuwarden.run("parent") as run:
                run.log(step=1)
                worker = context.Process(target=time.sleep, args=(60,)); worker.start(); time.sleep(0.3)
                worker.terminate(); worker.join(20)
                assert worker.exitcode == -signal.SIGTERM, worker.exitcode
                worker = context.Process(target=own); worker.start(); worker.join(20)
                assert worker.exitcode == 0, worker.exitcode
            """,
            self.stand.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.stand.logged(), [1, 7])
        self.assertEqual(sorted(run["name"] for run in self.stand.runs.values()), ["child", "parent"])

    def test_spawned_processes_are_ranks_of_the_same_run(self) -> None:
        done = self.run_script(
            """
            import gpuwarden, multiprocessing, os
            def train(rank):
                os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="3", GPUWARDEN_RUN_ID="spawned")
                with gpuwarden.run("spawn") as run:
                    for step in range(20):
                        run.log(step=step)
            if __name__ == "__main__":
                context = multiprocessing.get_context("spawn")
                workers = [context.Process(target=train, args=(rank,)) for rank in range(3)]
                for worker in workers: worker.start()
                for worker in workers:
                    worker.join(50)
                    assert worker.exitcode == 0, worker.exitcode
            """,
            self.stand.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.stand.runs), ["spawned"])
        self.assertEqual(self.stand.logged(), sorted(list(range(20)) * 3))
        self.assertEqual(sorted(end["rank"] for end in self.stand.ends), [0, 1, 2])

    def test_a_run_id_from_outside_can_be_used_again(self) -> None:
        for first in (0, 10):
            self.run_script(
                "import gpuwarden\nwith gpuwarden.run('r') as run:\n    for step in range(%d, %d): run.log(step=step)" % (first, first + 10),
                self.stand.url,
                GPUWARDEN_RUN_ID="resumed",
            )
        self.assertEqual(self.stand.logged(), list(range(20)))
        self.assertEqual(self.stand.duplicates, 0)


class RealAgent(WithRuns):
    def test_an_agent_that_is_killed_and_started_again_has_every_step_once(self) -> None:
        child = self.start_script(
            """
            import gpuwarden, os, time
            with gpuwarden.run("survivor") as run:
                step = 0
                while not os.path.exists("enough"):
                    run.log(step=step, loss=1.0 / (step + 1))
                    step += 1
                    time.sleep(0.004)
                print(step, flush=True)
            """,
            self.agent.url,
        )
        port = self.agent.port
        for _ in range(2):
            before = len(self.agent.logged())
            until("steps come in", lambda: len(self.agent.logged()) > before)
            self.agent.end(signal.SIGKILL)
            until("steps wait on disk", self.spooled_steps)
            self.agent = self.start_agent(port)
        with open(os.path.join(self.folder, "enough"), "w", encoding="utf-8"):
            out, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 0, err)
        # Where the end of the program came before the next try, the rest is in the spool: another process brings it.
        self.run_script(COURIER, self.agent.url)
        self.assertEqual(self.spooled(), [])
        runs = {run["name"]: run for run in self.agent.get("/api/v1/runs")["runs"]}
        self.assertEqual(runs["survivor"]["outcome"], "success")
        self.assertEqual(self.logged(), list(range(int(out))))
