"""The project's tasks; `nox -l` lists them.

Tasks of `[dev]` run in the environment that nox itself runs in, because a second installation takes minutes. Tasks with
further requirements install them into an environment of their own, below .nox.
"""

import functools
import os
import shutil
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests", "release"]
nox.options.reuse_existing_virtualenvs = True

# A session without an environment of its own finds its programs by the path, also if .venv is not activated. pyenv's
# interpreters come before its shims, which find only the selected version.
_PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions").glob("3.1[1-9].*/bin")
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), *map(str, sorted(_PYENV)), os.environ.get("PATH", "")]
)


def dev_session(task: Callable[[nox.Session], None]) -> Callable[[nox.Session], None]:
    """Declare a task that needs `[dev]`, in the environment that nox runs in."""

    @functools.wraps(task)
    def checked(session: nox.Session) -> None:
        try:
            metadata.version("pytest-xdist")
        except metadata.PackageNotFoundError:
            session.error("nox runs without the project's requirements: pip install -e '.[dev]' beside it")
        task(session)

    return nox.session(python=False)(checked)


@dev_session
def quick(session: nox.Session) -> None:
    """Check a change in some minutes: style, contracts, rules, pages. `-- tests/http/test_refunds.py` adds tests."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")
    folders = ("tests/architecture", "tests/domain", "tests/docs")
    session.run("pytest", "-q", "-n", "auto", "-r", "fE", *folders, *session.posargs)


@nox.session
def demo(session: nox.Session) -> None:
    """Run the narrated tour; `nox -s demo -- --keep` keeps it running."""
    session.install("-e", ".[server]")
    session.run("cambist", "demo", *session.posargs)


@dev_session
def tests(session: nox.Session) -> None:
    """Run all tests, or those named after `--`."""
    session.run("pytest", *(session.posargs or ["-n", "auto"]))


_CORE = [
    f"tests/{each}" for each in ("domain", "usecases", "contracts", "http", "chains", "client", "plugin", "embedding")
]
"""The part of the suite that tries the libraries, SQLite and Postgres, and no browser or other program."""
_EXTRAS = ("server", "otel", "client", "mcp", "testing", "wsgi", "django")


@nox.session
def lowest(session: nox.Session) -> None:
    """Run the core of the suite with the lowest library versions that `pyproject.toml` allows: some twenty minutes."""
    session.install("uv>=0.9")
    versions = str(Path(session.create_tmp(), "lowest.txt"))
    extras = [option for extra in _EXTRAS for option in ("--extra", extra)]
    resolve = ["uv", "pip", "compile", "-q", "--no-header", "--resolution", "lowest-direct"]
    session.run(*resolve, *extras, "pyproject.toml", "-o", versions)
    session.run("uv", "pip", "install", "-q", "-e", ".[dev]", "-c", versions)
    session.run("pytest", "-q", "-n", "auto", *(session.posargs or _CORE))


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def pythons(session: nox.Session) -> None:
    """Run the core of the suite with each Python that is installed here: some twenty minutes each."""
    session.install("-e", ".[dev]")
    session.run("pytest", "-q", "-n", "auto", *(session.posargs or _CORE))


@nox.session
def package(session: nox.Session) -> None:
    """Build the release of HEAD in dist/ twice, which must give the same files, check it, and run the tour from it by
    uvx and pipx (docs/installation.md)."""
    session.install("--require-hashes", "-r", "deploy/build-requirements.lock")
    session.install("build>=1.3", "pipx>=1.7", "twine>=6.1", "uv>=0.9")
    epoch = str(session.run("git", "log", "-1", "--format=%ct", silent=True, external=True)).strip()
    temporary = Path(session.create_tmp())
    built: list[dict[str, bytes]] = []
    for name in ("first", "second"):
        folder = temporary / name
        shutil.rmtree(folder, ignore_errors=True)
        source = folder / "source"
        source.mkdir(parents=True)
        session.run("git", "archive", "-o", str(folder / "head.tar"), "HEAD", external=True)
        session.run("tar", "-x", "-C", str(source), "-f", str(folder / "head.tar"), external=True)
        command = ("python", "-m", "build", "--no-isolation", "-o", str(folder / "dist"), str(source))
        session.run(*command, env={"SOURCE_DATE_EPOCH": epoch}, silent=True)
        built.append({path.name: path.read_bytes() for path in (folder / "dist").iterdir()})
    if built[0] != built[1]:
        session.error("two builds of one commit differ")
    shutil.rmtree("dist", ignore_errors=True)
    shutil.copytree(temporary / "first" / "dist", "dist")
    session.run("twine", "check", "--strict", *map(str, Path("dist").iterdir()))
    [wheel] = Path("dist").resolve().glob("*.whl")
    session.run("uvx", "--isolated", "--from", f"{wheel}[server]", "cambist", "demo")
    session.run("pipx", "run", "--no-cache", "--spec", f"{wheel}[server]", "cambist", "demo")


@dev_session
def release(session: nox.Session) -> None:
    """Build the distributions twice, use them as strangers do, and check the types of the pages' programs: a minute."""
    session.run("pytest", "-q", "-n", "2", "-m", "release", *session.posargs)


