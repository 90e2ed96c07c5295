"""Process-level chaos: a real sidecar, emulated masters on real streams, faults, invariants.

    run         from world to world, until the time is over; a world is one master's life
    rig         what faults may lay hands on: the process, its log, the ways to it, its files
    link        the master's end of the stream, which continues alone while no answer comes
    wires       a relay for TCP that spoils connections, a cable that can be pulled, certificates
    faults      what goes wrong, a function each
    invariants  what must hold under every fault
    report      what came of it, as text and JSON

One seed fixes the worlds, and which fault strikes at which moment of their time. How long the
process takes to come back is the machine's, so two runs are alike and not the same.
"""

from allocator.lab.torture.report import TortureReport as TortureReport
from allocator.lab.torture.report import text as text
from allocator.lab.torture.report import write as write
from allocator.lab.torture.run import Plan as Plan
from allocator.lab.torture.run import torture as torture
