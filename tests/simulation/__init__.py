"""A deterministic simulation of Assay: one seed decides the order of all work, the clock, every fault and every reply.

simulate.py   the command: seeds, one after another, or one again
loop.py       an event loop with simulated processes, threads and time
machine.py    one machine: processes, kills, disk, network, clock and chance, put in the place of the real ones
model.py      what the model behind the endpoint replies, and how it fails
world.py      people, their documents, and what they do
promises.py   what must hold while faults happen, and what must come to an end after them
planted.py    bugs, one at a time, that the simulation must find
"""
