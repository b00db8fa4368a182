"""What people see: texts of objects, numbers, tables, lines on a screen, and what objects show in a notebook."""
