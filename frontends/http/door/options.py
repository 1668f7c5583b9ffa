"""What OPTIONS says of a path: all its methods. The framework names only those of the handler that came first."""

from typing import Any

from litestar import Request, Response


async def say_methods(request: Request[Any, Any, Any]) -> Response[None] | None:
    """The answer to OPTIONS; None for every other method, which then goes its way."""
    if request.method != "OPTIONS":
        return None
    here = request.scope["path_template"]
    methods = {
        name for route in request.app.routes if route.path_format == here for name in getattr(route, "methods", ())
    }
    return Response(None, status_code=204, media_type="text/plain", headers={"Allow": ", ".join(sorted(methods))})
