"""Channels for operator alarms: e-mail, chat, Alertmanager (docs/alarms.md)."""
