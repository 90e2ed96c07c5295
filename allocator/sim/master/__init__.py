"""The emulated master, by subject: agents, frameworks, offers, operators, failover."""

from allocator.sim.master.emulated import EmulatedMaster as EmulatedMaster
