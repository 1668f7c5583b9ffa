"""The app's configuration: `INSTALLED_APPS += ["cambist.django"]`."""

from django.apps import AppConfig


class CambistConfig(AppConfig):
    """Registers the model of events, the system checks and the commands."""

    name = "cambist.frontends.django"
    label = "cambist"
    verbose_name = "cambist"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from . import checks  # noqa: F401 - importing it registers them
