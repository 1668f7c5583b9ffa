"""Protection between the core and providers: every call ends in time, and no provider blocks another."""
