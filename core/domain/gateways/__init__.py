"""Banks in the form that merchants see."""
