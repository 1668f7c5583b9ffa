"""Documents in a bucket of moto, which stores files as S3 does but checks no signatures: `nox -s moto`. A strict fake
checks the upload permissions instead (fake_s3.py, providers/test_s3.py)."""

import asyncio
from datetime import timedelta
from importlib import import_module

import boto3
import pytest

from cambist.adapters.clock import SystemClock
from cambist.adapters.files.s3 import S3Files
from cambist.adapters.files.sigv4 import Credentials
from cambist.frontends.conformance.uploads import put
from cambist.ports import NotConfigured, Refused, StoredFile

BUCKET, KEY, JPEG = "documents", "5e" * 32, "image/jpeg"
FACE = b"\xff\xd8\xff" + bytes(3_000_000)


async def main(endpoint: str) -> None:
    """Go through everything that the app asks of a bucket. Raises: AssertionError."""
    clock = SystemClock()
    keys = Credentials(access_key="moto", secret_key="moto", region="us-east-1")
    files = S3Files(bucket=BUCKET, credentials=keys, clock=clock, endpoint=endpoint, prefix="kyc/", single_use=True)
    with pytest.raises(NotConfigured, match="no such bucket"):
        await files.check()
    own = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="moto",
        aws_secret_access_key="moto",
    )
    own.create_bucket(Bucket=BUCKET)
    await files.check()
    place = files.grant(KEY, JPEG, 10_000_000, clock.now() + timedelta(minutes=10))
    assert await files.stat(KEY) is None
    assert await put(files, place, JPEG, FACE)
    assert not await put(files, place, JPEG, b"another"), "a second upload was taken"
    assert await files.stat(KEY) == StoredFile(key=KEY, size=len(FACE))
    assert b"".join([part async for part in files.read(KEY)]) == FACE
    listed = own.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert [each["Key"] for each in listed] == [f"kyc/{KEY}"]
    for _ in range(2):
        await files.remove(KEY)
    assert await files.stat(KEY) is None
    with pytest.raises(Refused):
        _ = [part async for part in files.read(KEY)]
    await files.close()


if __name__ == "__main__":
    # By name: only the nox session installs it, and type checkers read this file everywhere.
    server = import_module("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        asyncio.run(main(f"http://{host}:{port}"))
    finally:
        server.stop()
    print("moto: put once, found, read, listed, taken away")
