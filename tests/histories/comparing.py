"""The same history in several storages: where they answer unlike, and the shortest history in which they still do."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.delta import fewest
from tests.histories.places import Place, shown
from tests.histories.running import Answer
from tests.histories.steps import History, drawn

_SHOWN = 3000
"""Characters of a step that are printed."""


@dataclass(frozen=True)
class Difference:
    """A step that was answered in more than one way."""

    history: History
    step: int
    """Its place in the history."""
    answers: dict[str, Answer]
    """By storage."""

    def __str__(self) -> str:
        numbers = ",".join(map(str, self.history.numbers))
        lines = [f"history {self.history.seed}, steps {numbers}: step {self.history.numbers[self.step]} differs"]
        lines += [f"  {name}: {text}" for name, text in shown(self.answers).items()]
        lines += [
            f"  {number}. {step}"[:_SHOWN]
            for number, step in zip(self.history.numbers, self.history.steps, strict=True)
        ]
        return "\n".join([*lines, f"  again: python -m tests.histories --seed {self.history.seed} --steps {numbers}"])


async def difference(places: Sequence[Place], history: History) -> Difference | None:
    """The first step that they answer unlike; None where they answer alike."""
    told = {place.name: await place.answers(history) for place in places}
    for number in range(len(history.steps)):
        answers = {name: steps[number] for name, steps in told.items()}
        if any(answer != answers[places[0].name] for answer in answers.values()):
            return Difference(history, number, answers)
    return None


async def shortest(places: Sequence[Place], found: Difference) -> Difference:
    """The same with fewer steps."""

    async def fails(numbers: Sequence[int]) -> bool:
        return await difference(places, drawn(found.history.seed, numbers)) is not None

    numbers = await fewest(found.history.numbers[: found.step + 1], fails)
    return await difference(places, drawn(found.history.seed, numbers)) or found
