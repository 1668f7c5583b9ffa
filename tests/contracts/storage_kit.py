"""What the storage tests share is shipped with the contract (cambist.frontends.conformance)."""

from cambist.frontends.conformance.storage.kit import *  # noqa: F403 - all of it
