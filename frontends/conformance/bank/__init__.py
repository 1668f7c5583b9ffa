"""Contract tests of banks: bank.py collects the suites, kit.py holds their shared helpers."""
