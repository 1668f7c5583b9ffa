"""Work of an administrator: backup, restore, upgrade and the checks of `cambist doctor`."""
