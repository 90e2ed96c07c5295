"""Finds frameworks that wait for a first offer although a suitable agent is free after a cycle."""

from laboratory.event_heap import Priority
from laboratory.master.gates import GPU_CAPABILITY, GPUS, allows
from laboratory.resources import reaches

PERIOD_MS = 1000


class Watched:
    """A scenario that is inspected right after each cycle over all agents.

    starved: time, framework and agent: the agent could run its task, and was not offered.
    waiting_max: the maximum number of frameworks that waited for a first offer.
    """

    def __init__(self, scenario):
        self.scenario = scenario
        self.kinds, self.agents, self.jobs = scenario.kinds, scenario.agents, scenario.jobs
        self.starved = []
        self.waiting_max = 0

    def begin(self, stage):
        self.scenario.begin(stage)
        self._master = stage.master
        stage.master.event_heap.at(PERIOD_MS, self._look, Priority.OBSERVE)

    def _look(self):
        master = self._master
        master.event_heap.after(PERIOD_MS, self._look, Priority.OBSERVE)
        waiting = [member for member in master.members.values() if member.waiting]
        self.waiting_max = max(self.waiting_max, len(waiting))
        free = (
            {agent: row.available() for agent, row in master.ledger.agents.items()}
            if waiting
            else {}
        )
        for member in waiting:
            suitable = self._suitable(member, free)
            if suitable:
                name = member.framework.identity.name
                self.starved.append((master.event_heap.now_ms, name, min(suitable)))

    def _suitable(self, member, free):
        ledger = self._master.ledger
        row = ledger.frameworks[member.handle]
        need = ledger.amount(member.framework.need)
        gpu = ledger.names.index(GPUS) if GPUS in ledger.names else None
        return {
            agent
            for agent, amount in free.items()
            if reaches(amount, need)
            and allows(row, ledger.agents[agent])
            and (
                gpu is None
                or not ledger.agents[agent].capacity[gpu]
                or GPU_CAPABILITY in row.capabilities
            )
        }
