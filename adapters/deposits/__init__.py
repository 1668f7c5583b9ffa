"""Ways of filling the port DepositWatcher."""
