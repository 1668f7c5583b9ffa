"""Contract tests of storages: storage.py collects the suites, kit.py holds their records and helpers."""
