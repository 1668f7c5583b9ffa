"""The project's tasks. `nox -l` lists them; each installs what it needs into an environment of its own."""

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def demo(session: nox.Session) -> None:
    """The narrated tour; `nox -s demo -- --keep` stays up."""
    session.install("-e", ".[server]")
    session.run("cambist", "demo", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, or those named after `--`."""
    session.install("-e", ".[dev]")
    session.run("pytest", *(session.posargs or ["-n", "auto"]))


@nox.session
def drills(session: nox.Session) -> None:
    """What is killed in mid-work, at full length: some ten minutes (docs/operations.md)."""
    session.install("-e", ".[dev]")
    session.run("pytest", "-n", "0", "-s", "-m", "drill", *session.posargs, env={"CAMBIST_DRILLS": "full"})


@nox.session
def bench(session: nox.Session) -> None:
    """The hot paths beside their floors; only the ratios of one run mean anything."""
    session.install("-e", ".[dev]")
    session.run(
        "pytest",
        "benchmarks",
        "--benchmark-only",
        "--benchmark-group-by=group",
        "--benchmark-columns=median,iqr,rounds",
        "--benchmark-sort=name",
        *session.posargs,
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Style, and the contracts between the floors."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Two checkers, because each sees what the other does not."""
    session.install("-e", ".[dev]")
    session.run("mypy")
    session.run("pyright")
