"""What stands between the core and providers: no call is without an end, and no provider holds up another."""
