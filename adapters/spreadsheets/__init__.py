"""Workbooks for spreadsheet programs."""
