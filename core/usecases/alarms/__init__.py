"""Alarms: what operators, and merchants with a dead receiver, are told of (docs/alarms.md)."""
