"""Common handling of every request before its handler runs: size bounds, overload control, authentication and errors.
Also the graceful stop of the server."""
