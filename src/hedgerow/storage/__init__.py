"""Files: atomic writes (`atomic`), data files without pickles (`datafile`), checksums inside files (`checksum`)."""
