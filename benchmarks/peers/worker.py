"""Keep a peer's program running, so that its start, its imports and its reading are not timed."""

import json
import subprocess
import threading
from types import TracebackType
from typing import Any, Self


class Worker:
    """A program that writes a line of JSON when it is ready, and one more for each line that it
    reads.
    """

    def __init__(self, command: list[str], most_seconds: float) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.most_seconds = most_seconds
        self.errors: list[str] = []
        self.listener = threading.Thread(target=self._keep_errors, daemon=True)
        self.listener.start()
        self.greeting = self._answer()

    def ask(self, question: Any) -> dict[str, Any]:
        """The answer to a question, which is sent as one line of JSON."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        patience = threading.Timer(self.most_seconds, self.process.kill)
        patience.start()
        line = self.process.stdout.readline()
        patience.cancel()
        if not line:
            self.listener.join()
            limit = f"negative: stopped, e.g. after {self.most_seconds:g} s"
            how = f"exit code {self.process.wait()}; {limit}"
            raise ChildProcessError(f"no answer ({how}): {' '.join(self.errors[-1:])}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _keep_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(line.strip() for line in self.process.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
