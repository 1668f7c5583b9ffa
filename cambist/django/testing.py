"""Test cases with a sandbox."""

from cambist.frontends.django.testing import CambistTestCase

__all__ = ["CambistTestCase"]

CambistTestCase.__module__ = __name__  # tracebacks and reprs name the public place
