"""Operators' actions: the audit log, and the gate before actions that need two operators."""
