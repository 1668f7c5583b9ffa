"""What stands between the core and providers: no call is without an end, and none takes more than its own places."""
