"""RUB against USDT: an order, its payment, the payout, and what goes back."""
