"""Tests how a system copes with foreign packets during a run. A host that has no part in the job,
called the outsider, sends noise and frames of other systems. It also sends old, cut or changed
frames of this system, and the frames that the system itself lists as possible attacks. No sum may
change, no job may fail, and the switch must count every frame."""
