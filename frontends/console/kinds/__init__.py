"""The kinds of objects of the console, told as data: columns, details, acts."""
