"""A learner that lives in a database: decisions have names, everything that happens is recorded before it is answered.

journal.py   `Journal`: ask, tell, abandon, change, absorb, status
replay.py    the state that the events so far lead to, live and again
events.py    what an event is, and the chain of hashes
drift.py     a warning if the last outcomes cost more than those before
storage.py   one schema for SQLite and PostgreSQL
"""
