"""Our storages pass the shipped contract of jobs that many units request."""

from cambist.frontends.conformance.storage.asking import *  # noqa: F403 - its tests
