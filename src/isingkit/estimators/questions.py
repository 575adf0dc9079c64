"""Questions: what a strategy asks, each answered before it asks the next.

A strategy is a generator: it decides what is looked for next by what was found so far. Whoever
drives it does the work, in one flat loop, instead of being called back from within.
"""

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


class Questions(Generic[Question, Answer, Result]):
    """Of a strategy: `for question in questions: questions.answer = ...`, then `result`."""

    answer: Answer  # to the question last asked
    result: Result  # once all are answered

    def __init__(self, strategy: Generator[Question, Answer, Result]) -> None:
        self._strategy = strategy

    def __iter__(self) -> Iterator[Question]:
        try:
            question = next(self._strategy)
            while True:
                yield question
                question = self._strategy.send(self.answer)
        except StopIteration as end:
            self.result = end.value
