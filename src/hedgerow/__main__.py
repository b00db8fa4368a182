"""`python -m hedgerow`: the command line."""

from hedgerow.cli import main

if __name__ == "__main__":
    main()
