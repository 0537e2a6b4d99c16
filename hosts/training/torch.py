"""`import agglab.hosts.training.torch` makes the backend's name known where PyTorch does not call
entry points: TORCH_DEVICE_BACKEND_AUTOLOAD=0, and outside the testbed releases before 2.5."""

from agglab.hosts.training.autoload import register

register()
