"""
The theory in ten minutes
=========================

stub
"""
import isingkit as ik
