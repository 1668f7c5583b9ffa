"""Settings of the desk, shared by its adapters: CAMBIST_DESK_URL and CAMBIST_DESK_TOKEN."""

from typing import Annotated

from cambist.ports import AdapterSettings, read_address, read_credential, setting


class DeskSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of the desk. Both have no default, so they must be set."""

    url: Annotated[str, setting("address of the desk's API", read_address)]
    token: Annotated[str, setting("token of the desk's API", read_credential, secret=True)]
