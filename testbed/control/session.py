"""The sessions of one job: whenever its members, its share or a program's memory have changed, all
agents are configured anew."""

from __future__ import annotations

from agglab.testbed.control.crew import Crew, JobFailed
from agglab.testbed.control.roster import Roster
from agglab.testbed.control.scheduler import Process
from agglab.testbed.systems.base import NoSession, Share


class JobSession:
    """The session that a job is in."""

    def __init__(self, crew: Crew, roster: Roster) -> None:
        self._crew, self._roster = crew, roster
        self._share: Share | None = None

    def fits(self, share: Share) -> bool:
        """Whether the next round can be run in it."""
        return share == self._share and not self._crew.forgetful

    def begin(self, share: Share) -> Process[None]:
        """All members in a session for whose packets nothing older can be taken. Raises
        JobFailed."""
        crew, fresh = self._crew, self._share is None
        self._share = share
        try:
            settings = self._roster.begin_session(crew.job, share)
        except NoSession as error:
            raise JobFailed(str(error), None) from None
        agents = self._roster.agents(crew.job)
        begun_with = agents[0].configuration["settings"]
        if fresh and settings.items() <= begun_with.items() and not crew.forgetful:
            return
        crew.forgetful = False
        members = list(crew.members)
        for agent in agents:
            own = {**settings, **agent.session}
            crew.send(agent.rank, command="configure", members=members, settings=own)
        # Who dies meanwhile is the next attempt's failure, where there can be one.
        recovers = crew.job.on_failure != "fail"
        yield from crew.until_ready(crew.needed, or_dead=recovers)

    def begin_again(self) -> Process[None]:
        """A new session with the share of the last one."""
        assert self._share is not None, "there was a session"
        yield from self.begin(self._share)
