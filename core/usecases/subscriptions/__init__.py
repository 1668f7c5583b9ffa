"""Subscriptions: bindings of payers, charges by mandate, deadlines and endings."""
