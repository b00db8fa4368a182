"""A journal as a service: HTTP and JSON, one process that owns the journal, many clients.

app.py      what is answered
writer.py   one thread that carries out calls, several of them in one commit
page.py     the live page of a journal
client.py   a client of the service
"""
