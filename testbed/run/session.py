"""The sessions of one job. When the members of a job, its share or the memory of one of its
programs change, all agents are configured again. This begins a new session."""

from __future__ import annotations

from agglab.testbed.run.agent_group import AgentGroup, JobFailed
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.scheduler import Process
from agglab.testbed.systems.base import NoSession, Share


class JobSession:
    """The current session of a job."""

    def __init__(self, group: AgentGroup, roster: Roster) -> None:
        self._group, self._roster = group, roster
        self._share: Share | None = None

    def fits(self, share: Share) -> bool:
        """Returns whether the next round can run in this session."""
        return share == self._share and not self._group.forgetful

    def begin(self, share: Share) -> Process[None]:
        """Begins a session for all members. In the new session, no older packet can be mistaken for
        a current one. Raises JobFailed."""
        group, fresh = self._group, self._share is None
        self._share = share
        try:
            settings = self._roster.begin_session(group.job, share)
        except NoSession as error:
            raise JobFailed(str(error), None) from None
        agents = self._roster.agents(group.job)
        begun_with = agents[0].configuration["settings"]
        if fresh and settings.items() <= begun_with.items() and not group.forgetful:
            return
        group.forgetful = False
        members = list(group.members)
        for agent in agents:
            own = {**settings, **agent.session}
            group.send(agent.rank, command="configure", members=members, settings=own)
        # Who dies meanwhile is the next attempt's failure, where there can be one.
        recovers = group.job.on_failure != "fail"
        yield from group.until_ready(group.needed, or_dead=recovers)

    def begin_again(self) -> Process[None]:
        """Begins a new session with the share of the previous session."""
        assert self._share is not None, "there was a session"
        yield from self.begin(self._share)
