"""USDT transfers, signed and sent one at a time: the parts shared by all subjects that send USDT."""
