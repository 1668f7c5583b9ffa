"""What every storage must do, as tests: storage.py gathers the suites, kit.py has the records and places they use."""
