"""Makes the file store in a bucket of its settings. Its library is imported only then."""

from ...ports.files import FileStore
from ...ports.settings import AdapterFactory
from ...ports.tools import FileTools
from .settings import S3Settings


def _s3(tools: FileTools, own: S3Settings) -> FileStore:
    from .s3 import S3Files
    from .sigv4 import Credentials

    return S3Files(
        bucket=own.bucket,
        credentials=Credentials(access_key=own.access_key, secret_key=own.secret_key, region=own.region),
        clock=tools.clock,
        endpoint=own.endpoint,
        by_path=None if own.addressing is None else own.addressing == "path",
        prefix=own.prefix,
        single_use=own.single_use,
    )


S3 = AdapterFactory(settings=S3Settings, make=_s3, extra="http")
