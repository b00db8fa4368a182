"""The commands of the command line. One module for each family of commands: parse, call the library, print.

Heavy modules are imported inside the commands: `hedgerow --help` answers at once.
"""
