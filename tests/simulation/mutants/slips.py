"""A slip: a few lines of the code that are wrong, in one file or in some (table.py)."""

from dataclasses import dataclass
from pathlib import Path

from tests.mutants import Mutant


@dataclass(frozen=True)
class Slip:
    """Edits that belong together, in their order."""

    edits: tuple[Mutant, ...]

    def applied(self, root: Path) -> dict[str, str]:
        """The text of each file that it changes, by the file's name. Raises: ValueError where the code is another one
        by now."""
        texts: dict[str, str] = {}
        for edit in self.edits:
            text = texts.get(edit.file) or (root / edit.file).read_text("utf-8")
            if text.count(edit.right) != 1:
                raise ValueError(f"{edit.file} has {edit.right!r} {text.count(edit.right)} times: bring the slip up")
            texts[edit.file] = text.replace(edit.right, edit.wrong)
        return texts


def slip(*edits: Mutant) -> Slip:
    """Combine several edits."""
    return Slip(edits)


def at(file: str, right: str, wrong: str) -> Slip:
    """A slip in one place of a file."""
    return Slip((Mutant(file, right, wrong),))


def domain(room: str, right: str, wrong: str) -> Slip:
    """A slip in one place of the domain."""
    return at(f"core/domain/{room}.py", right, wrong)


def usecase(room: str, right: str, wrong: str) -> Slip:
    """A slip in one place of the use cases."""
    return at(f"core/usecases/{room}.py", right, wrong)
