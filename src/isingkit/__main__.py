"""python -m isingkit"""

from isingkit.cli import main

main()
