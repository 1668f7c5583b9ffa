"""Subscriptions: bindings of payers, charges by mandate, their deadlines and ends."""
