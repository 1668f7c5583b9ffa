"""`python -m cambist`: the command line, where the command `cambist` is not on the path."""

from .frontends.cli.entry import main

if __name__ == "__main__":
    main()
