"""The dashboard of merchants' people, below `app_url` (docs/dashboard.md)."""
