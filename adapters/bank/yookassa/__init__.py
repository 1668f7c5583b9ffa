"""YooKassa: SBP payments, refunds, mandates and payouts over its API v3 (docs/providers/yookassa.md)."""
