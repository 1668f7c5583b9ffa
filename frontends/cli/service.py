"""`cambist serve`, its halves `api` and `worker`, `demo` and `migrate`. Their heavy imports are deferred."""

import asyncio

import click

from ..process.gc_pause import gc_paused
from ..settings.settings import for_many_processes
from .output import Answer, fields
from .session import answering, guarded, loaded_settings


@click.command()
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0: any free port.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Number of concurrent jobs.")
def serve(host: str | None, port: int | None, workers: int | None) -> None:
    """Run the whole service in one process: API, payment window, worker. SIGTERM drains."""

    def run() -> None:
        settings = loaded_settings(host=host, port=port, workers=workers).settings
        with gc_paused():
            from ..server.server import serve as run_server

        run_server(settings)

    guarded(run)


@click.command()
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0: any free port.")
def api(host: str | None, port: int | None) -> None:
    """Run API and payment window without a worker, as one of several processes on Postgres and Redis. SIGTERM
    drains."""

    def run() -> None:
        settings = for_many_processes(loaded_settings(host=host, port=port).settings)
        with gc_paused():
            from ..server.server import serve as run_server

        run_server(settings, works=False)

    guarded(run)


@click.command()
@click.option("--workers", type=click.IntRange(1, 1024), help="Number of concurrent jobs.")
def worker(workers: int | None) -> None:
    """Run a worker without HTTP, as one of several processes on Postgres and Redis. SIGTERM drains."""

    def run() -> None:
        settings = for_many_processes(loaded_settings(workers=workers).settings)
        with gc_paused():
            from ..worker.process import work

        work(settings)

    guarded(run)


@click.command()
@click.option("--keep", is_flag=True, help="Stay up afterwards, and print keys and addresses.")
def demo(keep: bool) -> None:
    """Run a narrated tour over real HTTP, in a fresh data folder."""

    def run() -> None:
        settings = loaded_settings().settings
        from .demo import demo as run_demo

        run_demo(settings, keep=keep)

    guarded(run)


@click.command()
@answering
def migrate() -> Answer:
    """Upgrade the database's schema to this version. serve does it automatically on SQLite.

    Compatible processes of older versions are listed for replacement; if an incompatible one runs, nothing is done.
    """
    settings = loaded_settings().settings
    from ..operations.upgrade import upgrade

    done = asyncio.run(upgrade(settings))
    told = {"schema revision": done.revision}
    if done.older:
        told["to be replaced"] = ", ".join(done.older)
    return Answer(document={"revision": done.revision, "older_processes": list(done.older)}, text=fields(told))
