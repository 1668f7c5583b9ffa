"""USDT leave by one signed transfer at a time: what all who send them share."""
