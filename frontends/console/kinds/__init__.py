"""Kinds of objects in the console, described as data: columns, details, actions."""
