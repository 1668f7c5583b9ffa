"""A service inside the project: the WSGI application, and the service itself."""

from cambist.frontends.django.gateway import service, wsgi

__all__ = ["service", "wsgi"]
