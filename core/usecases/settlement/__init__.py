"""Settlement of paid payments into USDT, payouts, and the rates for both."""
