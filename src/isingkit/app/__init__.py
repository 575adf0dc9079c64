"""`isingkit app`: the command line as a page of this machine.

Files are looked through and networks learnt by processes that run `isingkit check` and `isingkit
fit`, so that the page does what the command line does, says what it says, and outlives both.
"""
