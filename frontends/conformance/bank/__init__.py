"""What every bank must do, as tests: bank.py gathers the suites, kit.py has what they share."""
