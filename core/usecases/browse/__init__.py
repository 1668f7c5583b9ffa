"""What operators leaf through: lists in the order of (moment, id), search, the timeline of an object."""
