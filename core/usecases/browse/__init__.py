"""Lists for operators: records in the order of (moment, id), search, and the timeline of an object."""
