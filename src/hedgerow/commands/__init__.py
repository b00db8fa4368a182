"""What the command line does. A module for each family of commands: parse, call the library, print.

Everything heavy is imported inside the commands, so that `hedgerow --help` answers at once.
"""
