"""Configuration of the app: it connects the receivers."""

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """The shop."""

    name = "shop"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the receivers of signals."""
        from . import receivers  # noqa: F401 - importing it connects them
