"""The service inside somebody's own program. What it offers is named in `cambist` itself, the package's root."""
