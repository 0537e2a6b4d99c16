"""Foreign packets at a system at work: a host that has no part in the job sends noise, frames of
other systems, frames of the system's own that are old, cut or changed, and its attack frames. No
sum may change, no job may end, and every frame has to be counted."""
