"""The configuration of the app."""

from cambist.frontends.django.apps import CambistConfig

__all__ = ["CambistConfig"]
