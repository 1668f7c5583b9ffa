"""A service inside the project: its WSGI or ASGI application, and the service itself."""

from cambist.frontends.django.gateway import asgi, service, wsgi

__all__ = ["asgi", "service", "wsgi"]
