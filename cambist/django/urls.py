"""The routes of the app."""

from cambist.frontends.django.urls import app_name, urlpatterns

__all__ = ["app_name", "urlpatterns"]
