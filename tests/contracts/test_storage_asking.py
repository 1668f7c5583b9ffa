"""Our own storages keep the contract of jobs that many units ask for, as it is shipped for those of others."""

from cambist.frontends.conformance.storage.asking import *  # noqa: F403 - its tests
