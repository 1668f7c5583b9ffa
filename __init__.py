"""cambist: a merchant's payment, subscription and exchange service, and a library to embed it.

    async with cambist.open("sqlite:///shop.db", on_event=heard) as service:
        account = await service.create_account("My shop")
        merchant = await service.merchant(account.account_id)
        payment = await merchant.create_payment("490.00", external_id="order-1")

docs/embedding.md tells the rest. Everything here is loaded when it is first asked for; `import cambist` loads nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .frontends.public import *  # noqa: F403 - its names are ours

    __version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from .frontends.telemetry.version import version

        return version()
    # pytest imports this file by its path where the folder of the clone is no name of Python (`cambist-main`).
    if name.startswith("_") or not __package__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .frontends import public

    try:
        return getattr(public, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    from .frontends import public

    return ["__version__", *sorted(name for name in vars(public) if not name.startswith("_"))]
