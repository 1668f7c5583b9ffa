"""Alarms for operators, and for merchants whose receiver is down (docs/alarms.md)."""
