"""Payment links (docs/payment-links.md)."""
