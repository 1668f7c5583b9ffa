"""Receipts by 54-FZ: their progress at bank or register, lists, second receipts and corrections."""
