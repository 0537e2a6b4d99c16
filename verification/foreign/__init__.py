"""Foreign packets during a system's run. A host that has no part in the job, the stranger, sends
noise and frames of other systems. It also sends old, cut or changed frames of the system, and the
frames with which the system says that it could be attacked. No sum may change, no job may end, and
every frame must be counted."""
