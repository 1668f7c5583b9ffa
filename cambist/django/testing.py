"""Test cases with a sandbox."""

from cambist.frontends.django.testing import CambistTestCase

__all__ = ["CambistTestCase"]
