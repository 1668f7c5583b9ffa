"""Signals of payments and refunds.

Each is sent once for an event, inside the transaction that stores the event: if a receiver raises, nothing is stored
and the event comes again. `sender` is the order's model. The arguments are `instance`, the order with its new state,
and `event`, the payload (`cambist.client` has its types).
"""

from django.dispatch import Signal

payment_changed = Signal()
"""The payment of an order has another status."""
payment_paid = Signal()
"""The payment is paid, or a paid one was credited. Sent once for a payment, after `payment_changed`."""
payment_failed = Signal()
"""The payment failed, expired or was cancelled. Sent after `payment_changed`."""
refund_changed = Signal()
"""A refund of the payment was completed, rejected, failed or reversed. `event.event` says which."""
