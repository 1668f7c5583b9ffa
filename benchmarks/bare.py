"""Floor of all HTTP benchmarks: only the framework and the server, with answers as long as a payment."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

_BARE = """
import sys, uvicorn, uvloop
from litestar import Litestar, Request, Response, get, post

@post("/api/v1/payments", status_code=201)
async def create(request: Request) -> Response[bytes]:
    await request.body()
    return Response(b"x" * 640, media_type="application/json")

@get("/api/v1/payments/{payment_id:str}")
async def show(request: Request, payment_id: str) -> Response[bytes]:
    return Response(b"x" * 640, media_type="application/json")

app = Litestar([create, show], openapi_config=None, logging_config=None)
config = uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="off")

async def main():
    listening = config.bind_socket()
    print(listening.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve(sockets=[listening])

uvloop.run(main())
"""


@contextmanager
def bare_server() -> Iterator[tuple[str, int]]:
    """Run the server, and yield its base URL and process id."""
    process = subprocess.Popen([sys.executable, "-c", _BARE], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        _wait_for(port)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _wait_for(port: int) -> None:
    """Wait until the server listens. It prints its port slightly earlier."""
    for _ in range(1000):
        with closing(socket.socket()) as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise AssertionError("nobody listens")
