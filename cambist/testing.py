"""A sandbox in memory for merchants' tests (docs/testing.md). Needs the extra `testing`."""

from cambist.frontends.testing import *  # noqa: F403 - the same names