@dev_session
def mutants(session: nox.Session) -> None:
    """Make small wrong changes in timing-critical code; a test must notice each: some minutes (tests/mutants.py)."""
    session.run("python", "-m", "tests.mutants", *session.posargs)


@dev_session
def drills(session: nox.Session) -> None:
    """Kill processes in mid-work, at full length: some ten minutes (docs/operations.md)."""
    session.run("pytest", "-n", "0", "-s", "-m", "drill", *session.posargs, env={"CAMBIST_DRILLS": "full"})


@dev_session
def bare(session: nox.Session) -> None:
    """Run README's commands on a new Debian that has Python alone: some ten minutes. Needs root and debootstrap."""
    arguments = ("-n", "0", "-s", "tests/drills/test_bare_debian.py", *session.posargs)
    session.run("pytest", *arguments, env={"CAMBIST_DRILLS": "full"})


@dev_session
def image(session: nox.Session) -> None:
    """Build the image of deploy/Dockerfile by buildah, without Docker, and start it: some five minutes. Needs root,
    buildah and debootstrap."""
    arguments = ("-n", "0", "-s", "tests/drills/test_image.py", *session.posargs)
    session.run("pytest", *arguments, env={"CAMBIST_DRILLS": "full"})


@dev_session
def failover(session: nox.Session) -> None:
    """Kill the primary of Postgres under load and promote its standby, 80 times: some fifteen minutes
    (docs/operations.md)."""
    arguments = ("-n", "0", "-s", "tests/drills/test_failover.py", *session.posargs)
    session.run("pytest", *arguments, env={"CAMBIST_FAILOVERS": "50", "CAMBIST_DRILLS": "full"})


@dev_session
def ha(session: nox.Session) -> None:
    """Run three machines from the files of deploy/ha, and let each fail under load: some ten minutes, as root, with
    Debian's patroni, etcd-server, haproxy, pgbouncer, redis-sentinel, postgresql (docs/high-availability.md)."""
    arguments = ("-n", "0", "-s", "tests/drills/test_high_availability.py", *session.posargs)
    session.run("pytest", *arguments, env={"CAMBIST_HA_ROUNDS": "5", "CAMBIST_DRILLS": "full"})


@dev_session
def fleet(session: nox.Session) -> None:
    """Run two cells behind HAProxy: kill primaries and a cell, move accounts under load, measure CPU: half an hour, as
    root, with the packages of `ha` (docs/cells.md)."""
    arguments = ("-n", "0", "-s", "tests/drills/test_fleet.py", *session.posargs)
    environ = {"CAMBIST_FLEET": "50,20", "CAMBIST_FLEET_PAYMENTS": "4000", "CAMBIST_DRILLS": "full"}
    session.run("pytest", *arguments, env=environ)


@dev_session
def simulate(session: nox.Session) -> None:
    """Simulate whole installations under faults, by seeds: `-- --hours 1000 --jobs 2`; one: `-- --seed 17`
    (docs/reliability.md)."""
    session.run("python", "-m", "tests.simulation", *(session.posargs or ["--hours", "1000", "--jobs", "2"]))


@dev_session
def simulate_failovers(session: nox.Session) -> None:
    """Simulate 1000 failovers of the database server, by seeds: some minutes (docs/reliability.md)."""
    session.run("python", "-m", "tests.simulation.failovers", *session.posargs)


