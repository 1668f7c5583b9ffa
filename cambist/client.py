"""The merchant's client, sync and async, and webhooks verified (docs/client.md). Needs the extra `client`."""

from cambist.frontends.client import *  # noqa: F403 - the same names
