"""Receipts by 54-FZ whose items the merchant sends: orders, rules of sums, and carts as stored."""
