"""The project's tasks. `nox -l` lists them; each installs what it needs into an environment of its own."""

import tomllib
from pathlib import Path

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
def mutants(session: nox.Session) -> None:
    """Small wrong changes where a moment decides, each of which a test must notice: some minutes (tests/mutants.py)."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "tests.mutants", *session.posargs)


@nox.session
def drills(session: nox.Session) -> None:
    """What is killed in mid-work, at full length: some ten minutes (docs/operations.md)."""
    session.install("-e", ".[dev]")
    session.run("pytest", "-n", "0", "-s", "-m", "drill", *session.posargs, env={"CAMBIST_DRILLS": "full"})


@nox.session
def simulate(session: nox.Session) -> None:
    """Whole worlds under faults, by seeds: `-- --hours 1000 --jobs 2`; `-- --seed 17` one (docs/reliability.md)."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "tests.simulation", *(session.posargs or ["--hours", "1000", "--jobs", "2"]))


@nox.session
def simulate_mutants(session: nox.Session) -> None:
    """Slips of the code, each of which a simulated world must notice: an hour (tests/simulation/mutants/table.py)."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "tests.simulation.mutants", *session.posargs)


@nox.session
def storages(session: nox.Session) -> None:
    """Memory, SQLite, Postgres and a storage from elsewhere, held against one another by drawn histories:
    `-- --histories 10000 --jobs 2` (docs/reliability.md)."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "tests.histories", *(session.posargs or ["--histories", "10000", "--jobs", "2"]))


@nox.session
def mutation(session: nox.Session) -> None:
    """Every line of the core, mutated: `-- core/domain/ledger.py core/domain/exchanges`
    (tests/mutation). It goes on where it ended; `--seconds 600` ends it."""
    session.install("-e", ".[dev]", "coverage>=7.10")
    session.run("python", "-m", "tests.mutation", *(session.posargs or ["core/domain"]), success_codes=[0, 1])


@nox.session
def attacks(session: nox.Session) -> None:
    """What strangers may try, at full length: some minutes. `-- -k two_ways` chooses."""
    session.install("-e", ".[dev]")
    session.run("pytest", "-n", "0", "tests/attacks", *session.posargs, env={"CAMBIST_ATTACKS": "full"})


@nox.session
def monkey(session: nox.Session) -> None:
    """100 000 random keys at the console, on SQLite and Postgres with 20 000 payments, over a storage that is late,
    away or raises: some hours. Prints each run's seed; `-- --seed 7 --keys 2000 --storage sqlite` types it again."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "tests.console.monkey", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The hot paths beside their floors and peers, and one table of the ratios; only those of one run mean anything.

    `-- --keep` writes table and chart into docs/performance.md; all else goes to pytest. CAMBIST_BENCH_PEERS=FOLDER
    measures peers, too (the first time they are installed there); further sizes: docs/performance.md.
    """
    session.install("-e", ".[dev]")
    keep = ["--keep", "docs/performance.md"] if "--keep" in session.posargs else []
    results = Path(session.create_tmp(), "results.json")
    results.unlink(missing_ok=True)  # a run that ends without any shall not show those of the one before
    session.run(
        "pytest",
        "benchmarks",
        "-n",
        "0",
        "--timeout=0",
        "--benchmark-only",
        "--benchmark-group-by=group",
        "--benchmark-columns=median,iqr,rounds",
        "--benchmark-sort=name",
        f"--benchmark-json={results}",
        *(each for each in session.posargs if each != "--keep"),
        success_codes=[0, 1],
    )
    session.run("python", "-m", "benchmarks.table", str(results), *keep)


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


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as a site, in build/docs. A broken link fails it."""
    session.install("furo>=2025.7", "myst-parser>=4.0", "sphinx>=8.1")
    session.run("sphinx-build", "-n", "-W", "--keep-going", "-b", "html", "docs", "build/docs", *session.posargs)


@nox.session
def generate(session: nox.Session) -> None:
    """The pages and examples that say what the code says. Needs Graphviz."""
    session.install("-e", ".[dev]")
    session.run("python", "docs/generate.py")


@nox.session
def pictures(session: nox.Session) -> None:
    """The picture of the payer window. Needs Chromium."""
    session.install("-e", ".[dev]")
    session.run("python", "docs/pictures.py")


@nox.session
def screenshots(session: nox.Session) -> None:
    """The pictures of the operators' console. Needs Chromium."""
    session.install("-e", ".[dev]")
    session.run("python", "docs/screenshots.py")


@nox.session
def schemathesis(session: nox.Session) -> None:
    """Made-up requests to a running service, good and bad: some five minutes. `-- --max-examples 50` asks more."""
    session.install("-e", ".[server,client]", "schemathesis>=4.20")
    session.run("python", "-m", "tests.fuzzing", *(session.posargs or ["--max-examples", "8"]))


@nox.session
def moto(session: nox.Session) -> None:
    """Clients' documents in a bucket of moto: sixty packages, so not in the suite."""
    session.install("-e", ".[server]", "boto3", "moto[server]>=5.2", "pytest")
    session.run("python", "-m", "tests.moto_s3")


@nox.session
def generated_clients(session: nox.Session) -> None:
    """Generators of clients read the OpenAPI document, and lose nothing of it."""
    session.install("-e", ".[http]", "datamodel-code-generator>=0.60", "openapi-python-client>=0.29")
    session.run("python", "-m", "tests.generated_clients")


@nox.session
def lock(session: nox.Session) -> None:
    """What the image installs, each file by its hash. What still fits stays; `-- --upgrade` takes the newest."""
    session.install("uv>=0.9")
    build = Path(session.create_tmp(), "build.in")
    build.write_text("\n".join(tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["build-system"]["requires"]))
    for asked, into in (
        (["pyproject.toml", "--extra", "server", "--no-emit-package", "cambist"], "deploy/requirements.lock"),
        ([str(build), "--no-annotate"], "deploy/build-requirements.lock"),
    ):
        for platform in _PLATFORMS:
            before = Path(into).read_text("utf-8") if Path(into).exists() else ""
            session.run(
                *("uv", "pip", "compile", "-q", *asked, "-o", into, "--generate-hashes", "--no-emit-index-url"),
                *("--python-version", _PYTHON, "--python-platform", platform),
                *("--custom-compile-command", "nox -s lock", *session.posargs),
                silent=True,
            )
            if platform != _PLATFORMS[0] and before != Path(into).read_text("utf-8"):
                session.error(f"{into} is another for {platform} than for {_PLATFORMS[0]}: it needs one for each")


_PYTHON = "3.11.13"
"""Of the image (deploy/pin-images.sh)."""
_PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")


@nox.session
def sbom(session: nox.Session) -> None:
    """What the image is made of, as CycloneDX' JSON, in build/sbom.cdx.json; no network is needed."""
    session.run("python", "deploy/sbom.py", "build/sbom.cdx.json")


@nox.session
def audit(session: nox.Session) -> None:
    """Asks the public list of vulnerabilities about every package of the lock: needs the network."""
    session.install("pip-audit>=2.9")
    session.run("pip-audit", "--require-hashes", "--disable-pip", "-r", "deploy/requirements.lock", *session.posargs)
