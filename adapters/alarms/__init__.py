"""Channels by which operators are told of trouble: e-mail, chat, Alertmanager (docs/alarms.md)."""