@dev_session
def simulate_mutants(session: nox.Session) -> None:
    """Plant faults in the code; the simulation must notice each: an hour (tests/simulation/mutants/table.py)."""
    session.run("python", "-m", "tests.simulation.mutants", *session.posargs)


@dev_session
def storages(session: nox.Session) -> None:
    """Compare memory, SQLite, Postgres and a third-party storage by random histories: `-- --histories 10000 --jobs 2`
    (docs/reliability.md)."""
    session.run("python", "-m", "tests.histories", *(session.posargs or ["--histories", "10000", "--jobs", "2"]))


@nox.session
def mutation(session: nox.Session) -> None:
    """Mutate every line of the core: `-- core/domain/ledger.py core/domain/exchanges` (tests/mutation).

    A run continues where the previous one ended; `--seconds 600` limits it.
    """
    session.install("-e", ".[dev]", "coverage>=7.10")
    session.run("python", "-m", "tests.mutation", *(session.posargs or ["core/domain"]), success_codes=[0, 1])


@dev_session
def attacks(session: nox.Session) -> None:
    """Run the attack tests at full length: some minutes. `-- -k two_ways` selects some."""
    session.run("pytest", "-n", "0", "tests/attacks", *session.posargs, env={"CAMBIST_ATTACKS": "full"})


@dev_session
def accessibility(session: nox.Session) -> None:
    """Check every screen of the dashboard by axe, in both languages, light and dark, narrow and wide: some minutes."""
    session.run("pytest", "-n", "0", "tests/stories/test_dashboard_accessibility.py", env={"ACCESSIBILITY": "all"})


@dev_session
def monkey(session: nox.Session) -> None:
    """Type 100 000 random keys at the console: some hours.

    The console runs on SQLite and Postgres with 20 000 payments, over a storage that is slow, unavailable or raises
    errors. Each run prints its seed; `-- --seed 7 --keys 2000 --storage sqlite` repeats it.
    """
    session.run("python", "-m", "tests.console.monkey", *session.posargs)


@dev_session
def bench(session: nox.Session) -> None:
    """Measure the hot paths beside their floors and peers, and print a table of the ratios.

    Only ratios of one run are comparable. `-- --keep` writes table and chart into docs/performance.md; other arguments
    go to pytest. CAMBIST_BENCH_PEERS=FOLDER also measures peers, which are installed there the first time. For larger
    sizes see docs/performance.md.
    """
    keep = ["--keep", "docs/performance.md"] if "--keep" in session.posargs else []
    results = Path(session.create_tmp(), "results.json")
    results.unlink(missing_ok=True)  # do not show old results if this run ends without any
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


@dev_session
def scale(session: nox.Session) -> None:
    """Measure operations in databases of several sizes: `-- 10000 1000000 --merchants 1000` (docs/scaling.md).

    It prints pages, bytes of log, CPU and disk. A million payments take some ten minutes and 9 GB.
    """
    session.run("python", "-m", "benchmarks.scale", *session.posargs)


@dev_session
def lint(session: nox.Session) -> None:
    """Check style and the import contracts between the layers."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@dev_session
def types(session: nox.Session) -> None:
    """Run two type checkers, because each finds errors that the other misses."""
    session.run("mypy")
    session.run("pyright")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site in build/docs. A broken link fails it."""
    session.install("furo>=2025.7", "myst-parser>=4.0", "sphinx>=8.1")
    session.run("sphinx-build", "-n", "-W", "--keep-going", "-b", "html", "docs", "build/docs", *session.posargs)


@dev_session
def generate(session: nox.Session) -> None:
    """Generate the pages and examples that are derived from the code. A changed drawing needs Graphviz."""
    session.run("python", "docs/generate.py")


@nox.session(python=False)
def changelog(session: nox.Session) -> None:
    """Move the fragments of changes/ into CHANGELOG.md at a release: `-- 1.1.0 2027-01-31`."""
    session.run("python", "changes/fold.py", *session.posargs)


@dev_session
def record(session: nox.Session) -> None:
    """Record the public names of this version, which no later state may lack. `-- database`, at a release, also records
    a database with data, which every later version has to upgrade (docs/versioning.md)."""
    session.run("python", "-m", "tests.public_surface")
    if "database" in session.posargs:
        session.run("python", "-m", "tests.recorded_database")


