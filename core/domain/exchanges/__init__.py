"""RUB against USDT: orders, states, money on its way in and out, and what it makes of the books."""
