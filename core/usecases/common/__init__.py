"""Modules that every subject uses: units of work, schedules, idempotency, paging and encryption."""