@dev_session
def pictures(session: nox.Session) -> None:
    """Take the picture of the payer window. Needs Chromium."""
    session.run("python", "docs/pictures.py")


@dev_session
def screenshots(session: nox.Session) -> None:
    """Take the pictures of the operators' console. Needs Chromium."""
    session.run("python", "docs/screenshots.py")


@dev_session
def reports(session: nox.Session) -> None:
    """Recompute the registers of random histories from the journal: `-- --histories 10000`."""
    session.run("python", "-m", "tests.report_histories", *session.posargs)


@nox.session
def schemathesis(session: nox.Session) -> None:
    """Send generated requests, valid and invalid, to a running service: some five minutes. `-- --max-examples 50` sends
    more."""
    session.install("-e", ".[server,client]", "schemathesis>=4.20")
    session.run("python", "-m", "tests.fuzzing", *(session.posargs or ["--max-examples", "8"]))


@nox.session
def moto(session: nox.Session) -> None:
    """Test clients' documents in a bucket of moto, which needs sixty packages and so is not in the suite."""
    session.install("-e", ".[server]", "boto3", "moto[server]>=5.2", "pytest")
    session.run("python", "-m", "tests.moto_s3")


@nox.session
def generated_clients(session: nox.Session) -> None:
    """Check that client generators read the OpenAPI document without losing anything."""
    session.install("-e", ".[http]", "datamodel-code-generator>=0.60", "openapi-python-client>=0.29")
    session.run("python", "-m", "tests.generated_clients")


@dev_session
def examples(session: nox.Session) -> None:
    """Run the commands at the top of each example folder, each in a new environment: some minutes."""
    session.run("python", "-m", "tests.example_headers", *session.posargs)


@dev_session
def collections(session: nox.Session) -> None:
    """Run the collections of the API by the programs of Postman and Bruno: three minutes. Needs Node and npm."""
    folder = session.create_tmp()
    options = ("--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error")
    session.run("npm", "install", *options, "newman@6", "@usebruno/cli@4", external=True)
    session.run("python", "-m", "tests.collection_runs", str(Path(folder, "node_modules", ".bin")))


@nox.session
def lock(session: nox.Session) -> None:
    """Lock the image's packages, each file by its hash. Versions that still fit stay; `-- --upgrade` takes the
    newest."""
    session.install("uv>=0.9")
    build = Path(session.create_tmp(), "build.in")
    build.write_text("\n".join(tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["build-system"]["requires"]))
    for asked, into in (
        (["pyproject.toml", "--extra", "server", *_omitted("cambist", *_LEFT_OUT)], "deploy/requirements.lock"),
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


def _omitted(*packages: str) -> list[str]:
    return [option for name in packages for option in ("--no-emit-package", name)]


_LEFT_OUT = ("faker", "polyfactory")
"""Packages that litestar requires for examples in its own OpenAPI generator, which the service does not use: 17 MB."""
_PYTHON = "3.11.13"
"""Python version of the image (deploy/pin-images.sh)."""
_PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")


@nox.session
def sbom(session: nox.Session) -> None:
    """Write the image's contents as CycloneDX JSON to build/sbom.cdx.json, without network access."""
    session.run("python", "deploy/sbom.py", "build/sbom.cdx.json")


@nox.session
def kubernetes(session: nox.Session) -> None:
    """Render deploy/kubernetes and hold it against the schemas of three versions of Kubernetes. Needs kubectl."""
    session.install("kubernetes-validate>=1.31")
    rendered = Path(session.create_tmp(), "rendered.yaml")
    rendered.write_text(str(session.run("kubectl", "kustomize", "deploy/kubernetes", external=True, silent=True)))
    for version in ("1.27", "1.31", "1.35"):
        session.run("kubernetes-validate", "--strict", "--quiet", "-k", version, str(rendered))


@nox.session
def audit(session: nox.Session) -> None:
    """Check every package of the lock against the public list of vulnerabilities. Needs the network."""
    session.install("pip-audit>=2.9")
    session.run("pip-audit", "--require-hashes", "--disable-pip", "-r", "deploy/requirements.lock", *session.posargs)
