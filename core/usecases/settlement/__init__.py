"""What is paid is settled in USDT and withdrawn, at the rates kept here."""
